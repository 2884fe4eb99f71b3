/* Prophet's C interface: mark and steer the recording of this process, read a trace event by event, start and
 * control a re-execution. It is in libprophet.so, in C; only prophet_version starts the Go runtime of the library.
 *
 *	#include <prophet.h>
 *	prophet_begin("load");
 *	…
 *	prophet_end("load");
 *
 * Stability: PROPHET_ABI counts additions; nothing that is here changes its meaning or goes away. Structures open
 * with their size, which the caller sets before each call to what it was compiled with: a newer library fills no
 * more, an older one sets it to what it filled.
 *
 * Marks, prophet_start, prophet_stop, prophet_recording and prophet_abi are weak: a program that uses only these
 * needs no library to link or to start, and without one they do nothing. What reads and re-executes needs the
 * library, by -lprophet or dlopen. None of it makes a process recorded: that it is when libprophet.so was preloaded
 * (`prophet record`, LD_PRELOAD).
 *
 * Threads: marks are async-signal-safe and may come from any thread, as may prophet_start and prophet_stop. A
 * handle (prophet_trace, prophet_reexec) is used by one thread at a time, several handles at once. No call raises
 * a signal or changes errno or handlers, and none but prophet_version leaves a thread behind.
 *
 * Errors: a negative errno. prophet_reason says what a number means; what went wrong with a handle, its own error
 * text does.
 */
#ifndef PROPHET_H
#define PROPHET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PROPHET_ABI 1
/* PROPHET_ABI of the library; 0 without one. */
extern int prophet_abi(void) __attribute__((weak));

/* Version of the library and of the Go inside it, such as "0.1.0 go1.26". The Go runtime of the library starts
 * with the first call and not before: not for use in a program that is being recorded, nor in one that is written
 * in Go. */
extern const char *prophet_version(void) __attribute__((weak));
/* The same without Go: "0.1.0". */
extern const char *prophet_release(void) __attribute__((weak));
/* What an error of this interface means. Never NULL, and valid for good. */
extern const char *prophet_reason(int error);

/* ---- Marks: records in the calling thread's stream. Names are copied (up to 255 bytes). ---- */

/* A point in time. */
extern void prophet_mark(const char *name) __attribute__((weak));
/* The beginning and the end of something; they nest within a thread. */
extern void prophet_begin(const char *name) __attribute__((weak));
extern void prophet_end(const char *name) __attribute__((weak));
/* 1 when this process is being recorded, now and at a level that keeps marks. */
extern int prophet_recording(void) __attribute__((weak));

/* ---- Start and stop: the level of the run that this process belongs to, of all its processes and threads. ---- */

/* From now on everything is recorded, or nothing; a level record in the trace says so. They return 1 when that
 * changed something, 0 when it was so already, -ENOTSUP when this process is not part of a recorded run (it was
 * not preloaded; -ENOSYS without the library). `prophet record --level off` starts a run that waits for
 * prophet_start. What ran while recording was off is not in the trace: such a trace can be read, not re-executed
 * beyond that. */
extern int prophet_start(void) __attribute__((weak));
extern int prophet_stop(void) __attribute__((weak));

#define prophet_abi() (prophet_abi ? (prophet_abi)() : 0)
#define prophet_mark(name) (prophet_mark ? (prophet_mark)(name) : (void)0)
#define prophet_begin(name) (prophet_begin ? (prophet_begin)(name) : (void)0)
#define prophet_end(name) (prophet_end ? (prophet_end)(name) : (void)0)
#define prophet_recording() (prophet_recording ? (prophet_recording)() : 0)
#define prophet_start() (prophet_start ? (prophet_start)() : -38 /* ENOSYS */)
#define prophet_stop() (prophet_stop ? (prophet_stop)() : -38)

/* ---- Reading a trace ---- */

typedef struct prophet_trace prophet_trace;

/* What a field of an event is. */
enum {
	PROPHET_FIELD_NUMBER = 0, /* signed: value */
	PROPHET_FIELD_UNSIGNED = 1, /* (uint64_t)value */
	PROPHET_FIELD_TEXT = 2, /* text and length: a name, a path; bytes as the program gave them */
};

/* An argument of a call. Its layout is fixed. */
struct prophet_field {
	const char *name;
	const char *text; /* NUL-terminated; NULL unless PROPHET_FIELD_TEXT. It may hold further NULs */
	uint64_t length; /* of text */
	int64_t value;
	uint32_t kind;
	uint32_t pad;
};

enum {
	PROPHET_EVENT_CALL = 1, /* an intercepted call */
	PROPHET_EVENT_MARK = 2, /* call is "point", "begin" or "end", the field "name" its name; number is that of the next call */
};

enum {
	PROPHET_WAITED = 1, /* it had to wait */
	PROPHET_CUT = 2, /* its texts are longer than what was kept */
	PROPHET_VFORKED = 4, /* made by a vforked child, on its parent's stream */
	PROPHET_DELAYED = 8, /* a delay was injected */
	PROPHET_ONLYTIME = 16, /* its result was not known when it was written */
	PROPHET_TIMED = 256, /* end_ns was measured; otherwise it is begin_ns: the call cannot wait */
};

/* One event. What it points to is valid until the next call with the same handle. */
struct prophet_event {
	uint32_t size; /* set by the caller: sizeof(struct prophet_event) */
	uint32_t kind; /* PROPHET_EVENT_… */
	const char *thread; /* the same in the next run: "p0", "p0/1" its first created thread, "p0.1" its first child */
	uint32_t uid; /* number of the thread in the run */
	uint32_t process; /* and of its process */
	uint32_t pid, tid; /* as the kernel named them; 0: not known */
	uint64_t number; /* of the event in its thread, from 0 */
	const char *call; /* "read" */
	const char *category; /* "disk"; "" where this version does not know the call */
	uint32_t call_id; /* of the table of calls (`prophet calls`) */
	uint32_t flags; /* PROPHET_WAITED … */
	int64_t begin_ns, end_ns; /* since the start of the run */
	const char *object; /* "fd:p0#3": kind, the thread that saw it first, its number there; "" for none */
	uint64_t object_number;
	uint32_t object_uid;
	int32_t error; /* errno, or the error number that it returned; 0 for none */
	int64_t ret; /* as returned; of a pointer 1 or 0 (NULL) */
	uint64_t order; /* place in the order of the object; 0: has none */
	uint64_t pc; /* where it was called from; above bit 47 how many modules had been unloaded when its own was loaded. 0: not known */
	uint32_t fields; /* how many */
	uint32_t pad;
	const struct prophet_field *field;
};

struct prophet_info {
	uint32_t size; /* set by the caller: sizeof(struct prophet_info) */
	uint32_t processes;
	uint32_t threads;
	uint32_t complete; /* 1: the run has ended and its trace was completed */
	uint64_t ticks_hz; /* 0: not known, times are in ticks */
	uint64_t damage; /* pieces of damage that were met so far */
	int64_t start_ns; /* CLOCK_REALTIME at its start */
	uint64_t chunks;
};

/* Opens a trace: a directory NAME.prophet, or a packed file (`prophet unpack` makes a directory of it, in TMPDIR,
 * which is gone again when this returns). Of a run that is still being recorded it reads what is in the files;
 * `prophet recover` completes what a killed run left. 0, and *trace to be closed; on failure too when that is not
 * NULL: its error text says why. Damaged traces open, their damage is met while reading. */
extern int prophet_open(const char *path, prophet_trace **trace);
/* The next event of all threads, in the order of time. 1; 0 at the end; -EBADMSG where something is damaged: the next
 * call goes on behind it; any other error is final. */
extern int prophet_next(prophet_trace *trace, struct prophet_event *event);
/* Begins again at the first event: of all threads for uid 0, else of the thread with that number (-ESRCH: none has
 * it). */
extern int prophet_rewind(prophet_trace *trace, uint32_t uid);
extern int prophet_about(prophet_trace *trace, struct prophet_info *info);
/* What the last failure was: a file of the trace, an offset, a reason. "" for none; valid until the next call with
 * the handle. */
extern const char *prophet_trace_error(const prophet_trace *trace);
extern void prophet_close(prophet_trace *trace);

/* ---- Re-executing: runs `replayd --trace TRACE … -- ARGV`, found as PROPHET_REPLAYD says, beside the library, in
 * ../bin from there, or by PATH. ---- */

typedef struct prophet_reexec prophet_reexec;

struct prophet_reexec_options {
	uint32_t size; /* set by the caller: sizeof(struct prophet_reexec_options) */
	uint32_t control; /* 1: with a control socket, for prophet_ask and its kin */
	int32_t in, out; /* descriptors for the program's standard input and output; -1: this process's */
	const char *const *flags; /* further flags of replayd, NULL-terminated; or NULL */
	const char *const *env; /* the program's environment, NULL-terminated; NULL: this process's */
	const char *dir; /* where to run, and where a relative trace is looked for; NULL: here */
	const char *replayd; /* the program to run; NULL: found as said above */
};

struct prophet_result {
	uint32_t size; /* set by the caller: sizeof(struct prophet_result) */
	int32_t status; /* exit status: the program's own, or 125 when it diverged or could not be re-executed; -1: ended by a signal */
	int32_t signal; /* that ended it, or 0 */
	uint32_t identical; /* 1: replayd said so */
	uint64_t events; /* of an identical re-execution */
	uint32_t threads, processes;
};

/* Starts it; argv NULL: the command that the trace names. options may be NULL. 0, and *reexec, to be let go with
 * prophet_reexec_free; on failure as prophet_open. */
extern int prophet_reexec_start(const char *trace, const char *const *argv, const struct prophet_reexec_options *options, prophet_reexec **reexec);
/* Waits for its end: 1 ended, with result filled (may be NULL); 0 not within that many ms (-1: for ever, 0: not at
 * all). A program that ignores SIGCHLD or waits for any child takes the status away: -ECHILD. */
extern int prophet_reexec_wait(prophet_reexec *reexec, int timeout_ms, struct prophet_result *result);
/* The end of what replayd and the program have written to standard error, up to 64 KiB: the report of a
 * divergence. */
extern const char *prophet_reexec_report(prophet_reexec *reexec);
extern const char *prophet_reexec_error(const prophet_reexec *reexec);
/* pid of replayd, for signals (SIGTERM ends the re-execution), and where its control socket is ("" without
 * control). */
extern int prophet_reexec_pid(const prophet_reexec *reexec);
extern const char *prophet_reexec_socket(const prophet_reexec *reexec);
/* Controlling one that was started with control = 1. request is a JSON object of replayd's control protocol (see
 * package replayd/proto), without an id: {"do":"run-to","thread":"p0/1","event":17}. 0, with *answer (may be NULL)
 * the answer's line, valid until the next call with the handle; -EPROTO when replayd refused: prophet_reexec_error
 * says why. Waits that long for the answer, and before the first one for the socket (-1: for ever); -ETIMEDOUT
 * gives up what was asked, -EPIPE: replayd has ended. */
extern int prophet_reexec_ask(prophet_reexec *reexec, const char *request, int timeout_ms, const char **answer);
/* The commonest requests. thread is a name in the trace, or NULL for all. They wait up to 10 s; run_to and step
 * until it is reached. */
extern int prophet_reexec_status(prophet_reexec *reexec, const char **answer);
extern int prophet_reexec_pause(prophet_reexec *reexec);
extern int prophet_reexec_resume(prophet_reexec *reexec);
extern int prophet_reexec_step(prophet_reexec *reexec, const char *thread, uint64_t count);
extern int prophet_reexec_run_to(prophet_reexec *reexec, const char *thread, uint64_t event);
/* Lets go: what still runs is ended (SIGTERM, after 2 s SIGKILL) and waited for, and the socket's directory is
 * removed. */
extern void prophet_reexec_free(prophet_reexec *reexec);

#ifdef __cplusplus
}
#endif
#endif

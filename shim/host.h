/* What a program that embeds us calls (cabi/prophet.h): reading traces and running re-executions, in C, so that a
 * program in any language can have it without another runtime, and a recorded program pays nothing for it.
 *
 * decode takes a chunk's payload apart, trace finds the chunks and names threads, event merges them by time and
 * fills what the caller sees, reexec runs replayd.
 *
 * Rules: none of this runs on the record path. It uses raw system calls, so nothing of it is recorded, and memory
 * of its own (mmap), all of a handle. Nothing in a trace is trusted: whatever its bytes are, reading ends in
 * events, damage or an error.
 */
#ifndef SHIM_HOST_H
#define SHIM_HOST_H

#include "minlibc.h"
#include "rules.h"
#include "prophet.h"

/* Sections of their own, away from what every program touches: the kernel maps 64 KiB around what is touched, and
 * code in between would cost each traced program resident pages. */
#define HOST __attribute__((section(".text.unlikely.host")))
#define HOST_DATA __attribute__((section("prophet_rows")))

/* Memory that grows; all zero is empty. */
struct room {
	void *at;
	u64 bytes;
};
HIDDEN void *host_grow(struct room *r, u64 bytes); /* at least so many, the new ones zero; NULL: there is none */
HIDDEN void host_drop(struct room *r);

/* Bytes of a payload; followed by HOST_SLACK more that may be loaded. */
#define HOST_SLACK 16
struct bytes {
	const u8 *at;
	u64 n;
};

/* What a number of a chunk stands for, and what its next event is predicted to be. */
struct host_key {
	u64 pc, num, seq;
	i64 ret, f[3];
	u32 call, uid;
	u64 set; /* the decoder's generation when it was defined */
};

struct host_field {
	struct bytes text;
	u64 num;
};

#define HOST_TAIL 8 /* tailMax of tools/gen */

/* One record. Of an event all down to field; of a control record tag, begin, num and text. */
struct record {
	u32 tag; /* HOST_EVENT, or a tag of cabi */
	u32 note, timed, call, uid, fields;
	u64 begin, end, pc, num_of, seq;
	i64 ret, f[3];
	struct bytes tail;
	struct host_field field[HOST_TAIL];
	u64 num[8];
	struct bytes text[2];
};
#define HOST_EVENT 0

struct decoder {
	const u8 *b;
	u64 p, from /* the record's first byte */, end, now, last_pc, generation;
	u32 bad, lost_path, keys_end;
	u32 stacks; /* defined */
	struct host_key *key; /* PROPHET_KeySlots of them */
	struct room path; /* the last one */
	u64 path_len;
	const char *why; /* NULL: the payload is at its end */
};

HIDDEN void host_decode(struct decoder *d, const u8 *payload, u64 n, u64 base);
HIDDEN int host_record(struct decoder *d, struct record *r); /* 0: at the end, or d->why */

/* The row of a call; unknown calls have one without names. */
struct host_row {
	const char *name; /* NULL: not known */
	const char *object, *f[3];
	const char *tail[HOST_TAIL]; /* kind and name */
	u32 cls, result, tails;
};
enum { RESULT_ERRNO, RESULT_ERR, RESULT_PTR, RESULT_INT, RESULT_UINT, RESULT_VOID };
HIDDEN void host_row(u32 call, struct host_row *row);
HIDDEN u32 host_tails(u32 call, char kinds[HOST_TAIL]); /* ~0: not known */

/* Where a chunk is. */
struct ref {
	u64 base, seq, sum, off;
	u32 uid, proc, len;
	u16 kind, file;
};

struct host_thread {
	u32 uid, proc; /* proc: place in procs */
	u32 tid, known, parent, busy;
	u64 how, nth, first;
	u32 ref, refs;
	const char *name;
};

struct host_proc {
	u32 number, known, pid, ppid, parent_no, parent_uid, busy, walk;
	i64 parent; /* place in procs, -1 */
	u64 how, nth;
	const char *name;
};

/* A thread while it is read. */
struct lane {
	u32 thread, next, ok, on; /* next: chunk; ok: r is loaded; on: inside a chunk */
	u32 gap, pad;
	u64 n, at, seq;
	struct decoder d;
	struct record r;
	struct room keys, buf;
};

struct prophet_trace {
	struct room self, refs, refs_spare, threads, procs, lanes, heap, taken, text, scratch;
	u64 nrefs, nthreads, nprocs, nlanes, nheap, taken_room, damage, chunks;
	struct room *names; /* a chain of rooms: the first word of each is the one before */
	u64 names_used;
	int fd[PROPHET_StreamFiles];
	u64 hz, mult, ticks0, flight;
	i64 start_ns;
	u32 complete, points;
	struct clock_point {
		u64 ticks, mono;
	} low, high;
	struct lane *last;
	struct prophet_field field[3 + HOST_TAIL];
	struct text error;
	char error_text[512];
};

HIDDEN int host_fail(prophet_trace *t, int error, const char *what, const char *about);
HIDDEN int host_damage(prophet_trace *t, const struct ref *r, i64 at, const char *why);
HIDDEN int host_load(prophet_trace *t, const struct ref *r, struct room *buf); /* 0, damage or an error */
HIDDEN i64 host_ns(const prophet_trace *t, u64 ticks);
HIDDEN const char *host_thread_name(prophet_trace *t, u32 uid, char *room);
HIDDEN void host_lane_drop(struct lane *l);
HIDDEN int host_lane_ready(struct lane *l); /* its keys; 0: no memory */

HIDDEN const char *host_json(const char *s, const char *outer, const char *key);

/* Programs of ours. */
#define HOST_PATH 4096
struct child {
	int pid;
	int in, out, err; /* its descriptors; -1: as ours */
	const char *dir; /* NULL: as ours */
	const char *const *env; /* NULL: ours */
};
HIDDEN int host_find(char *path, const char *name, const char *variable); /* 0 or -ENOENT */
HIDDEN int host_spawn(struct child *c, const char *path, const char *const *argv); /* 0 or -errno */
HIDDEN int host_wait(int pid, int options, int *status); /* pid, 0 or -errno */
HIDDEN int host_temporary(char *dir); /* a new directory for us alone, in TMPDIR; HOST_PATH bytes */
HIDDEN void host_remove(const char *dir); /* with its files, and theirs two levels down */

#endif

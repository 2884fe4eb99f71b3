/* Re-execution, inside the program. The wrappers are those of a recording, on their common shape (control.Fast is 0):
 *
 *	shim_begin   → shim_re_begin: the thread's next expected event becomes the call's (struct ev.x); where the trace
 *	               has a signal before it, the signal is delivered first
 *	REAL(f)(…)   → a stand-in where the table has one: it answers from the trace (zfeed.c, feed_*.c), or waits for the
 *	               recorded turn and then asks the real function (stand_*.c); others are really called
 *	shim_done    → shim_re_commit: what came is compared with what was expected; who waits for the next turn is woken
 *
 * Names and places in orders are made by the recorder's own code (object.h), in the program's memory. So the word that
 * counts places is also the one that tells whose turn it is, a forked child goes on from where its parent stood, and
 * the comparison of names and places is the proof that each turn was kept. Nothing is written to a stream.
 *
 * Rules: the daemon is on no path. A thread that waits says at what in its ReplayThread, for the daemon's watchdog. The
 * first difference stops the world: the thread that found it writes the report, and every thread that comes to a call
 * stays there until the daemon has ended the run. Where the run is to be learnt from (ReplayLearn) only who differs stands; the daemon
 * pauses the others, takes the harness off, and all go on from there: shim_re_differs then returns, and its callers
 * leave what the trace wants alone.
 */
#ifndef SHIM_REPLAY_H
#define SHIM_REPLAY_H

#include "expect.h"
#include "wrap.h"
#include <signal.h>

#define RE_LOOKED 1024
#define RE_FAR 4

/* On the way to where a signal came (step.c). */
struct step {
	u32 on, out; /* out: the program has gone on since the call before */
	u32 returns, begins; /* the call before is about to return; a handler is about to begin, at site */
	int fd, pad2; /* the breakpoint's; -1: there is a trap after each instruction */
	u32 taken, told; /* traps; registers are told */
	u32 bare, barepad; /* registers are left alone: they have a handler's arguments */
	u32 kept, there; /* kept: the instruction before put flags on the stack, the trap among them. there: the signal is on its way */
	u64 site, moved; /* where the call before returns to, and how far that is from where it lay */
	u64 pc, sp, registers[3];
	u64 result; /* of the call before, as far as it has one */
	stack_t stack, old; /* ours, and the program's meanwhile */
};

/* At a barrier of so many. o: NULL when this has been looked at. */
struct arrival {
	struct object_entry *o;
	u64 id, seq;
	u32 count, pad;
};

struct re {
	struct replaythread *th;
	struct expect *x; /* of the call under way; NULL: none, or one that the trace does not have */
	u32 last; /* the call at the end of the thread's part of the trace */
	u32 path_len, injected; /* injected: a signal that we are delivering */
	u64 turn; /* serial: the turn that it has, 0: none (token.h) */
	u32 fd_next, pad; /* of the thread's descriptors whose numbers others make, too; bits: which of those from there are made */
	u64 fd_taken;
	const struct ev *came; /* what differs; whole: with its result */
	u64 differs_at;
	u32 whole, exiter; /* exiter: this thread has ended the process */
	u32 alone; /* alone: turns that others should give before the end of its process do not come, and it waits for none */
	u32 handlers, busy; /* signals of the trace whose handlers have not returned. busy: a handler may have interrupted us */
	u32 vforked, timer; /* vforked: the child that a fork record named last. timer: that nudges us, + 1 */
	u32 delivers; /* the depth of the handler that is delivered */
	u32 dear; /* so many waits more it does not yield (turn.c) */
	u32 was, pad2; /* was: the state before a wait */
	u64 waited, strange; /* ns: longer than in the recording; for threads that have not begun (stand_sleep.c) */
	u8 path[256];
	struct arrival arrival;
	struct step step;
	struct expect far[RE_FAR]; /* of calls under way, by how many handlers they run in: their events, where those are far ahead */
	u32 looked[RE_LOOKED]; /* by descriptor: how much had been taken from a channel when it was last seen ready (channel.c) */
	struct expects ex;
};

/* Per call, from the table (zreplay.h). */
enum {
	RE_SKIP_F1 = 1, /* an address or a handle: not compared */
	RE_SKIP_F2 = 2,
	RE_SKIP_F3 = 4,
	RE_SKIP_RET = 8, /* but whether it failed */
	RE_SKIP_TAIL = 16,
	RE_NESTS = 32, /* events of what it calls come before its own */
	RE_SKIP_OBJ = 64,
	RE_TURN = 128, /* others may wait for what it does */
	RE_LETS = 256, /* others go on because of it, even when the process ended before it was written */
	RE_HOLDS = 512, /* serial: made with the token (serial.h) */
	RE_MASKED = 1024, /* signals that came inside come with the mask that it sets: its stand-in has them delivered */
	RE_MAKES = 2048, /* a thread or process */
	RE_FREES = 8192, /* it lets, before it waits for anybody: signals that came inside come after that, as others may have gone on before them */
	RE_FD = 4096, /* its object is a descriptor, that was looked at when it was over */
};
extern const u16 shim_re_flags[] HIDDEN;

HIDDEN int shim_re_boot(const char *index); /* 0, or -errno: this process is to re-execute the trace of that index */
HIDDEN int shim_re_thread(struct thr *t); /* t's uid is known: its part of the trace */
HIDDEN u32 shim_re_uid(u32 parent, u32 nth, u32 how); /* of a thread that comes to be */
HIDDEN int shim_re_forks(u32 parent, u32 uid, u32 nth); /* the trace has that child */
HIDDEN void shim_re_uncreated(u32 uid); /* it could not be made after all */
HIDDEN u32 shim_re_proc(u32 parent, u32 uid, u32 nth, u32 how); /* of a process */
HIDDEN int shim_re_makes(const struct thr *t); /* the trace has the next thread or process that this one makes */
HIDDEN void shim_re_unknown(struct thr *t); /* the trace has no such thread */
HIDDEN int shim_re_begin(struct ev *e);
HIDDEN int shim_re_commit(struct ev *e); /* 0: the harness is off, and the event is to be recorded */
HIDDEN void shim_re_last_thread(struct thr *t); /* it ends, by itself */
HIDDEN void shim_re_ending(struct thr *t); /* its routine is over */
/* Starts the threads that its timers had started before that event, if it begins, and waits for those that were over (stand_time.c). */
HIDDEN void shim_re_fires(struct thr *t, u64 event, int begins);
HIDDEN void shim_re_fired(struct thr *t); /* on such a thread */
HIDDEN void shim_re_exit(struct thr *t, u32 how, i64 status); /* the process ends, when all its threads are where they were */
HIDDEN void shim_re_others(struct thr *t); /* the same wait alone */
HIDDEN long shim_re_vfork(void); /* vfork itself, */
HIDDEN long shim_re_vforked(long pid); /* and what its parent is told */
HIDDEN void shim_re_vfork_ends(struct thr *t); /* its child did no more: a signal ended it */
HIDDEN int shim_re_exec(struct thr *t, u32 call); /* before a program is replaced; -1: it could not be, errno says why */

/* Signals (stand_signal.c). */
#define SHIM_FAULTS (1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) | 1ull << (SIGFPE - 1) | 1ull << (SIGILL - 1) | 1ull << (SIGTRAP - 1) | 1ull << (SIGSYS - 1))
HIDDEN int shim_syscall_tells(long n);
HIDDEN int shim_syscall_asks(long n);
#define SYSCALL_GIVES 4 /* pieces that a system call fills */
HIDDEN u64 shim_syscall_gives(long n, const long *a, i64 r, struct iovec v[SYSCALL_GIVES]);
HIDDEN void shim_re_deliver(struct thr *t); /* the signal that the trace has here */
HIDDEN void shim_re_signals(struct thr *t, u32 call); /* those that came inside of that call */
HIDDEN void shim_re_starts(struct thr *t, const void *handler); /* those that came as the thread, or a handler, began. Not NULL: it is about to */
HIDDEN void shim_re_stopped(struct thr *t); /* those that came as it had lost its turn */
HIDDEN void shim_re_queue(struct thr *t); /* it is pending: the thread has it blocked */
HIDDEN void shim_re_nudge(struct thr *t); /* a signal is next, for which the thread may wait by computing */
HIDDEN int shim_re_signal(struct thr *t, int sig, siginfo_t *si); /* a handler begins: 0: the trace has no such signal here */
HIDDEN void shim_re_sigret(struct thr *t, int sig);
HIDDEN void shim_re_look(struct thr *t); /* what comes next is no event */
HIDDEN void shim_re_wait_for_end(struct thr *t, u32 state);
HIDDEN void shim_re_cancelled(struct thr *t); /* where the trace says it was */
HIDDEN void shim_re_maybe_cancelled(struct thr *t); /* where it cannot have come otherwise */
HIDDEN void shim_re_not_cancelled(struct thr *t); /* it goes on after all */
HIDDEN int shim_re_is_fault(const struct expect *x); /* a signal that a fault raised */
HIDDEN void shim_re_interrupt(int sig, int flag); /* as siginterrupt: what the program sees of a handler's flags */
HIDDEN void shim_re_may_cancel(struct thr *t); /* a call begins that the trace says was cancelled */
HIDDEN void shim_re_guards(void);
HIDDEN void shim_re_unguards(void);
HIDDEN int shim_re_guarded(int sig); /* without the program's handler, ours takes it */
HIDDEN void shim_re_guard_signal(int sig, siginfo_t *si, void *context);
HIDDEN void shim_re_stand(struct thr *t); /* returns when the harness is off */
HIDDEN NOINLINE void shim_re_differs(struct thr *t, const struct expect *x, u32 what, u32 got, u64 want_v, u64 got_v, const char *text);
HIDDEN void shim_re_stop(struct thr *t, u32 state) __attribute__((noreturn));
HIDDEN NOINLINE int shim_re_hold(
    struct thr *t,
    const struct expect *x); /* Replay.hold is set: returns when the thread may have its next event, 1: as the harness is off; x: that, if it is known */
HIDDEN void shim_re_end(struct thr *t); /* it asks for more than the trace has: returns when the harness is off */
HIDDEN NOINLINE void shim_re_off(struct thr *t); /* the harness is off: the thread records */

static inline int shim_re_detached(void)
{
	return (__atomic_load_n(&shim_index->hold, __ATOMIC_ACQUIRE) & PROPHET_HoldDetached) != 0;
}
/* Whether the thread's next event is one of an issue. */
static inline int shim_re_issued(const struct thr *t)
{
	return t->re->th->event < t->re->th->issued;
}

HIDDEN void shim_re_hashed(struct ev *e); /* compares the hash that the event has been given, instead of data */
HIDDEN void shim_re_record(struct thr *t, u32 tag); /* what a recording would write here */
HIDDEN int shim_re_mine(const struct thr *t); /* whether an object that has no name yet is to get one from this thread, now */
HIDDEN void shim_re_nap(struct thr *t, u64 object, u64 turn, u64 away, const struct timespec *ts); /* a moment, and says at what */
HIDDEN void shim_re_yield(struct thr *t, u64 object); /* between two looks at what another thread will do to it */
HIDDEN int shim_re_path(const struct expect *x, char *buf, u64 n); /* the path that is all of the tail, when it has n bytes */

/* Time (stand_sleep.c). */
HIDDEN void shim_re_came(struct thr *t); /* a thread begins: not before it did */
HIDDEN void shim_re_passed(struct thr *t, u32 call, u64 object, i64 ret, u64 over,
			   u64 took); /* a call is over; what others did meanwhile may be to be waited for */

/* The expected event of the call that this stand-in is for; NULL: call the real function. */
static inline struct expect *shim_re_of(u32 call)
{
	struct thr *t = shim_self.thr;
	struct expect *x = t && t->re ? t->re->x : 0;
	return x && x->call == call && x->kind == EXPECT_EVENT ? x : 0;
}

HIDDEN struct expect *shim_re_ahead(u32 call, u64 obj); /* the next event of that call, at that object if one is given; NULL: none is near */

/* Whether this is the call that the thread was in when its process ended: nothing of it is in the trace but what it let
 * others do. */
static inline int shim_re_last(u32 call)
{
	struct thr *t = shim_self.thr;
	return t && t->re && t->re->x && t->re->x->kind == EXPECT_END && t->re->last == call;
}

/* The expected event of the call, or the record that it was left, or the end of the trace. */
static inline struct expect *shim_re_under_way(u32 call)
{
	struct thr *t = shim_self.thr;
	struct expect *x = t && t->re ? t->re->x : 0;
	return x && ((x->call == call && (x->kind == EXPECT_EVENT || x->kind == EXPECT_LEFT)) || shim_re_last(call)) ? x : 0;
}

HIDDEN const struct expect *shim_re_closes(u32 call, int fd); /* before a descriptor is closed; the event that it was none, if so */

/* The real function behind a stand-in. */
HIDDEN void *shim_true(u32 call);
#define TRUE(name) ((__typeof__(&name))shim_true(CALL_##name))

/* What stands in for a call's real function: collected by the linker, by distance, so that a program that is not
 * re-executed has nothing to relocate. */
struct standin {
	u32 call;
	int away; /* of the function, from here */
};
#define STANDIN_(section, call, f)                             \
	static __typeof__(f) f __attribute__((used));          \
	__asm__(".pushsection " #section ",\"a\"\n.balign 4\n" \
		".long " #call "\n.long " #f " - .\n.popsection\n");
#define STANDIN_IN(section, call, f) STANDIN_(section, call, f)
#define STANDIN(name, f) STANDIN_IN(standins, CALL_##name, f)
#define PRINTED(name, f) STANDIN_IN(printed, CALL_##name, f) /* counts where there is none by hand */

/* Turns. ready says how many turns are still to come: 0 when it is this one's. */
typedef u64 (*turn_fn)(const void *object, const struct expect *x);
#define TURN_FAR 1000
HIDDEN void shim_turn(struct thr *t, const struct expect *x, u64 name, u64 place, turn_fn ready, const void *object);
HIDDEN void shim_turn_next(u64 name, u64 place); /* the place is taken: whoever waits for the one after */
HIDDEN int shim_re_guard_inline(const void *guard, u64 name, const void *pc);
HIDDEN void shim_re_pass(struct thr *t); /* the oldest expected event is taken as done */

/* The compiler asks whether a static is initialised before it calls: a thread that came while another was at it may
 * come after that now, and not call. */
static inline int shim_re_found_done(const struct expect *x)
{
	return x->kind == EXPECT_EVENT && x->call == CALL___cxa_guard_acquire && x->ret == 0;
}

HIDDEN void shim_re_guard(const void *guard, const struct object_entry *o); /* before a static is initialised, or found to be */
/* stand_futex.c */
HIDDEN long shim_re_futex(const struct expect *x, const long *a); /* the system call */
HIDDEN void shim_re_before_wake(struct thr *t, const struct expect *x); /* x, a system call, comes next */
HIDDEN void shim_turn_call(struct replayturn *b, u64 name, u64 place);
HIDDEN void shim_turn_all(u64 name); /* whoever waits at it looks again */

static inline struct replayturn *shim_turn_bucket(u64 name)
{
	return &shim_index_turns()[name * 0x9E3779B97F4A7C15ull >> 54];
}
_Static_assert(PROPHET_TurnBuckets == 1024, "shim_turn_bucket gives 10 bits");

/* The next record, when it is an event of this call and object, at this place and else as predicted, and an event is behind it:
 * it is read where it lies, and all that shim_re_begin and shim_re_commit look at is as it was at the end of the event before
 * (shim_re_commit). All else goes the common way. */
static inline __attribute__((always_inline)) int shim_re_quick(struct thr *t, u32 call, u64 obj, u64 place)
{
	struct re *re = t->re;
	struct expects *x = &re->ex;
	struct expect_key *k = x->near, *next;
	const u8 *p = x->past, *past;
	u64 step = 0;
	u32 w, n;
	if (unlikely(!k || __atomic_load_n(&shim_index->hold, __ATOMIC_RELAXED) || shim_paused() || t->slot->call))
		return 0;
	if (unlikely(k->call != call || k->obj != obj || k->ret))
		return 0;
	/* Its time in one to three bytes; no more follows, or how far its place is from the predicted one, in one or two. */
	__builtin_memcpy(&w, p, 4);
	n = (u32)__builtin_ctz(w | 8) + 1;
	w = (u32)(w & ((1ull << 8 * n) - 1)) >> n;
	if (unlikely(n > 3))
		return 0;
	if (w & PROPHET_EvMore) {
		u16 z;
		if (unlikely(x->end - p < 3 + 1 + 2 || p[n] != PROPHET_MaskSeq || !place))
			return 0;
		__builtin_memcpy(&z, p + n + 1, 2);
		if (unlikely(!(z & 3)))
			return 0;
		n += 1 + 1 + (~z & 1);
		z = z & 1 ? (u8)z >> 1 : z >> 2;
		step = z >> 1 ^ -(u64)(z & 1);
	}
	if (unlikely(k->seq + (k->seq != 0) + step != place || !(next = shim_expect_key(x, p + n, &past))))
		return 0;
	x->p = p + n;
	x->past = past;
	x->near = next;
	x->now += w >> 1;
	k->seq = place;
	x->open = 0;
	re->th->quick++;
	__atomic_store_n(&re->th->event, re->th->event + 1, __ATOMIC_RELEASE);
	return 1;
}

/* For an answer in a number of the trace. */
static inline long shim_re_ret(const struct expect *x)
{
	if (x->ret < 0) {
		errno = (int)-x->ret;
		return -1;
	}
	return x->ret;
}

#endif

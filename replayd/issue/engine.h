/*
 * The engine: issues a compiled program (cabi/program.go) with real threads, processes, locks, files and CPU time.
 *
 * Who calls: a constructor of replayd, before Go starts there (start.c), so that nothing of Go's is among the issued.
 * Files:  engine  the run as a whole: what is shared, prepared and watched;  thread  one thread's operations, one after the
 *         other;  costs  what the engine itself needs;  ways  which way a thread goes on;  sync, io  operations, by what they act
 *         on;  seen  what processes have seen of files;  order  home's order, kept or checked, and home's times;  check  that a
 *         program is sound.
 * Rules:  every index of a program is checked before anything of it runs (check.c); nothing outside of the prepared directory
 *         is written; what all processes share lies in one mapping made before the first fork; a thread writes only its own log.
 */
#ifndef PROPHET_ISSUE_ENGINE_H
#define PROPHET_ISSUE_ENGINE_H

#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "../../cabi/zprogram.h"
#include "burn.h"

typedef uint64_t u64;
typedef int64_t i64;
typedef uint32_t u32;
typedef uint16_t u16;

enum { FDS = 16384, STUCK = ~0u, VERSIONS = 1 << 16 };

/* What a thread writes often lies in lines of its own, or threads beside it would wait for them. */
#define LINE _Alignas(64)

/* A synchronisation object while it is issued. Seq is its place in order, as the recorder counts it. */
struct object {
	LINE union {
		pthread_mutex_t mutex;
		pthread_rwlock_t rwlock;
		pthread_cond_t cond;
		pthread_barrier_t barrier;
		pthread_spinlock_t spin;
		sem_t sem;
	};
	_Atomic u64 seq;
	u32 preds; /* of a condition: the first of its predicates, plus 1 */
	_Atomic u32 moved; /* order.c: a futex, grows with turn and readers */
	_Atomic u64 turn; /* places of home's order that are taken */
	_Atomic u64 readers;
	_Atomic u32 arrived; /* of a condition: waits that have begun, */
	_Atomic u32 woken; /* of these, the first ones, that may go on, */
	_Atomic u32 gone; /* and others that have not waited for that: of them a wake may not be lost */
};

/* A predicate while it is issued: guarded by its mutex. */
struct pred {
	LINE u64 arrived;
	u64 passed;
	u64 released;
	u32 next; /* of the same condition, plus 1 */
	u32 waiting;
};

/* What is known of a thread from outside. */
struct state {
	LINE _Atomic u64 done; /* operations */
	_Atomic u32 code; /* of the one it is in */
	_Atomic u32 runs; /* it has begun, and not come to an end, whose ever that was at home */
	_Atomic u32 over; /* a futex: 1 when somebody has come to the end that it had at home */
	_Atomic u64 at; /* that operation */
	_Atomic u64 idle; /* those of done that only led from a wait whose time was over to the same one again */
	_Atomic u32 tid;
	_Atomic u32 on; /* the thread that has what it waits for, plus 1, once nothing moves */
	u32 cut; /* operations that found no room in the log */
	u64 logged;
	u64 other; /* results that were not home's: another way was known, */
	u64 unknown; /* or not */
	u64 outside; /* ns slept for what was outside */
	u64 forced; /* waits that ended as nothing else moved */
};

/* Before all tables of the shared mapping. */
struct shared {
	_Atomic u32 stop; /* all end at their next operation */
	_Atomic u32 relax; /* waits end: grows */
	_Atomic u32 failed; /* errno of what the engine could not do */
	_Atomic u32 diverged; /* the thread that was first to leave the program's path, plus 1; STUCK: nothing could move */
	u64 begin; /* ticks */
	_Atomic u64 end; /* of the first process */
	u64 cpu; /* ns that it took, with its children */
};

struct run {
	const struct prog *head;
	const struct progproc *procs;
	const struct progthread *threads;
	const struct progobject *objects;
	const struct progpred *preds;
	const struct progfile *files;
	const struct progbody *bodies;
	const struct progop *ops;
	const struct progjump *jumps;
	const struct progrow *rows;

	struct shared *shared;
	struct object *object; /* each process has a copy, which it gets as its parent had it */
	struct object *common; /* those that processes share */
	struct pred *pred;
	struct state *state;
	unsigned char *keys; /* what has been released, of all predicates with keys */
	u32 *items; /* of queues: which release of home's each one was, plus 1; beside rows */
	_Atomic int *pids; /* of processes */
	_Atomic u32 *versions; /* of parts of files (seen.c) */
	struct proglog **log; /* of threads */
	u64 *room; /* of each log */
	int *listeners;
	int *grams; /* sockets of datagrams, */
	struct sockaddr_in *gram_at; /* and their addresses */
	u16 *ports;

	struct burn burn;
	struct burn_thread *burns;
	double costs[2][PROPHET_OpLimit]; /* ns that the engine needs for an operation beside what home's calls took; [1]: also for its call */
	double tick_ns;
	int dir;
	double scale; /* CPU demand */
	bool strict; /* the program has orders that are checked */
};

extern struct run run;

static inline struct object *object_of(u32 n)
{
	const struct progobject *p = &run.objects[n];
	return p->flags & PROPHET_ObjectShared ? &run.common[n] : &run.object[n];
}

enum { PAST = 1024, PAST_RESULT = 48 };

/* The locks that a process has of files, or of parts of them. */
struct file_locks {
	struct file_lock {
		u32 fd;
		i64 start, length, kind;
	} list[PROPHET_HeldFiles];
	u32 n;
	u64 sum; /* held_file of each, added */
};

/* Tries that failed in a row, as runtime/demand counts them (write.go). */
struct tries {
	u32 n; /* with a sleep behind them */
	u32 since; /* operations since the last sleep */
	u32 site; /* of the last one that failed, */
	bool failed; /* which was since the last sleep, */
	bool got; /* which did not fail since, */
	bool worked; /* and others may depend on what was done since that, */
	bool gave; /* which is over: the thread has given back the locks that it got for it */
	u64 locks; /* that it had at the last sleep */
};

/* One thread that issues. */
struct self {
	u32 n;
	u32 proc;
	u32 as; /* whose way of home's it is on: who takes from a queue what another one took there goes on as that one (sync.c) */
	const struct progop *op; /* the one that is being issued */
	struct state *state;
	struct proglog *log;
	u64 logged, room;
	u64 ready; /* address up to which the log has its memory */
	struct burn_thread *burn;
	u64 pasts; /* operations that it has done, of those that tell contexts apart: the last ones stand in past */
	u64 past[PAST]; /* which one, and above PAST_RESULT what came of it, without its sign */
	u64 back; /* index to come back to after a body, ~0: in none */
	u64 stop; /* index at which a body ends */
	const struct progop *home; /* the choice of its own that it left its way at; NULL: it is on its way */
	u64 held; /* the locks that it has: held_lock of each, added, */
	u64 held_then; /* and had when it left its way */
	struct file_locks files, files_then; /* the same, of files */
	u64 met; /* the version that it has read last (cabi's Met); 0: none */
	struct tries tries;
	u32 again; /* tries that it makes of itself, as nobody failed so at home */
	u32 away; /* ways that it has tried since */
	u64 left; /* of pasts: what it has done since; from the first of that on others may depend on, */
	bool worked; /* once there is some */
	u64 seq; /* place that the operation took */
	i64 result;
	u64 join; /* what home did after the end that it has heard of last, 0: of none, */
	u64 join_as; /* and after the end of the one that it was here, */
	u32 joins; /* whom it has joined so often since */
	u64 next; /* where to go on, when the operation says so; ~0: behind it */
	i64 thought; /* ns that it still has to think; negative: has thought too long */
	bool guessed; /* the operation ended as nothing else moved */
	bool stopped; /* before its end */
	u32 came; /* the predicate that it has passed in this section, plus 1 */
	u32 late; /* the predicate that its last wait for a condition waited for in vain, plus 1 */
	u64 since; /* what it had done by then */
};

static inline u64 ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	u64 t;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
	return t;
#endif
}

enum { OWED_MAX = 50000 };

/* owe takes ns off the demand that follows. What is too much for it is let off: it belonged to another time. */
static inline void owe(struct burn_thread *b, double ns)
{
	b->owed_ns -= ns;
	if (b->owed_ns < -OWED_MAX)
		b->owed_ns = -OWED_MAX;
}

u64 now_ns(void);
void fail(int err);
const char *check_program(struct run *r, u64 size);
void thread_begins(u32 n);
void run_thread(u32 n);
void run_ends(void);
void end_main(void);
void run_ops(struct self *s, u64 at); /* the operations from `at` to an end */
void measure_costs(bool logs);
void unknown_way(struct self *s); /* what follows the operation is a guess */
u64 way_on(struct self *s, u64 at); /* the index to go on at after op `at`, whose result decides that */
u64 sleep_as(const struct self *s, u64 at); /* the sleep that stands for that at `at`: how long one waits says how often one has tried */
void remember(struct self *s, u64 at); /* op `at` is part of what the thread has done */
u32 end_on(u64 at); /* the thread of the recorded run that ends where its operations from `at` on do */

/* seen.c */
void seen_wrote(u32 file, i64 at, i64 bytes);
i64 seen_read(u32 file, i64 at, i64 bytes, bool versions);
void seen_forget(void);

/* io.c */
void io_begin(void);
bool io_prepare(void);
void io_remove(void);
void io_issue(struct self *s, const struct progop *op);
int io_file_name(u32 n, char *name);

/* sync.c */
bool sync_begin(void);
void sync_issue(struct self *s, const struct progop *op);
void sync_relax(void);
void sync_blame(void);
void sync_init(struct object *o, const struct progobject *p);

/* order.c */
void order_issue(struct self *s, const struct progop *op);
void order_relax(void);
void order_wake(struct object *cond, bool all); /* those in OpCondwait */
void diverge(struct self *s); /* the issue ends: what the program does now is not known */

/* thread.c */
void memory_begin(void);
void sleep_for(i64 ns);

#endif

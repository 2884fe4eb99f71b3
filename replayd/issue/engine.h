/*
 * The engine: issues a compiled program (cabi/program.go) with real threads, processes, locks, files and CPU time.
 *
 * Who calls: a constructor of replayd, before Go starts there (start.c), so that nothing of Go's is among the issued.
 * Files:  engine  the run as a whole: what is shared, prepared and watched;  thread  one thread's operations, one after the
 *         other;  costs  what the engine itself needs;  ways  which way a thread goes on;  sync, io  operations, by what they act
 *         on;  order  home's order, kept or checked, and home's times;  check  that a program is sound.
 * Rules:  every index of a program is checked before anything of it runs (check.c); nothing outside of the prepared directory
 *         is written; what all processes share lies in one mapping made before the first fork; a thread writes only its own log.
 */
#ifndef PROPHET_ISSUE_ENGINE_H
#define PROPHET_ISSUE_ENGINE_H

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

enum { FDS = 16384, STUCK = ~0u };

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
	_Atomic u32 begun;
	_Atomic u32 over; /* a futex: 1 when it has ended */
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
	struct proglog **log; /* of threads */
	u64 *room; /* of each log */
	int *listeners;
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

/* One thread that issues. */
struct self {
	u32 n;
	u32 proc;
	const struct progop *op; /* the one that is being issued */
	struct state *state;
	struct proglog *log;
	u64 logged, room;
	u64 ready; /* address up to which the log has its memory */
	struct burn_thread *burn;
	u64 hash; /* of its last choices, as runtime/demand's Trail */
	u64 back; /* index to come back to after a body, ~0: in none */
	u64 stop; /* index at which a body ends */
	const struct progop *home; /* the choice of its own that it left its way at; NULL: it is on its way */
	u64 seq; /* place that the operation took */
	i64 result;
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
void run_thread(u32 n);
void run_ends(void);
void end_main(void);
void run_ops(struct self *s, u64 at); /* the operations from `at` to an end */
void measure_costs(bool logs);
void unknown_way(struct self *s); /* what follows the operation is a guess */
u64 way_on(struct self *s, u64 at); /* the index to go on at after op `at` had another result than home */

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

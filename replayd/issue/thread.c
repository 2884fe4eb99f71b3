/* One thread's operations, one after the other. */
#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"

enum {
	STACK = 256 << 10,
	AWAY = 1 << 10, /* ways that a thread may try one after the other without coming back to its own: in circles, it seems */
	LOG_STEP = 32 << 10, /* bytes of log that are ready before they are needed: more than what is done before CPU time is due again */
	READY_NS = 10000,
	WAKE_MIN_NS = 500, /* a call that took longer woke somebody, */
	WAKE_MAX_NS = 100000, /* or had to wait for a processor */
};

static u64 resident; /* pages of the arena below */
static char *arena;
static double page_ns;
static const u64 arena_bytes = 1ull << 38;

/* memory_begin measures what a page costs when it is first touched, so that it is not paid twice: demand has it already. */
void memory_begin(void)
{
	arena = mmap(NULL, arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (arena == MAP_FAILED) {
		arena = NULL;
		return;
	}
	u64 t = now_ns();
	for (int i = 0; i < 1024; i++)
		((volatile char *)arena)[(u64)i << 12] = 1;
	page_ns = (double)(now_ns() - t) / 1024;
	madvise(arena, 1024 << 12, MADV_DONTNEED);
}

/* What small processes have is mostly pages of files, which cost them less than these would cost here, and no memory is short of it. */
enum { RESIDENT_LEAST = 4096 };

static void memory_resident(u64 pages)
{
	u64 most = arena_bytes >> 12;
	if (!arena)
		return;
	if (pages < RESIDENT_LEAST)
		pages = 0;
	if (pages > most)
		pages = most;
	for (u64 i = resident; i < pages; i++)
		((volatile char *)arena)[i << 12] = 1;
	if (pages < resident)
		madvise(arena + (pages << 12), (resident - pages) << 12, MADV_DONTNEED);
	resident = pages;
}

static void *start(void *n)
{
	run_thread((u32)(uintptr_t)n);
	return NULL;
}

/* thread_begins says that there is a thread from now on, which may get no processor for a while: it counts as one that can move. */
void thread_begins(u32 n)
{
	struct state *s = &run.state[n];
	atomic_store(&s->tid, 0);
	atomic_store(&s->code, PROPHET_OpNop);
	atomic_store(&s->at, run.threads[n].first);
	atomic_store(&s->runs, 1);
}

static void create(struct self *s, const struct progop *op)
{
	pthread_attr_t a;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, STACK);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	pthread_t th;
	thread_begins(op->obj);
	int err = pthread_create(&th, &a, start, (void *)(uintptr_t)op->obj);
	pthread_attr_destroy(&a);
	s->result = -err;
	if (err)
		fail(err);
}

/*
 * Who is joined is not a thread of ours but the end of one of the recorded run: threads that take work from one queue go on with
 * each other's operations (sync.c), and so come to each other's ends.
 */
static void join(const struct progop *op)
{
	struct state *t = &run.state[op->obj];
	while (!atomic_load(&t->over) && !atomic_load_explicit(&run.shared->stop, memory_order_relaxed))
		syscall(SYS_futex, &t->over, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static void end_of(u32 n)
{
	atomic_store(&run.state[n].over, 1);
	syscall(SYS_futex, &run.state[n].over, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void end_process(struct self *s)
{
	if (s->proc == 0)
		run_ends();
	end_of(s->home ? end_on((u64)(s->home - run.ops)) : s->op->obj);
	s->state->logged = s->logged;
	for (u32 i = 0; i < run.head->threads; i++) /* those that it takes with it */
		if (run.threads[i].proc == s->proc)
			atomic_store(&run.state[i].runs, 0);
	_exit(0);
}

/*
 * end_main ends a process's main thread, while others may go on. pthread_exit would take the process with it: it unwinds to where the
 * library calls main, and we were called before that (start.c).
 */
void end_main(void)
{
	for (;;)
		syscall(SYS_exit, 0);
}

static void fork_process(const struct progop *op)
{
	thread_begins(run.procs[op->obj].main);
	pid_t pid = fork();
	if (pid < 0) {
		fail(errno);
		return;
	}
	if (pid) {
		atomic_store(&run.pids[op->obj], pid);
		return;
	}
	run_thread(run.procs[op->obj].main);
	end_main();
}

static void wait_process(struct self *s, const struct progop *op)
{
	int pid = atomic_load(&run.pids[op->obj]);
	if (pid > 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	s->result = op->want;
}

enum { JOIN_NEAR = 256 };

/* nth_join is the nth place where, from a place on and before the next wait, the thread is joined that is joined there first; at: none. */
static u64 nth_join(u64 from, u32 nth, u64 at)
{
	const struct progop *first = NULL;
	for (u64 i = from; from && i < run.head->ops && i < from + JOIN_NEAR; i++) {
		const struct progop *op = &run.ops[i];
		if (op->code == PROPHET_OpWait || op->code == PROPHET_OpEnd || op->code == PROPHET_OpExit)
			break;
		if (op->code != PROPHET_OpJoin || (first && first->obj != op->obj))
			continue;
		first = op;
		if (!nth--)
			return i;
	}
	return at;
}

/* join_as is the join that stands for that at `at`: who heard of the ends of threads in another order than at home joins them in that. */
static u64 join_as(struct self *s, u64 at)
{
	if (!s->join || s->join == s->join_as || nth_join(s->join, s->joins, ~0ull) != at)
		return at;
	return nth_join(s->join_as, s->joins++, at);
}

void sleep_for(i64 ns)
{
	struct timespec t = {ns / 1000000000, ns % 1000000000};
	if (ns > 0)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

/* role chooses what is done in a section by who came before: of each unit the last one releases. */
static u64 role(struct self *s, const struct progop *op, u64 at)
{
	const struct progpred *p = &run.preds[op->a];
	u64 n = run.pred[op->a].arrived++;
	bool last = n % p->unit == p->unit - 1;
	if (last == !!(op->flags & PROPHET_OpLast))
		return at + 1;
	u32 count = last ? p->last : p->wait;
	if (!count) {
		unknown_way(s);
		return at + 1;
	}
	const struct progbody *b = &run.bodies[p->roles + (last ? p->wait : 0) + n % count];
	s->state->other++;
	s->back = at + 1 + (u64)op->b;
	s->stop = b->first + b->count;
	return b->first;
}

static void issue(struct self *s, const struct progop *op)
{
	s->seq = 0;
	s->result = op->want;
	switch (op->code) {
	case PROPHET_OpNop:
	case PROPHET_OpCPU:
	case PROPHET_OpMore:
		break;
	case PROPHET_OpCreate:
		create(s, op);
		break;
	case PROPHET_OpJoin:
		join(op);
		break;
	case PROPHET_OpFork:
		fork_process(op);
		break;
	case PROPHET_OpWaitpid:
		wait_process(s, op);
		break;
	case PROPHET_OpSleep:
		if (op->flags & PROPHET_OpHome)
			s->state->outside += (u64)op->a;
		sleep_for(op->a);
		break;
	case PROPHET_OpYield:
		sched_yield();
		break;
	case PROPHET_OpTurn:
	case PROPHET_OpPlaced:
	case PROPHET_OpThink:
	case PROPHET_OpCheck:
	case PROPHET_OpCondwait:
		order_issue(s, op);
		break;
	case PROPHET_OpResident: {
		u64 was = resident;
		memory_resident((u64)op->a);
		if (resident > was)
			s->burn->owed_ns -= (double)(resident - was) * page_ns;
		break;
	}
	default:
		if (op->code >= PROPHET_OpLock && op->code <= PROPHET_OpRelease)
			sync_issue(s, op);
		else
			io_issue(s, op);
	}
}

/* Where a thread begins and ends, so that the CPU time beside its first and last operation is in the log. */
static void log_moment(struct self *s, u64 at)
{
	u64 now = ticks();
	if (s->logged < s->room)
		s->log[s->logged++] = (struct proglog){now, now, at, 0, 0};
}

/* ready gives the next operations' log its memory, in a moment in which CPU time is due anyway, of which that is then a part. */
static void ready(struct self *s)
{
	u64 first = (u64)(uintptr_t)&s->log[s->logged], last = (u64)(uintptr_t)&s->log[s->room];
	if (first + LOG_STEP <= s->ready || s->ready >= last)
		return;
	u64 from = s->ready > first ? s->ready : first & ~4095ull, to = from + 2 * LOG_STEP, t = now_ns();
	if (to > last)
		to = last;
	s->ready = (to + 4095) & ~4095ull;
	madvise((void *)(uintptr_t)from, s->ready - from, MADV_POPULATE_WRITE);
	owe(s->burn, (double)(now_ns() - t));
}

/* may_wake tells whether a call takes as long as it takes to wake those that wait: others than itself decide about that. */
static bool may_wake(const struct progop *op)
{
	switch (op->code) {
	case PROPHET_OpUnlock:
	case PROPHET_OpRwunlock:
	case PROPHET_OpSempost:
	case PROPHET_OpSignal:
	case PROPHET_OpBroadcast:
		return op->flags & PROPHET_OpSingle;
	}
	return false;
}

/* settle takes off the demand what an operation cost here that it did not cost the program, or that the demand after it has as well. */
static void settle(struct self *s, const struct progop *op, u64 took)
{
	double ns = run.costs[(op->flags & PROPHET_OpSingle) != 0][op->code], woke = (double)took * run.tick_ns;
	owe(s->burn, woke > WAKE_MIN_NS && woke < WAKE_MAX_NS ? run.costs[0][op->code] + woke : ns);
}

void run_ops(struct self *s, u64 at)
{
	u64 end = 0;
	for (;;) {
		const struct progop *op = s->op = &run.ops[at];
		u64 was = at;
		if (op->code == PROPHET_OpSleep)
			op = s->op = &run.ops[was = sleep_as(s, at)];
		else if (op->code == PROPHET_OpJoin)
			op = s->op = &run.ops[was = join_as(s, at)];
		if (op->cpu) {
			atomic_store_explicit(&s->state->code, PROPHET_OpCPU, memory_order_relaxed);
			if (s->room && op->cpu > READY_NS)
				ready(s);
			burn(&run.burn, s->burn, run.scale == 1 ? op->cpu : (u64)((double)op->cpu * run.scale));
			end = 0;
		}
		/* The code first: who is seen to compute after the run was stopped does nothing more (settled). */
		atomic_store_explicit(&s->state->code, op->code, memory_order_relaxed);
		if (atomic_load_explicit(&run.shared->stop, memory_order_relaxed)) {
			s->stopped = true;
			return;
		}
		atomic_store_explicit(&s->state->at, at, memory_order_relaxed);
		bool wakes = may_wake(op);
		u64 begin = end || !(s->room || wakes) ? end : ticks();
		if (op->code == PROPHET_OpEnd || op->code == PROPHET_OpExit) {
			log_moment(s, at);
			return;
		}
		issue(s, op);
		if (s->stopped)
			return;
		end = s->room || wakes ? ticks() : 0;
		settle(s, op, wakes ? end - begin : 0);
		if (op->code != PROPHET_OpCPU) {
			if (s->logged < s->room) {
				/* What came before a turn did not wait for it. */
				u64 over = run.strict && op->code == PROPHET_OpTurn ? begin : end;
				s->log[s->logged++] = (struct proglog){begin, over, was | (s->guessed ? PROPHET_LogUnknown : 0), s->seq, s->result};
				s->guessed = false;
				s->state->logged = s->logged; /* others may end the process, or the run */
			} else {
				s->state->cut++;
			}
		}
		atomic_store_explicit(&s->state->done, atomic_load_explicit(&s->state->done, memory_order_relaxed) + 1, memory_order_relaxed);
		if (op->flags & PROPHET_OpMust && (s->result < 0 ? s->result : 0) != (op->want < 0 ? op->want : 0))
			diverge(s);
		if (s->next != ~0ull) {
			at = s->next;
			s->next = ~0ull;
		} else if (op->flags & PROPHET_OpRole && !s->result && s->back == ~0ull)
			at = role(s, op, at);
		else if (op->flags & PROPHET_OpChoice)
			at = way_on(s, at);
		else
			at++;
		remember(s, was);
		if (s->home && s->away > AWAY && s->held == s->held_then) { /* not with locks that its own way does not have there */
			at = (u64)(s->home - run.ops) + 1;
			s->home = NULL;
			unknown_way(s);
		}
		if (s->back != ~0ull && at == s->stop) {
			at = s->back;
			s->back = ~0ull;
		}
	}
}

void run_thread(u32 n)
{
	const struct progthread *t = &run.threads[n];
	struct self me = {.n = n,
			  .as = n,
			  .proc = t->proc,
			  .state = &run.state[n],
			  .log = run.log[n],
			  .room = run.room[n],
			  .burn = &run.burns[n],
			  .back = ~0ull,
			  .next = ~0ull};
	struct self *s = &me;
	if (burn_thread_start(s->burn, &run.burn))
		fail(ENOMEM);
	atomic_store(&s->state->tid, (u32)syscall(SYS_gettid));
	log_moment(s, t->first);
	s->state->logged = s->logged;
	run_ops(s, t->first);
	burn_thread_end(s->burn, &run.burn);
	if (s->stopped) {
		s->state->logged = s->logged;
		atomic_store(&s->state->runs, 0);
		return;
	}
	if (s->op->code == PROPHET_OpExit)
		end_process(s);
	if (run.procs[0].main == s->op->obj && s->op->code == PROPHET_OpEnd)
		run_ends();
	s->state->logged = s->logged;
	atomic_store(&s->state->runs, 0);
	if (s->home) /* it has come to the end of another's way */
		end_of(end_on((u64)(s->home - run.ops)));
	else
		end_of(s->op->code == PROPHET_OpEnd ? s->op->obj : n);
}

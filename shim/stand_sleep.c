/* Sleeps in a re-execution. They take no time, but programs use them to wait for one another: until a flag is set, a file is there, a
 * thread has had the time to begin. So a sleep ends when everybody else of the run waits for something, and of those that sleep the
 * one that woke first in the recording wakes first. That is the order of the recorded run wherever nobody computed for as long as
 * another slept. Where somebody goes on computing, a sleep is over when it has taken its own time.
 *
 * In serial runs the turns say all that, and where the run is to be learnt from, its order is another.
 */
#include "feed.h"
#include "serial.h"
#include <errno.h>

#define LEAST_NS 50000 /* what is shorter is no wait for others */
#define MORE_NS 5000000 /* than it took, for others that are slower now */
#define PATIENCE_NS 100000000 /* in all, of a thread; and as long for threads that have not begun, or that nobody knows of */
#define CROWD 64 /* threads */
#define NAP_NS 30000
#define NAP_NS_MAX 1000000
#define NS_OF(ticks) ((ticks) / (shim_gap / 40) * 1000) /* shim_gap is 40 µs of ticks */
#define BEGIN_NS 200000 /* of CPU time: a thread that began later than its creator went on waits for that so long */
#define FOREVER (~0ull >> 1)
#define SLOW_NS 300000 /* of CPU time: what a beginning may take longer than it took */
#define CLOCK_OF(tid) ((int)(~(tid) << 3 | 6)) /* the CPU time of a thread of this process */

static u64 read_ns(int clock)
{
	struct timespec ts = {0, 0};
	sys(SYS_clock_gettime, clock, &ts);
	return (u64)ts.tv_sec * 1000000000u + (u64)ts.tv_nsec;
}

static u64 now_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

/* CPU time of the others of this process: on a busy machine that tells how far they may have come, and time does not. */
static u64 others_ns(void)
{
	u64 mine = read_ns(CLOCK_THREAD_CPUTIME_ID);
	return read_ns(CLOCK_PROCESS_CPUTIME_ID) - mine;
}

/* Threads of this process, as the kernel counts them: links of its directory, less two for itself and its parent. */
static u32 tasks(void)
{
	struct stat st;
	return sys(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &st, 0) == 0 && st.st_nlink > 2 ? (u32)st.st_nlink - 2 : 0;
}

/* Whether a thread may still do something before who sleeps until then wakes. */
static int may_run(const struct replaythread *th, u64 wakes, u32 mine)
{
	u32 now = __atomic_load_n(&th->now, __ATOMIC_ACQUIRE);
	u64 other = __atomic_load_n(&th->wakes, __ATOMIC_ACQUIRE);
	if (!now || now == ~0u || sys(SYS_tkill, now, 0) == -ESRCH)
		return 0;
	if (other)
		return other < wakes || (other == wakes && th->uid < mine);
	return !shim_sleeps(now);
}

enum { NOBODY, SOMEBODY, PERHAPS /* there is a thread that has not begun */ };

/* Whether anybody may; sum tells looks apart. */
static int others_run(const struct thr *t, u64 wakes, u64 *sum)
{
	const struct replaythread *th = shim_index_threads();
	u32 i, here = 0, looked = 0;
	*sum = 0;
	for (i = 1; i < shim_index->threads; i++) {
		u32 state = th[i].uid ? __atomic_load_n(&th[i].state, __ATOMIC_ACQUIRE) : PROPHET_TurnNone;
		*sum += th[i].event + state;
		if (state == PROPHET_TurnNone || state == PROPHET_TurnOver)
			continue;
		here += th[i].proc == t->proc;
		if (i == t->uid)
			continue;
		if (may_run(&th[i], wakes, t->uid))
			return SOMEBODY;
		if (++looked > CROWD)
			return NOBODY;
	}
	return here < tasks() ? PERHAPS : NOBODY;
}

/* Others may be slower than they were: some waits last longer, but not many; none lasts when the others have computed for that long. */
static void asleep(struct thr *t, u64 wakes, u64 ns, u64 more, i64 computed)
{
	struct replaythread *th = t->re->th;
	struct timespec nap = {0, NAP_NS};
	u64 begin = now_ns(), others = others_ns(), now = begin, last, sum, before = 0;
	int run;
	more = more < PATIENCE_NS - t->re->waited ? more : PATIENCE_NS - t->re->waited;
	__atomic_store_n(&th->wakes, wakes, __ATOMIC_RELEASE);
	while (now - begin < ns + more && (i64)(others_ns() - others) < computed) {
		run = others_run(t, wakes, &sum);
		if (run == SOMEBODY || (run == PERHAPS && t->re->strange < PATIENCE_NS))
			before = 0;
		else if (before == sum + 1)
			break;
		else
			before = sum + 1;
		if (__atomic_load_n(&shim_index->diverged, __ATOMIC_ACQUIRE) || shim_re_detached())
			break; /* the next call sees to it */
		sys(SYS_nanosleep, &nap, 0);
		shim_park();
		if (nap.tv_nsec < NAP_NS_MAX && before == 0)
			nap.tv_nsec += nap.tv_nsec / 2;
		last = now;
		now = now_ns();
		if (run == PERHAPS)
			t->re->strange += now - last;
	}
	if (now - begin > ns)
		t->re->waited += now - begin - ns < more ? now - begin - ns : more;
	__atomic_store_n(&th->wakes, 0, __ATOMIC_RELEASE);
}

/* Among very many nobody can look at all the others all the time. */
static int paced(void)
{
	return !shim_ctl.serial && !shim_index->token && !(shim_index->flags & (PROPHET_ReplayLearn | PROPHET_ReplayRealtime)) && tasks() <= CROWD;
}

void shim_re_sleep(const struct expect *x, u64 ns)
{
	if (shim_index->flags & PROPHET_ReplayRealtime) {
		struct timespec ts = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
		if (x->ret == 0)
			sys(SYS_nanosleep, &ts, 0);
	} else if (ns >= LEAST_NS && paced()) {
		asleep(shim_self.thr, x->over, ns, MORE_NS, FOREVER);
	}
}

/* A thread that ran before its creator went on: it comes to where it waits, or has computed for as long. */
static void let_begin(struct thr *t, u32 uid, u64 over)
{
	struct replaythread *th = &shim_index_threads()[uid], *me = t->re->th;
	struct timespec nap = {0, 15000};
	u64 base, begin = now_ns(), took, more = PATIENCE_NS - t->re->waited;
	int rests;
	if (uid >= shim_index->threads || !th->uid || !th->chunks || th->first >= shim_index->chunks)
		return;
	base = shim_index_chunks()[th->first].base;
	if (base >= over)
		return;
	__atomic_store_n(&me->wakes, over, __ATOMIC_RELEASE);
	for (took = 0, rests = 0; took < more && rests < 2 && !shim_re_detached(); took = now_ns() - begin) {
		u32 state = __atomic_load_n(&th->state, __ATOMIC_ACQUIRE);
		if (state == PROPHET_TurnOver)
			break;
		if (state != PROPHET_TurnNone) {
			if (read_ns(CLOCK_OF(__atomic_load_n(&th->now, __ATOMIC_ACQUIRE))) > NS_OF(over - base) * 4 + SLOW_NS)
				break;
			rests = may_run(th, over, t->uid) ? 0 : rests + 1; /* one rest may be within what is ours */
		}
		sys(SYS_nanosleep, &nap, 0);
		shim_park();
	}
	t->re->waited += took < more ? took : more;
	__atomic_store_n(&me->wakes, 0, __ATOMIC_RELEASE);
}

void shim_re_came(struct thr *t)
{
	const struct replaythread *th = t->re->th;
	if (paced() && th->chunks && th->first < shim_index->chunks)
		asleep(t, shim_index_chunks()[th->first].base, 0, PATIENCE_NS, BEGIN_NS);
}

static int timed_out(u32 call, i64 ret)
{
	switch (call) {
	case CALL_poll:
	case CALL___poll:
	case CALL_ppoll:
	case CALL_select:
	case CALL___select:
	case CALL_pselect:
	case CALL_epoll_wait:
	case CALL_epoll_pwait:
	case CALL_epoll_pwait2:
		return ret == 0;
	}
	return ret == ETIMEDOUT || ret == -ETIMEDOUT || ret == -EAGAIN;
}

void shim_re_passed(struct thr *t, u32 call, u64 object, i64 ret, u64 over, u64 took)
{
	int makes = call == CALL_pthread_create || call == CALL_thrd_create;
	if (took < shim_gap /* 40 µs */ || !(makes ? ret == 0 : timed_out(call, ret)) || !paced())
		return;
	if (makes)
		let_begin(t, (u32)(object >> 40), over);
	else
		asleep(t, over, NS_OF(took), MORE_NS, FOREVER);
}

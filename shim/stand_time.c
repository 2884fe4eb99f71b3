/* Timers in a re-execution: their signals come from the trace, so a timer that is really made tells nobody. Nor does one
 * whose end starts a thread (SIGEV_THREAD): time passes otherwise here. The trace has such threads, and between which two of
 * its own events whoever set the timer was when one began, or was over: there it starts it, and waits for it. What
 * overlapped in time does so here.
 */
#include "family.h"
#include "feed.h"
#include "pause.h"
#include "pids.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>

static int re_timer_create(clockid_t clk, struct sigevent *restrict sev, timer_t *restrict id)
{
	struct expect *x = shim_re_of(CALL_timer_create);
	struct sigevent room = {.sigev_notify = SIGEV_NONE}, *is = &room;
	int r;
	if (!x)
		return TRUE(timer_create)(clk, sev, id);
	if (x->ret < 0)
		return (int)shim_re_ret(x);
	if (x->f2 == SIGEV_THREAD)
		is = shim_timer_threads(sev, &room);
	r = TRUE(timer_create)(clk, is, id);
	if (r != 0 && x->f2 == SIGEV_THREAD)
		shim_timer_not_made(is, &room);
	return r;
}
STANDIN(timer_create, re_timer_create)

/* In traces of before threads of timers were told apart, they are there as threads that were found. */
static int unnumbered(const struct thr *t)
{
	const struct replaythread *th = shim_index_threads();
	u32 i;
	for (i = 1; i < shim_index->threads; i++)
		if (th[i].uid && th[i].proc == t->proc && th[i].how == PROPHET_ThreadFound && !th[i].timer)
			return 1;
	return 0;
}

static int re_timer_settime(timer_t id, int flags, const struct itimerspec *restrict set, struct itimerspec *restrict old)
{
	struct expect *x = shim_re_of(CALL_timer_settime);
	int r = 0;
	if (!x)
		return TRUE(timer_settime)(id, flags, set, old);
	if (x->ret < 0)
		return (int)shim_re_ret(x);
	if (unnumbered(shim_self.thr))
		r = TRUE(timer_settime)(id, flags, set, 0);
	feed_itimerspec(x, old);
	return r;
}
STANDIN(timer_settime, re_timer_settime)

static void *begin(void *nth)
{
	u64 none = 0;
	sys(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, 8); /* as the C library has it */
	shim_timer_fire((u32)(u64)nth);
	return 0;
}

static void start(struct replaythread *th)
{
	pthread_attr_t a;
	pthread_t made;
	int wanted, r;
	pthread_attr_init(&a);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	wanted = shim_family_want((i64)th->tid);
	r = TRUE(pthread_create)(&made, &a, begin, (void *)(u64)th->timer);
	if (wanted)
		shim_pid_done(r == 0 ? (i64)th->tid : -1);
	pthread_attr_destroy(&a);
}

/* Not when its part of the trace is used up, as it may still do what no event tells. */
static void over(struct thr *t, u32 uid)
{
	const struct replaythread *th = &shim_index_threads()[uid];
	for (;;) {
		u32 state = __atomic_load_n(&th->state, __ATOMIC_ACQUIRE), now = __atomic_load_n(&th->now, __ATOMIC_ACQUIRE);
		if (state == PROPHET_TurnOver || state == PROPHET_TurnEnd || shim_re_detached())
			return;
		if (now && now != ~0u && sys(SYS_tgkill, shim_run.pid, now, 0) == -ESRCH)
			return;
		shim_re_yield(t, shim_thread_object(uid));
	}
}

/* In the order in which they began. In a serial run their turns say more than what was over. */
void shim_re_fires(struct thr *t, u64 event, int begins)
{
	struct replaythread *all = shim_index_threads(), *me = t->re->th, *th;
	u32 uid;
	for (uid = me->starts; uid && uid < shim_index->threads && all[uid].start <= event && !shim_re_detached(); uid = th->next) {
		th = &all[uid];
		if (!th->started && begins) {
			th->started = 1;
			start(th);
		}
		if (th->started == 1 && (th->behind <= event || shim_ctl.serial)) {
			if (!shim_ctl.serial && event != ~0ull)
				over(t, uid);
			th->started = 2;
		}
		if (th->started == 2 && me->starts == uid)
			me->starts = th->next;
	}
}

void shim_re_fired(struct thr *t)
{
	if (t->re->th->after && !shim_ctl.serial)
		over(t, t->re->th->after);
}

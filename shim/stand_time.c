/* Timers in a re-execution: their signals come from the trace, so a timer that is really made tells nobody. One whose
 * end starts a thread does start it, as that thread's calls are in the trace.
 */
#include "feed.h"
#include <signal.h>

static int re_timer_create(clockid_t clk, struct sigevent *restrict sev, timer_t *restrict id)
{
	struct expect *x = shim_re_of(CALL_timer_create);
	struct sigevent none = {.sigev_notify = SIGEV_NONE};
	if (!x)
		return TRUE(timer_create)(clk, sev, id);
	if (x->ret < 0)
		return (int)shim_re_ret(x);
	return TRUE(timer_create)(clk, x->f2 == SIGEV_THREAD ? sev : &none, id);
}
STANDIN(timer_create, re_timer_create)

static int re_timer_settime(timer_t id, int flags, const struct itimerspec *restrict set, struct itimerspec *restrict old)
{
	struct expect *x = shim_re_of(CALL_timer_settime);
	int r;
	if (!x)
		return TRUE(timer_settime)(id, flags, set, old);
	if (x->ret < 0)
		return (int)shim_re_ret(x);
	r = TRUE(timer_settime)(id, flags, set, 0);
	feed_itimerspec(x, old);
	return r;
}
STANDIN(timer_settime, re_timer_settime)

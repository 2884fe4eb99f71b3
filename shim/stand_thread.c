/* Stand-ins for threads: creation, joining and cancellation. A thread is cancelled where the trace says: whoever cancels
 * it says so, and it does it itself when it is there.
 */
#include "family.h"
#include "pids.h"
#include "steps_proc.h"
#include <errno.h>
#include <time.h>

/* Cancellation: who comes second of the one who cancels (1) and the one who may be cancelled now (2) does it. */

static void cancel_self(void)
{
	TRUE(pthread_cancel)(pthread_self());
}

void shim_re_may_cancel(struct thr *t)
{
	u32 was = __atomic_load_n(&t->re->th->cancel, __ATOMIC_ACQUIRE);
	if (was != 2 && __atomic_exchange_n(&t->re->th->cancel, 2, __ATOMIC_ACQ_REL) == 1)
		cancel_self();
}

void shim_re_not_cancelled(struct thr *t)
{
	u32 ready = 2;
	__atomic_compare_exchange_n(&t->re->th->cancel, &ready, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* What calls others has their events first, and goes on; anything else waits here. */
void shim_re_cancelled(struct thr *t)
{
	struct timespec ts = {0, 200000};
	const struct expect *x = shim_expect(&t->re->ex), *later = shim_re_ahead(x->call, 0);
	if (later && later->ret == ECANCELED)
		return; /* a wait at a condition, which lets go of its mutex first */
	if (shim_re_flags[x->call] & RE_NESTS) {
		shim_re_may_cancel(t);
		return;
	}
	t->re->th->object = 0;
	shim_expect_drop(&t->re->ex);
	shim_re_may_cancel(t);
	for (;;) {
		TRUE(pthread_testcancel)();
		__atomic_store_n(&t->re->th->state, PROPHET_TurnWaits, __ATOMIC_RELEASE);
		if (__atomic_load_n(&shim_index->diverged, __ATOMIC_ACQUIRE))
			shim_re_stop(t, PROPHET_TurnStopped);
		sys(SYS_nanosleep, &ts, 0);
		__atomic_store_n(&t->re->th->state, PROPHET_TurnRuns, __ATOMIC_RELEASE);
		if (shim_re_detached())
			return;
		shim_park();
	}
}

/* It was cancelled at a place that is not seen, and its cleanup is what comes next. */
void shim_re_maybe_cancelled(struct thr *t)
{
	struct timespec ts = {0, 1000000};
	u32 i;
	for (i = 0; i < 300 && shim_run.threads > 1; i++) {
		if (__atomic_load_n(&t->re->th->cancel, __ATOMIC_ACQUIRE) == 1) {
			shim_re_may_cancel(t);
			TRUE(pthread_testcancel)();
			return;
		}
		sys(SYS_nanosleep, &ts, 0);
	}
}

static int re_pthread_cancel(pthread_t th)
{
	struct expect *x = shim_re_of(CALL_pthread_cancel);
	u64 uid = x ? x->obj >> 40 : 0;
	if (!x)
		return TRUE(pthread_cancel)(th);
	if (x->ret == 0 && uid && uid < shim_index->threads && __atomic_exchange_n(&shim_index_threads()[uid].cancel, 1, __ATOMIC_ACQ_REL) == 2)
		return TRUE(pthread_cancel)(th);
	return (int)x->ret;
}
STANDIN(pthread_cancel, re_pthread_cancel)

/* Threads: what could not be created is not tried; a wait that ended waits, one that timed out does not. */

/* The creation under way is of the thread that the event names. */
static i64 tid_of(const struct expect *x)
{
	u64 uid = x->obj >> 40;
	return uid && uid < shim_index->threads ? (i64)shim_index_threads()[uid].tid : 0;
}

/* The C library no longer counts on one thread once another was asked for. */
static int not_created(const struct expect *x)
{
	__libc_single_threaded = 0;
	return (int)x->ret;
}

static int re_pthread_create(pthread_t *th, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	struct expect *x = shim_re_of(CALL_pthread_create);
	i64 was = x ? tid_of(x) : 0;
	int r, wanted;
	if (x && x->ret)
		return not_created(x);
	wanted = shim_family_want(was);
	r = TRUE(pthread_create)(th, attr, start, arg);
	if (wanted)
		shim_pid_done(r == 0 ? was : -1); /* which id it has it says itself */
	return r;
}
STANDIN(pthread_create, re_pthread_create)

static int re_thrd_create(thrd_t *th, thrd_start_t start, void *arg)
{
	struct expect *x = shim_re_of(CALL_thrd_create);
	i64 was = x ? tid_of(x) : 0;
	int r, wanted;
	if (x && x->ret)
		return not_created(x);
	wanted = shim_family_want(was);
	r = TRUE(thrd_create)(th, start, arg);
	if (wanted)
		shim_pid_done(r == thrd_success ? was : -1);
	return r;
}
STANDIN(thrd_create, re_thrd_create)

/* Which one a handle stands for may have been, or be, unknown: creators remember the latest. */
static void joins(const struct expect *x, pthread_t th)
{
	u32 uid = x ? shim_uid_of(th) : 0;
	if (x && uid && x->obj && x->obj != shim_thread_object(uid))
		shim_re_differs(shim_self.thr, x, PROPHET_DiffersObject, x->call, x->obj, shim_thread_object(uid), "");
}

#define JOIN(name, params, args)                                            \
	static int re_##name params                                         \
	{                                                                   \
		struct expect *x = shim_re_of(CALL_##name);                 \
		if (x && x->ret)                                            \
			return (int)x->ret;                                 \
		joins(x, th);                                               \
		return x ? TRUE(pthread_join)(th, value) : TRUE(name) args; \
	}                                                                   \
	STANDIN(name, re_##name)
JOIN(pthread_join, (pthread_t th, void **value), (th, value))
JOIN(pthread_tryjoin_np, (pthread_t th, void **value), (th, value))
JOIN(pthread_timedjoin_np, (pthread_t th, void **value, const struct timespec *until), (th, value, until))
JOIN(pthread_clockjoin_np, (pthread_t th, void **value, clockid_t clk, const struct timespec *until), (th, value, clk, until))

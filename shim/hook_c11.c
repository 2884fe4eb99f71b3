/* Mutexes and threads of C11. mtx_t is the C library's pthread_mutex_t under another name (threads.h says so of
 * neither, the library's own code does), and is named and numbered like one. Results are recorded as error numbers.
 */
#include "steps_sync.h"
#include <threads.h>

static inline pthread_mutex_t *mutex(mtx_t *m)
{
	return (pthread_mutex_t *)m;
}

static inline int begin(struct ev *e, u32 call, mtx_t *m, void *pc, int waits)
{
	if (!shim_begin(e, call, CLASS_sync, pc))
		return 0;
	if (waits && mutex(m)->__data.__lock && (u32)mutex(m)->__data.__owner != e->t->tid)
		e->note |= PROPHET_NoteWaited;
	e->f1 = (u64)m;
	return 1;
}

static inline int got(struct ev *e, mtx_t *m, int r)
{
	shim_end(e, e->note & PROPHET_NoteWaited);
	e->ret = shim_thrd_err(r);
	e->obj = shim_mutex_name(e->t, mutex(m), r == thrd_success);
	if (r == thrd_success)
		e->seq = shim_mutex_next(e->t, mutex(m));
	shim_done(e);
	return r;
}

static NOINLINE int lock_event(mtx_t *m, void *pc)
{
	struct ev e;
	if (!begin(&e, CALL_mtx_lock, m, pc, 1))
		return REAL(mtx_lock)(m);
	return got(&e, m, REAL(mtx_lock)(m));
}

EXPORT int mtx_lock(mtx_t *m)
{
	struct thr *t = sync_quick();
	struct mutex_words *w = mutex_words(mutex(m));
	u64 now;
	int r;
	if (unlikely(!t || mutex(m)->__data.__lock || !sync_mutex_known(mutex(m))))
		return lock_event(m, CALLER());
	r = REAL(mtx_lock)(m);
	now = shim_ticks();
	if (likely(r == thrd_success))
		sync_event(t, CALL_mtx_lock, CALLER(), w->id, (u64)m, 0, ++w->seq & MUTEX_SEQ, now);
	else
		shim_sync_late(t, CALL_mtx_lock, CALLER(), w->id, shim_thrd_err(r), (u64)m, 0, 0, now, now);
	return r;
}

EXPORT int mtx_trylock(mtx_t *m)
{
	struct ev e;
	if (!begin(&e, CALL_mtx_trylock, m, CALLER(), 0))
		return REAL(mtx_trylock)(m);
	return got(&e, m, REAL(mtx_trylock)(m));
}

EXPORT int mtx_timedlock(mtx_t *m, const struct timespec *until)
{
	struct ev e;
	if (!begin(&e, CALL_mtx_timedlock, m, CALLER(), 1))
		return REAL(mtx_timedlock)(m, until);
	return got(&e, m, REAL(mtx_timedlock)(m, until));
}

static NOINLINE int unlock_event(mtx_t *m, void *pc)
{
	struct ev e;
	int r;
	if (!begin(&e, CALL_mtx_unlock, m, pc, 0))
		return REAL(mtx_unlock)(m);
	e.obj = shim_mutex_name(e.t, mutex(m), 0);
	r = REAL(mtx_unlock)(m);
	shim_end(&e, WRAP_ONCE);
	e.ret = shim_thrd_err(r);
	shim_done(&e);
	return r;
}

EXPORT int mtx_unlock(mtx_t *m)
{
	struct thr *t = sync_quick();
	u64 id, now;
	int r;
	if (unlikely(!t || !sync_mutex_known(mutex(m))))
		return unlock_event(m, CALLER());
	id = mutex_words(mutex(m))->id;
	now = shim_ticks();
	r = REAL(mtx_unlock)(m);
	if (likely(r == thrd_success))
		sync_event(t, CALL_mtx_unlock, CALLER(), id, (u64)m, 0, 0, now);
	else
		shim_sync_late(t, CALL_mtx_unlock, CALLER(), id, shim_thrd_err(r), (u64)m, 0, 0, now, now);
	return r;
}

EXPORT int mtx_init(mtx_t *m, int kind)
{
	struct ev e;
	int r, on = begin(&e, CALL_mtx_init, m, CALLER(), 0);
	r = REAL(mtx_init)(m, kind);
	if (!on)
		return r;
	shim_end(&e, WRAP_ONCE);
	e.ret = shim_thrd_err(r);
	e.f2 = (u64)kind;
	if (r == thrd_success)
		e.obj = shim_mutex_name(e.t, mutex(m), 1);
	shim_done(&e);
	return r;
}

EXPORT void mtx_destroy(mtx_t *m)
{
	struct ev e;
	if (!begin(&e, CALL_mtx_destroy, m, CALLER(), 0)) {
		REAL(mtx_destroy)(m);
		return;
	}
	e.obj = shim_mutex_name(e.t, mutex(m), 0);
	REAL(mtx_destroy)(m);
	shim_end(&e, WRAP_ONCE);
	shim_done(&e);
}

EXPORT void thrd_yield(void)
{
	struct ev e;
	if (!shim_begin(&e, CALL_thrd_yield, CLASS_sync, CALLER())) {
		REAL(thrd_yield)();
		return;
	}
	REAL(thrd_yield)();
	shim_end(&e, WRAP_BLOCK);
	shim_done(&e);
}

/* The header makes the name mean sched_yield. */
EXPORT int old_yield(void) __asm__("pthread_yield");
int old_yield(void)
{
	struct ev e;
	int r;
	if (!shim_begin(&e, CALL_pthread_yield, CLASS_sync, CALLER()))
		return REAL(sched_yield)();
	r = REAL(sched_yield)();
	shim_end(&e, WRAP_BLOCK);
	e.ret = shim_ret_errno(r);
	shim_done(&e);
	return r;
}

/* Spin locks. The place in the order is taken while the lock is held. The entry is looked up before, so that the lock
 * is not held longer than one addition takes.
 */
#include "steps_sync.h"

static NOINLINE int lock_event(pthread_spinlock_t *l, void *pc)
{
	struct ev e;
	struct object_entry *o;
	int r;
	if (!shim_begin(&e, CALL_pthread_spin_lock, CLASS_sync, pc))
		return REAL(pthread_spin_lock)(l);
	if (*l != SHIM_SPIN_FREE)
		e.note |= PROPHET_NoteWaited;
	o = shim_object(e.t, PROPHET_ObjSpin, (void *)l);
	r = REAL(pthread_spin_lock)(l);
	if (r == 0)
		e.seq = ++o->seq;
	shim_end(&e, e.note & PROPHET_NoteWaited);
	e.ret = r;
	e.obj = o->id;
	e.f1 = (u64)l;
	shim_done(&e);
	return r;
}

EXPORT int pthread_spin_lock(pthread_spinlock_t *l)
{
	struct thr *t = sync_quick();
	struct object_entry *o;
	u64 seq;
	if (unlikely(!t || *l != SHIM_SPIN_FREE))
		return lock_event(l, CALLER());
	o = shim_object(t, PROPHET_ObjSpin, (void *)l);
	REAL(pthread_spin_lock)(l); /* cannot fail */
	seq = ++o->seq;
	sync_event(t, CALL_pthread_spin_lock, CALLER(), o->id, (u64)l, 0, seq, shim_ticks());
	return 0;
}

EXPORT int pthread_spin_trylock(pthread_spinlock_t *l)
{
	struct ev e;
	struct object_entry *o;
	int r;
	if (!shim_begin(&e, CALL_pthread_spin_trylock, CLASS_sync, CALLER()))
		return REAL(pthread_spin_trylock)(l);
	o = shim_object(e.t, PROPHET_ObjSpin, (void *)l);
	r = REAL(pthread_spin_trylock)(l);
	if (r == 0)
		e.seq = ++o->seq;
	shim_end(&e, WRAP_ONCE);
	e.ret = r;
	e.obj = o->id;
	e.f1 = (u64)l;
	shim_done(&e);
	return r;
}

static NOINLINE int unlock_event(pthread_spinlock_t *l, void *pc)
{
	struct ev e;
	int r;
	if (!shim_begin(&e, CALL_pthread_spin_unlock, CLASS_sync, pc))
		return REAL(pthread_spin_unlock)(l);
	e.obj = shim_object(e.t, PROPHET_ObjSpin, (void *)l)->id;
	e.f1 = (u64)l;
	r = REAL(pthread_spin_unlock)(l);
	shim_end(&e, WRAP_ONCE);
	e.ret = r;
	shim_done(&e);
	return r;
}

EXPORT int pthread_spin_unlock(pthread_spinlock_t *l)
{
	struct thr *t = sync_quick();
	u64 id, now;
	if (unlikely(!t))
		return unlock_event(l, CALLER());
	id = shim_object(t, PROPHET_ObjSpin, (void *)l)->id;
	now = shim_ticks();
	REAL(pthread_spin_unlock)(l);
	sync_event(t, CALL_pthread_spin_unlock, CALLER(), id, (u64)l, 0, 0, now);
	return 0;
}

EXPORT int pthread_spin_init(pthread_spinlock_t *l, int shared)
{
	struct ev e;
	int on = sync_begin_init(&e, CALL_pthread_spin_init, PROPHET_ObjSpin, (void *)l, CALLER());
	return sync_end_init(&e, on, PROPHET_ObjSpin, (void *)l, REAL(pthread_spin_init)(l, shared));
}

EXPORT int pthread_spin_destroy(pthread_spinlock_t *l)
{
	struct ev e;
	int on = sync_begin_destroy(&e, CALL_pthread_spin_destroy, PROPHET_ObjSpin, (void *)l, CALLER());
	return sync_end_destroy(&e, on, REAL(pthread_spin_destroy)(l));
}

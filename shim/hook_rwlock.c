/* Read-write locks. A writer's place in the order is its epoch, taken while it holds the lock alone; with it stands how
 * many readers had the lock since the writer before. A reader stores the epoch it reads in, and counts itself while
 * it holds the lock, so that both are exact.
 */
#include "steps_sync.h"

#define WRITER 2 /* in __readers: a writer has the lock or is about to */

static inline u32 peek(const pthread_rwlock_t *l)
{
	return __atomic_load_n(&l->__data.__readers, __ATOMIC_RELAXED);
}

static inline int held_by_writer(const pthread_rwlock_t *l)
{
	return (peek(l) & WRITER) != 0;
}

static inline int held(const pthread_rwlock_t *l)
{
	return (peek(l) & ~1u) != 0;
}

/* Counts a reader; the epoch. */
static inline u64 reads(struct object_entry *o)
{
	__atomic_add_fetch(&o->readers, 1, __ATOMIC_RELAXED);
	return __atomic_load_n(&o->seq, __ATOMIC_RELAXED);
}

/* Begins an epoch; *readers: of the one before. Only the writer is here. */
static inline u64 writes(struct object_entry *o, u64 *readers)
{
	u64 seq = o->seq + 1;
	*readers = o->readers;
	o->readers = 0;
	__atomic_store_n(&o->seq, seq, __ATOMIC_RELAXED);
	return seq;
}

static inline int begin(struct ev *e, u32 call, pthread_rwlock_t *l, void *pc, int waits)
{
	if (!shim_begin(e, call, CLASS_sync, pc))
		return 0;
	if (waits)
		e->note |= PROPHET_NoteWaited;
	e->f1 = (u64)l;
	return 1;
}

static inline int read_end(struct ev *e, pthread_rwlock_t *l, int r)
{
	struct object_entry *o;
	shim_end(e, e->note & PROPHET_NoteWaited);
	o = shim_object(e->t, PROPHET_ObjRwlock, l);
	e->obj = o->id;
	e->ret = r;
	if (r == 0)
		e->f2 = reads(o);
	shim_done(e);
	return r;
}

static inline int write_end(struct ev *e, pthread_rwlock_t *l, int r)
{
	struct object_entry *o;
	shim_end(e, e->note & PROPHET_NoteWaited);
	o = shim_object(e->t, PROPHET_ObjRwlock, l);
	e->obj = o->id;
	e->ret = r;
	if (r == 0)
		e->seq = writes(o, &e->f2);
	shim_done(e);
	return r;
}

static NOINLINE int rdlock_event(pthread_rwlock_t *l, void *pc)
{
	struct ev e;
	if (!begin(&e, CALL_pthread_rwlock_rdlock, l, pc, held_by_writer(l)))
		return REAL(pthread_rwlock_rdlock)(l);
	return read_end(&e, l, REAL(pthread_rwlock_rdlock)(l));
}

EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
	struct thr *t = sync_quick();
	struct object_entry *o;
	int r;
	if (unlikely(!t || held_by_writer(l)))
		return rdlock_event(l, CALLER());
	r = REAL(pthread_rwlock_rdlock)(l);
	o = shim_object(t, PROPHET_ObjRwlock, l);
	if (likely(r == 0)) {
		sync_event(t, CALL_pthread_rwlock_rdlock, CALLER(), o->id, (u64)l, reads(o), 0, shim_ticks());
	} else {
		u64 now = shim_ticks();
		shim_sync_late(t, CALL_pthread_rwlock_rdlock, CALLER(), o->id, r, (u64)l, 0, 0, now, now);
	}
	return r;
}

static NOINLINE int wrlock_event(pthread_rwlock_t *l, void *pc)
{
	struct ev e;
	if (!begin(&e, CALL_pthread_rwlock_wrlock, l, pc, held(l)))
		return REAL(pthread_rwlock_wrlock)(l);
	return write_end(&e, l, REAL(pthread_rwlock_wrlock)(l));
}

EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *l)
{
	struct thr *t = sync_quick();
	struct object_entry *o;
	u64 readers, seq;
	int r;
	if (unlikely(!t || held(l)))
		return wrlock_event(l, CALLER());
	r = REAL(pthread_rwlock_wrlock)(l);
	o = shim_object(t, PROPHET_ObjRwlock, l);
	if (likely(r == 0)) {
		seq = writes(o, &readers);
		sync_event(t, CALL_pthread_rwlock_wrlock, CALLER(), o->id, (u64)l, readers, seq, shim_ticks());
	} else {
		u64 now = shim_ticks();
		shim_sync_late(t, CALL_pthread_rwlock_wrlock, CALLER(), o->id, r, (u64)l, 0, 0, now, now);
	}
	return r;
}

EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *l)
{
	struct ev e;
	if (!begin(&e, CALL_pthread_rwlock_tryrdlock, l, CALLER(), 0))
		return REAL(pthread_rwlock_tryrdlock)(l);
	return read_end(&e, l, REAL(pthread_rwlock_tryrdlock)(l));
}

EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *l)
{
	struct ev e;
	if (!begin(&e, CALL_pthread_rwlock_trywrlock, l, CALLER(), 0))
		return REAL(pthread_rwlock_trywrlock)(l);
	return write_end(&e, l, REAL(pthread_rwlock_trywrlock)(l));
}

EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *l, const struct timespec *until)
{
	struct ev e;
	if (!begin(&e, CALL_pthread_rwlock_timedrdlock, l, CALLER(), held_by_writer(l)))
		return REAL(pthread_rwlock_timedrdlock)(l, until);
	return read_end(&e, l, REAL(pthread_rwlock_timedrdlock)(l, until));
}

EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *l, const struct timespec *until)
{
	struct ev e;
	if (!begin(&e, CALL_pthread_rwlock_timedwrlock, l, CALLER(), held(l)))
		return REAL(pthread_rwlock_timedwrlock)(l, until);
	return write_end(&e, l, REAL(pthread_rwlock_timedwrlock)(l, until));
}

EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *l, clockid_t clk, const struct timespec *until)
{
	struct ev e;
	if (!begin(&e, CALL_pthread_rwlock_clockrdlock, l, CALLER(), held_by_writer(l)))
		return REAL(pthread_rwlock_clockrdlock)(l, clk, until);
	return read_end(&e, l, REAL(pthread_rwlock_clockrdlock)(l, clk, until));
}

EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *l, clockid_t clk, const struct timespec *until)
{
	struct ev e;
	if (!begin(&e, CALL_pthread_rwlock_clockwrlock, l, CALLER(), held(l)))
		return REAL(pthread_rwlock_clockwrlock)(l, clk, until);
	return write_end(&e, l, REAL(pthread_rwlock_clockwrlock)(l, clk, until));
}

static NOINLINE int unlock_event(u32 call, pthread_rwlock_t *l, void *pc)
{
	struct ev e;
	int r;
	if (!begin(&e, call, l, pc, 0))
		return REAL(pthread_rwlock_unlock)(l);
	e.obj = shim_object(e.t, PROPHET_ObjRwlock, l)->id;
	e.f2 = (u32)l->__data.__cur_writer == e.t->tid;
	r = REAL(pthread_rwlock_unlock)(l);
	shim_end(&e, WRAP_ONCE);
	e.ret = r;
	shim_done(&e);
	return r;
}

/* All that is to be known of the lock is read before, since another may free it after. */
EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *l)
{
	struct thr *t = sync_quick();
	u64 id, now, writer;
	int r;
	if (unlikely(!t))
		return unlock_event(CALL_pthread_rwlock_unlock, l, CALLER());
	id = shim_object(t, PROPHET_ObjRwlock, l)->id;
	writer = (u32)l->__data.__cur_writer == t->tid;
	now = shim_ticks();
	r = REAL(pthread_rwlock_unlock)(l);
	if (likely(r == 0))
		sync_event(t, CALL_pthread_rwlock_unlock, CALLER(), id, (u64)l, writer, 0, now);
	else
		shim_sync_late(t, CALL_pthread_rwlock_unlock, CALLER(), id, r, (u64)l, writer, 0, now, now);
	return r;
}

EXPORT int pthread_rwlock_init(pthread_rwlock_t *l, const pthread_rwlockattr_t *a)
{
	struct ev e;
	int on = sync_begin_init(&e, CALL_pthread_rwlock_init, PROPHET_ObjRwlock, l, CALLER());
	return sync_end_init(&e, on, PROPHET_ObjRwlock, l, REAL(pthread_rwlock_init)(l, a));
}

EXPORT int pthread_rwlock_destroy(pthread_rwlock_t *l)
{
	struct ev e;
	int on = sync_begin_destroy(&e, CALL_pthread_rwlock_destroy, PROPHET_ObjRwlock, l, CALLER());
	return sync_end_destroy(&e, on, REAL(pthread_rwlock_destroy)(l));
}

/* The names that libraries linked against an older C library may still ask for. */
EXPORT int __pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
	struct ev e;
	if (!begin(&e, CALL___pthread_rwlock_rdlock, l, CALLER(), held_by_writer(l)))
		return REAL(pthread_rwlock_rdlock)(l);
	return read_end(&e, l, REAL(pthread_rwlock_rdlock)(l));
}

EXPORT int __pthread_rwlock_wrlock(pthread_rwlock_t *l)
{
	struct ev e;
	if (!begin(&e, CALL___pthread_rwlock_wrlock, l, CALLER(), held(l)))
		return REAL(pthread_rwlock_wrlock)(l);
	return write_end(&e, l, REAL(pthread_rwlock_wrlock)(l));
}

EXPORT int __pthread_rwlock_tryrdlock(pthread_rwlock_t *l)
{
	struct ev e;
	if (!begin(&e, CALL___pthread_rwlock_tryrdlock, l, CALLER(), 0))
		return REAL(pthread_rwlock_tryrdlock)(l);
	return read_end(&e, l, REAL(pthread_rwlock_tryrdlock)(l));
}

EXPORT int __pthread_rwlock_trywrlock(pthread_rwlock_t *l)
{
	struct ev e;
	if (!begin(&e, CALL___pthread_rwlock_trywrlock, l, CALLER(), 0))
		return REAL(pthread_rwlock_trywrlock)(l);
	return write_end(&e, l, REAL(pthread_rwlock_trywrlock)(l));
}

EXPORT int __pthread_rwlock_unlock(pthread_rwlock_t *l)
{
	return unlock_event(CALL___pthread_rwlock_unlock, l, CALLER());
}

EXPORT int __pthread_rwlock_init(pthread_rwlock_t *l, const pthread_rwlockattr_t *a)
{
	struct ev e;
	int on = sync_begin_init(&e, CALL___pthread_rwlock_init, PROPHET_ObjRwlock, l, CALLER());
	return sync_end_init(&e, on, PROPHET_ObjRwlock, l, REAL(pthread_rwlock_init)(l, a));
}

EXPORT int __pthread_rwlock_destroy(pthread_rwlock_t *l)
{
	struct ev e;
	int on = sync_begin_destroy(&e, CALL___pthread_rwlock_destroy, PROPHET_ObjRwlock, l, CALLER());
	return sync_end_destroy(&e, on, REAL(pthread_rwlock_destroy)(l));
}

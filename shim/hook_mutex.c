/* Mutexes: the hottest events there are. An uncontended lock or unlock whose key predicts it takes the path at the
 * top, inlined: one stamp, two or three bytes. Everything else goes through the common shape.
 *
 * The order number is taken while the mutex is held; an unlock has none, it lies between two acquisitions.
 */
#include "replay.h"
#include "stack.h"
#include "steps_sync.h"

/* shim_quick for what a mutex needs most: key and time, two or three bytes, all else as predicted but for the number. That one is
 * told where several places of a program, or several threads, take turns at a mutex; a release has none. */
static inline __attribute__((always_inline)) int as_predicted(struct thr *t, u64 id, u64 sc, u64 addr, u64 seq, u64 now)
{
	struct key *k = &t->keys[key_slot(id, sc)];
	struct slot *s = t->slot;
	u64 pos = s->pos, v, step;
	u8 *p = t->ring + (u32)pos;
	u32 head;
	barrier();
	v = now - t->last;
	if (unlikely(k->idx != (id ^ t->genx) || k->sc != sc || k->f1 != addr || v >= 1u << 13 || now >= t->stack_at))
		return 0;
	if (unlikely((k->ret | (k->num & ~63u)) || (u32)pos > t->limit))
		return 0;
	head = k->num * 2 + (PROPHET_FirstKey << 1 | 1);
	step = seq - key_next(k->seq);
	/* Prefix varints of one and of two bytes; see put_v. */
	if (unlikely(step)) {
		u64 w;
		if (!seq || step >= 1u << 13)
			return 0;
		/* dt in two bytes, the mask, the step's zigzag in one or two. */
		w = head | (v << 3 | PROPHET_EvMore << 2 | 2) << 8 | (u64)PROPHET_MaskSeq << 24;
		if (step < 1u << 6) {
			w |= (step << 2 | 1) << 32;
			v = pos + 5;
		} else {
			w |= (step << 3 | 2) << 32;
			v = pos + 6;
		}
		__builtin_memcpy(p, &w, 8);
	} else if (likely(v < 1u << 6)) {
		u16 w = (u16)(head | (v << 2 | 1) << 8);
		__builtin_memcpy(p, &w, 2);
		v = pos + 2;
	} else {
		u32 w = head | (u32)(v << 3 | 2) << 8;
		__builtin_memcpy(p, &w, 4);
		v = pos + 3;
	}
	t->last = now;
	if (unlikely(!shim_commit_at(&s->pos, pos, v)))
		return 0;
	if (seq)
		k->seq = seq;
	return 1;
}

static inline int acquired(int r)
{
	return r == 0 || r == EOWNERDEAD;
}

typedef int (*lock_fn)(pthread_mutex_t *);

/* Held by another, robust, shared, serial, not recorded, first event of a thread: all that is not the top. */
static NOINLINE int lock_common(lock_fn real, u32 call, pthread_mutex_t *m, void *pc)
{
	struct ev e;
	int r;
	if (!shim_begin(&e, call, CLASS_sync, pc))
		return real(m);
	if (m->__data.__lock && (u32)m->__data.__owner != e.t->tid) {
		e.note |= PROPHET_NoteWaited;
		shim_stack_holder(e.t, (u32)m->__data.__owner, e.begin);
	}
	r = real(m);
	shim_end(&e, e.note & PROPHET_NoteWaited);
	e.ret = r;
	e.obj = shim_mutex_name(e.t, m, acquired(r));
	e.f1 = (u64)m;
	if (acquired(r))
		e.seq = shim_mutex_next(e.t, m);
	shim_done(&e);
	return r;
}

static NOINLINE int lock_slow(lock_fn real, u32 call, pthread_mutex_t *m, void *pc)
{
	struct mutex_words *w = mutex_words(m);
	struct thr *t = shim_self.thr;
	int r;
	if (likely(!shim_replays) || !t || !t->gate || !t->re || m->__data.__lock || !sync_mutex_known(m) ||
	    !shim_re_quick(t, call, w->id, (w->seq & MUTEX_SEQ) + 1))
		return lock_common(real, call, m, pc);
	r = TRUE(pthread_mutex_lock)(m);
	if (unlikely(r))
		shim_re_differs(t, 0, PROPHET_DiffersResult, call, 0, (u64)r, "");
	w->seq++;
	return r;
}

static inline __attribute__((always_inline)) int lock(lock_fn real, u32 call, pthread_mutex_t *m)
{
	struct thr *t = shim_self.thr;
	struct mutex_words *w;
	u64 now, seq;
	int r;
	if (unlikely(!t || !(t->gate & shim_ctl.fast & 1u << CLASS_sync)))
		return lock_slow(real, call, m, CALLER());
	if (unlikely(m->__data.__lock != 0 || m->__data.__kind & (MUTEX_ROBUST | MUTEX_SHARED)))
		return lock_slow(real, call, m, CALLER());
	r = real(m);
	w = mutex_words(m);
	now = shim_ticks();
	if (unlikely(r != 0 || w->id == 0 || (w->seq ^ mutex_mark(m)) >> 48)) {
		u64 id = shim_mutex_name(t, m, acquired(r));
		shim_sync_late(t, call, CALLER(), id, r, (u64)m, 0, acquired(r) ? shim_mutex_next(t, m) : 0, now, now);
		return r;
	}
	seq = ++w->seq & MUTEX_SEQ;
	if (unlikely(!as_predicted(t, w->id, key_sc(CALLER(), call), (u64)m, seq, now)))
		shim_sync_late(t, call, CALLER(), w->id, 0, (u64)m, 0, seq, now, now);
	return 0;
}

static NOINLINE int unlock_common(lock_fn real, u32 call, pthread_mutex_t *m, void *pc)
{
	struct ev e;
	u64 id;
	int r;
	if (!shim_begin(&e, call, CLASS_sync, pc))
		return real(m);
	id = shim_mutex_name(e.t, m, 1);
	e.turn = mutex_words(m)->seq & MUTEX_SEQ;
	r = real(m);
	shim_end(&e, WRAP_ONCE);
	e.ret = r;
	e.obj = id;
	e.f1 = (u64)m;
	shim_done(&e);
	return r;
}

static NOINLINE int unlock_slow(lock_fn real, u32 call, pthread_mutex_t *m, void *pc)
{
	const struct mutex_words *w = mutex_words(m);
	struct thr *t = shim_self.thr;
	struct replayturn *b;
	u64 id, place;
	int r;
	if (likely(!shim_replays) || !t || !t->gate || !t->re || !sync_mutex_known(m) || !shim_re_quick(t, call, w->id, 0))
		return unlock_common(real, call, m, pc);
	id = w->id;
	place = w->seq & MUTEX_SEQ;
	b = shim_turn_bucket(id);
	r = TRUE(pthread_mutex_unlock)(m);
	if (unlikely(r))
		shim_re_differs(t, 0, PROPHET_DiffersResult, call, 0, (u64)r, "");
	shim_unlocked();
	if (unlikely(__atomic_load_n(&b->waiters, __ATOMIC_RELAXED)))
		shim_turn_call(b, id, place);
	return r;
}

/* The name is read before, since another may free the mutex after; it is written after, so that nobody waits for it. */
static inline __attribute__((always_inline)) int unlock(lock_fn real, u32 call, pthread_mutex_t *m)
{
	struct thr *t = shim_self.thr;
	u64 id, now;
	int r;
	if (unlikely(!t || !(t->gate & shim_ctl.fast & 1u << CLASS_sync) || m->__data.__kind & (MUTEX_ROBUST | MUTEX_SHARED)))
		return unlock_slow(real, call, m, CALLER());
	id = mutex_words(m)->id;
	if (unlikely(id == 0))
		return unlock_slow(real, call, m, CALLER());
	now = shim_ticks();
	r = real(m);
	if (unlikely(r != 0 || !as_predicted(t, id, key_sc(CALLER(), call), (u64)m, 0, now)))
		shim_sync_late(t, call, CALLER(), id, r, (u64)m, 0, 0, now, now);
	return r;
}

static NOINLINE int try_slow(lock_fn real, u32 call, pthread_mutex_t *m, void *pc)
{
	struct ev e;
	int r;
	if (!shim_begin(&e, call, CLASS_sync, pc))
		return real(m);
	r = real(m);
	shim_end(&e, WRAP_ONCE);
	e.ret = r;
	e.obj = shim_mutex_name(e.t, m, acquired(r));
	e.f1 = (u64)m;
	if (acquired(r))
		e.seq = shim_mutex_next(e.t, m);
	shim_done(&e);
	return r;
}

/* Only one that succeeds is quick: what fails takes no place, and its result is not the one before. */
static inline __attribute__((always_inline)) int try(lock_fn real, u32 call, pthread_mutex_t *m, void *pc)
{
	struct thr *t = sync_quick();
	u64 now, id;
	int r;
	if (unlikely(!t || !sync_mutex_known(m)))
		return try_slow(real, call, m, pc);
	r = real(m);
	now = shim_ticks();
	id = mutex_words(m)->id;
	if (likely(r == 0))
		sync_event(t, call, pc, id, (u64)m, 0, ++mutex_words(m)->seq & MUTEX_SEQ, now);
	else
		shim_sync_late(t, call, pc, id, r, (u64)m, 0, 0, now, now);
	return r;
}

EXPORT int pthread_mutex_lock(pthread_mutex_t *m)
{
	return lock(REAL(pthread_mutex_lock), CALL_pthread_mutex_lock, m);
}

EXPORT int pthread_mutex_unlock(pthread_mutex_t *m)
{
	return unlock(REAL(pthread_mutex_unlock), CALL_pthread_mutex_unlock, m);
}

EXPORT int pthread_mutex_trylock(pthread_mutex_t *m)
{
	return try(REAL(pthread_mutex_trylock), CALL_pthread_mutex_trylock, m, CALLER());
}

/* The names that libraries linked against an older C library may still ask for. */
EXPORT int __pthread_mutex_lock(pthread_mutex_t *m)
{
	return lock(REAL(pthread_mutex_lock), CALL___pthread_mutex_lock, m);
}

EXPORT int __pthread_mutex_unlock(pthread_mutex_t *m)
{
	return unlock(REAL(pthread_mutex_unlock), CALL___pthread_mutex_unlock, m);
}

EXPORT int __pthread_mutex_trylock(pthread_mutex_t *m)
{
	return try(REAL(pthread_mutex_trylock), CALL___pthread_mutex_trylock, m, CALLER());
}

static inline int timed_begin(struct ev *e, u32 call, pthread_mutex_t *m, void *pc)
{
	if (!shim_begin(e, call, CLASS_sync, pc))
		return 0;
	if (m->__data.__lock && (u32)m->__data.__owner != e->t->tid) {
		e->note |= PROPHET_NoteWaited;
		shim_stack_holder(e->t, (u32)m->__data.__owner, e->begin);
	}
	e->f1 = (u64)m;
	return 1;
}

static inline int timed_end(struct ev *e, pthread_mutex_t *m, int r)
{
	shim_end(e, e->note & PROPHET_NoteWaited);
	e->ret = r;
	e->obj = shim_mutex_name(e->t, m, acquired(r));
	if (acquired(r))
		e->seq = shim_mutex_next(e->t, m);
	shim_done(e);
	return r;
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *until)
{
	struct ev e;
	if (!timed_begin(&e, CALL_pthread_mutex_timedlock, m, CALLER()))
		return REAL(pthread_mutex_timedlock)(m, until);
	return timed_end(&e, m, REAL(pthread_mutex_timedlock)(m, until));
}

EXPORT int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clk, const struct timespec *until)
{
	struct ev e;
	if (!timed_begin(&e, CALL_pthread_mutex_clocklock, m, CALLER()))
		return REAL(pthread_mutex_clocklock)(m, clk, until);
	return timed_end(&e, m, REAL(pthread_mutex_clocklock)(m, clk, until));
}

static inline int init(struct ev *e, int on, pthread_mutex_t *m, int r)
{
	if (!on)
		return r;
	shim_end(e, WRAP_ONCE);
	e->ret = r;
	e->f1 = (u64)m;
	if (r == 0) {
		e->f2 = (u64)m->__data.__kind;
		e->obj = shim_mutex_name(e->t, m, 1);
	}
	shim_done(e);
	return r;
}

EXPORT int pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *a)
{
	struct ev e;
	int on;
	shim_object_gone(PROPHET_ObjMutex, m);
	on = shim_begin(&e, CALL_pthread_mutex_init, CLASS_sync, CALLER());
	return init(&e, on, m, REAL(pthread_mutex_init)(m, a));
}

EXPORT int __pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *a)
{
	struct ev e;
	int on;
	shim_object_gone(PROPHET_ObjMutex, m);
	on = shim_begin(&e, CALL___pthread_mutex_init, CLASS_sync, CALLER());
	return init(&e, on, m, REAL(pthread_mutex_init)(m, a));
}

static inline int destroy(u32 call, pthread_mutex_t *m, void *pc)
{
	struct ev e;
	int r, on = shim_begin(&e, call, CLASS_sync, pc);
	if (on)
		e.obj = shim_mutex_name(e.t, m, 0);
	r = REAL(pthread_mutex_destroy)(m);
	if (r == 0)
		shim_object_gone(PROPHET_ObjMutex, m);
	if (!on)
		return r;
	shim_end(&e, WRAP_ONCE);
	e.ret = r;
	e.f1 = (u64)m;
	shim_done(&e);
	return r;
}

EXPORT int pthread_mutex_destroy(pthread_mutex_t *m)
{
	return destroy(CALL_pthread_mutex_destroy, m, CALLER());
}

EXPORT int __pthread_mutex_destroy(pthread_mutex_t *m)
{
	return destroy(CALL___pthread_mutex_destroy, m, CALLER());
}

/* The caller holds it, and goes on holding it. */
static inline int consistent(u32 call, pthread_mutex_t *m, void *pc)
{
	struct ev e;
	int r;
	if (!shim_begin(&e, call, CLASS_sync, pc))
		return REAL(pthread_mutex_consistent)(m);
	r = REAL(pthread_mutex_consistent)(m);
	shim_end(&e, WRAP_ONCE);
	e.ret = r;
	e.obj = shim_mutex_name(e.t, m, 0);
	e.f1 = (u64)m;
	shim_done(&e);
	return r;
}

EXPORT int pthread_mutex_consistent(pthread_mutex_t *m)
{
	return consistent(CALL_pthread_mutex_consistent, m, CALLER());
}

/* The header makes the name mean the newer one. */
EXPORT int consistent_np(pthread_mutex_t *m) __asm__("pthread_mutex_consistent_np");
int consistent_np(pthread_mutex_t *m)
{
	return consistent(CALL_pthread_mutex_consistent_np, m, CALLER());
}

/* Locks and unlocks the mutex inside the C library, so nobody holds it when we could number that: it has no place. */
EXPORT int pthread_mutex_setprioceiling(pthread_mutex_t *m, int ceiling, int *was)
{
	struct ev e;
	int r;
	if (!shim_begin(&e, CALL_pthread_mutex_setprioceiling, CLASS_sync, CALLER()))
		return REAL(pthread_mutex_setprioceiling)(m, ceiling, was);
	r = REAL(pthread_mutex_setprioceiling)(m, ceiling, was);
	shim_end(&e, WRAP_BLOCK);
	e.ret = r;
	e.obj = shim_mutex_name(e.t, m, 0);
	e.f1 = (u64)m;
	e.f2 = (u64)ceiling;
	shim_done(&e);
	return r;
}

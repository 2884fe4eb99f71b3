/* Condition variables, of both symbol versions. A signal takes its place in the condition's order before it signals. A
 * wait is an acquisition of the mutex, as that is held again when it returns: whether signalled, timed out or
 * cancelled, its place is one in the order of the mutex, which the event names (f2).
 *
 * A cancelled wait has re-acquired the mutex, too, before the program's clean-up handlers run. The handler that
 * records it is of the C library's older kind, kept in a list of the thread's and run by the unwinder and by longjmp
 * when they leave our frame: it needs no unwinder of ours.
 */
#include "steps_sync.h"
#include "expect.h"
#include <threads.h>

/* The number of waiters ever never goes back: less than was seen means that the memory has become another condition. */
static inline struct object_entry *cond(struct thr *t, const pthread_cond_t *c)
{
	struct object_entry *o = shim_object(t, PROPHET_ObjCond, c);
	u64 seen = __atomic_load_n(&o->seen, __ATOMIC_ACQUIRE);
	u64 now = __atomic_load_n((const u64 *)c, __ATOMIC_ACQUIRE) >> 1; /* __wseq; its lowest bit is a group's index */
	if (unlikely(now < seen)) {
		shim_object_gone(PROPHET_ObjCond, c);
		o = shim_object(t, PROPHET_ObjCond, c);
	} else if (now != seen) {
		__atomic_store_n(&o->seen, now, __ATOMIC_RELEASE);
	}
	return o;
}

static inline int mine(const struct thr *t, const pthread_mutex_t *m)
{
	return (u32)m->__data.__owner == t->tid;
}

struct left {
	struct _pthread_cleanup_buffer buf; /* first, see struct _pthread_cleanup_buffer */
	struct ev e;
	pthread_mutex_t *m;
};

void (*shim_cleanup_push)(struct _pthread_cleanup_buffer *, void (*)(void *), void *);
static void (*cleanup_pop)(struct _pthread_cleanup_buffer *, int);

__attribute__((constructor(102))) static void find_cleanup(void)
{
	cleanup_pop = (__typeof__(cleanup_pop))shim_find("_pthread_cleanup_pop", 0);
	if (cleanup_pop)
		shim_cleanup_push = (__typeof__(shim_cleanup_push))shim_find("_pthread_cleanup_push", 0);
}

/* The wait is being left. By cancellation the mutex is held again; by a jump out of a signal handler it is not. */
static void was_left(void *arg)
{
	struct left *l = arg;
	struct ev *e = &l->e;
	if (!e->t->slot || !mine(e->t, l->m))
		return;
	shim_end(e, WRAP_BLOCK);
	e->ret = ECANCELED;
	e->seq = shim_mutex_next(e->t, l->m);
	shim_done(e);
}

static inline int wait_begin(struct left *l, u32 call, void *c, pthread_mutex_t *m, void *pc)
{
	struct ev *e = &l->e;
	if (!shim_begin(e, call, CLASS_sync, pc))
		return 0;
	e->f1 = (u64)c;
	e->f2 = shim_mutex_name(e->t, m, mine(e->t, m));
	l->m = m;
	if (shim_cleanup_push)
		shim_cleanup_push(&l->buf, was_left, l);
	return 1;
}

static inline int wait_begin_cond(struct left *l, u32 call, pthread_cond_t *c, pthread_mutex_t *m, void *pc)
{
	if (!wait_begin(l, call, c, m, pc))
		return 0;
	l->e.obj = cond(l->e.t, c)->id;
	return 1;
}

static inline int wait_end(struct left *l, int r, int err)
{
	struct ev *e = &l->e;
	if (shim_cleanup_push)
		cleanup_pop(&l->buf, 0);
	shim_end(e, WRAP_BLOCK);
	e->ret = err;
	if (err == 0 || err == ETIMEDOUT || err == EOWNERDEAD)
		e->seq = shim_mutex_next(e->t, l->m);
	shim_done(e);
	return r;
}

EXPORT LEAP int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	struct left l;
	int r;
	if (!wait_begin_cond(&l, CALL_pthread_cond_wait, c, m, CALLER()))
		return REAL(pthread_cond_wait)(c, m);
	r = REAL(pthread_cond_wait)(c, m);
	return wait_end(&l, r, r);
}

EXPORT LEAP int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)
{
	struct left l;
	int r;
	if (!wait_begin_cond(&l, CALL_pthread_cond_timedwait, c, m, CALLER()))
		return REAL(pthread_cond_timedwait)(c, m, until);
	r = REAL(pthread_cond_timedwait)(c, m, until);
	return wait_end(&l, r, r);
}

EXPORT LEAP int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clk, const struct timespec *until)
{
	struct left l;
	int r;
	if (!wait_begin_cond(&l, CALL_pthread_cond_clockwait, c, m, CALLER()))
		return REAL(pthread_cond_clockwait)(c, m, clk, until);
	r = REAL(pthread_cond_clockwait)(c, m, clk, until);
	return wait_end(&l, r, r);
}

EXPORT int cnd_wait(cnd_t *c, mtx_t *m)
{
	struct left l;
	int r;
	if (!wait_begin_cond(&l, CALL_cnd_wait, (pthread_cond_t *)c, (pthread_mutex_t *)m, CALLER()))
		return REAL(cnd_wait)(c, m);
	r = REAL(cnd_wait)(c, m);
	return wait_end(&l, r, shim_thrd_err(r));
}

EXPORT int cnd_timedwait(cnd_t *c, mtx_t *m, const struct timespec *until)
{
	struct left l;
	int r;
	if (!wait_begin_cond(&l, CALL_cnd_timedwait, (pthread_cond_t *)c, (pthread_mutex_t *)m, CALLER()))
		return REAL(cnd_timedwait)(c, m, until);
	r = REAL(cnd_timedwait)(c, m, until);
	return wait_end(&l, r, shim_thrd_err(r));
}

/* In a serial run who was woken may have made another condition there before the call is made: it is of the one that there was
 * with the token, and has no place. */
static inline int wake_begin(struct ev *e, u32 call, void *c, struct object_entry *(*entry)(struct thr *, const pthread_cond_t *), void *pc)
{
	u64 id = unlikely(shim_ctl.serial) ? shim_object_known(PROPHET_ObjCond, c) : 0;
	struct object_entry *o;
	if (!shim_begin(e, call, CLASS_sync, pc))
		return 0;
	e->f1 = (u64)c;
	if (unlikely(id)) {
		const struct expect *x = shim_replays ? e->x : 0;
		if (shim_object_known(PROPHET_ObjCond, c) != id || (x && x->obj == id && !x->seq)) {
			e->obj = id;
			e->seq = x ? x->seq : 0;
			return 1;
		}
	}
	o = entry(e->t, c);
	e->obj = o->id;
	e->seq = shim_object_next(o);
	return 1;
}

static inline int wake_end(struct ev *e, int r, int err)
{
	shim_end(e, WRAP_ONCE);
	e->ret = err;
	shim_done(e);
	return r;
}

typedef int (*wake_fn)(pthread_cond_t *);

static NOINLINE int wake_event(wake_fn real, u32 call, pthread_cond_t *c, void *pc)
{
	struct ev e;
	int r;
	if (!wake_begin(&e, call, c, cond, pc))
		return real(c);
	r = real(c);
	return wake_end(&e, r, r);
}

static inline __attribute__((always_inline)) int wake(wake_fn real, u32 call, pthread_cond_t *c)
{
	struct thr *t = sync_quick();
	struct object_entry *o;
	u64 id, seq, now;
	int r;
	if (unlikely(!t))
		return wake_event(real, call, c, CALLER());
	o = cond(t, c);
	id = o->id;
	seq = shim_object_next(o);
	now = shim_ticks();
	r = real(c); /* cannot fail */
	sync_event(t, call, CALLER(), id, (u64)c, 0, seq, now);
	return r;
}

EXPORT int pthread_cond_signal(pthread_cond_t *c)
{
	return wake(REAL(pthread_cond_signal), CALL_pthread_cond_signal, c);
}

EXPORT int pthread_cond_broadcast(pthread_cond_t *c)
{
	return wake(REAL(pthread_cond_broadcast), CALL_pthread_cond_broadcast, c);
}

EXPORT int cnd_signal(cnd_t *c)
{
	struct ev e;
	int r;
	if (!wake_begin(&e, CALL_cnd_signal, c, cond, CALLER()))
		return REAL(cnd_signal)(c);
	r = REAL(cnd_signal)(c);
	return wake_end(&e, r, shim_thrd_err(r));
}

EXPORT int cnd_broadcast(cnd_t *c)
{
	struct ev e;
	int r;
	if (!wake_begin(&e, CALL_cnd_broadcast, c, cond, CALLER()))
		return REAL(cnd_broadcast)(c);
	r = REAL(cnd_broadcast)(c);
	return wake_end(&e, r, shim_thrd_err(r));
}

EXPORT int pthread_cond_init(pthread_cond_t *c, const pthread_condattr_t *a)
{
	struct ev e;
	int on = sync_begin_init(&e, CALL_pthread_cond_init, PROPHET_ObjCond, c, CALLER());
	return sync_end_init(&e, on, PROPHET_ObjCond, c, REAL(pthread_cond_init)(c, a));
}

/* Waits for waiters that were woken and have not left yet. */
EXPORT int pthread_cond_destroy(pthread_cond_t *c)
{
	struct ev e;
	int on = sync_begin_destroy(&e, CALL_pthread_cond_destroy, PROPHET_ObjCond, c, CALLER());
	return sync_end_destroy(&e, on, REAL(pthread_cond_destroy)(c));
}

EXPORT int cnd_init(cnd_t *c)
{
	struct ev e;
	int r, on = sync_begin_init(&e, CALL_cnd_init, PROPHET_ObjCond, c, CALLER());
	r = REAL(cnd_init)(c);
	sync_end_init(&e, on, PROPHET_ObjCond, c, shim_thrd_err(r));
	return r;
}

EXPORT void cnd_destroy(cnd_t *c)
{
	struct ev e;
	int on = sync_begin_destroy(&e, CALL_cnd_destroy, PROPHET_ObjCond, c, CALLER());
	REAL(cnd_destroy)(c);
	sync_end_destroy(&e, on, 0);
}

#if SHIM_OLD_VERSIONS
/* What binaries from before 2003 call. Their condition is one pointer, to a new one that the C library allocates at
 * first use; only its address is of interest here. */
#define OLD(name) __asm__(".symver " #name "_GLIBC_2_2_5, " #name "@GLIBC_2.2.5")

static struct object_entry *old_cond(struct thr *t, const pthread_cond_t *c)
{
	return shim_object(t, PROPHET_ObjCond, c);
}

OLD(pthread_cond_wait);
EXPORT int pthread_cond_wait_GLIBC_2_2_5(void *c, pthread_mutex_t *m)
{
	struct left l;
	int r;
	if (!wait_begin(&l, CALL_pthread_cond_wait_GLIBC_2_2_5, c, m, CALLER()))
		return REAL(pthread_cond_wait_GLIBC_2_2_5)(c, m);
	l.e.obj = old_cond(l.e.t, c)->id;
	r = REAL(pthread_cond_wait_GLIBC_2_2_5)(c, m);
	return wait_end(&l, r, r);
}

OLD(pthread_cond_timedwait);
EXPORT int pthread_cond_timedwait_GLIBC_2_2_5(void *c, pthread_mutex_t *m, const struct timespec *until)
{
	struct left l;
	int r;
	if (!wait_begin(&l, CALL_pthread_cond_timedwait_GLIBC_2_2_5, c, m, CALLER()))
		return REAL(pthread_cond_timedwait_GLIBC_2_2_5)(c, m, until);
	l.e.obj = old_cond(l.e.t, c)->id;
	r = REAL(pthread_cond_timedwait_GLIBC_2_2_5)(c, m, until);
	return wait_end(&l, r, r);
}

OLD(pthread_cond_signal);
EXPORT int pthread_cond_signal_GLIBC_2_2_5(void *c)
{
	struct ev e;
	int r;
	if (!wake_begin(&e, CALL_pthread_cond_signal_GLIBC_2_2_5, c, old_cond, CALLER()))
		return REAL(pthread_cond_signal_GLIBC_2_2_5)(c);
	r = REAL(pthread_cond_signal_GLIBC_2_2_5)(c);
	return wake_end(&e, r, r);
}

OLD(pthread_cond_broadcast);
EXPORT int pthread_cond_broadcast_GLIBC_2_2_5(void *c)
{
	struct ev e;
	int r;
	if (!wake_begin(&e, CALL_pthread_cond_broadcast_GLIBC_2_2_5, c, old_cond, CALLER()))
		return REAL(pthread_cond_broadcast_GLIBC_2_2_5)(c);
	r = REAL(pthread_cond_broadcast_GLIBC_2_2_5)(c);
	return wake_end(&e, r, r);
}

OLD(pthread_cond_init);
EXPORT int pthread_cond_init_GLIBC_2_2_5(void *c, const pthread_condattr_t *a)
{
	struct ev e;
	int on = sync_begin_init(&e, CALL_pthread_cond_init_GLIBC_2_2_5, PROPHET_ObjCond, c, CALLER());
	return sync_end_init(&e, on, PROPHET_ObjCond, c, REAL(pthread_cond_init_GLIBC_2_2_5)(c, a));
}

OLD(pthread_cond_destroy);
EXPORT int pthread_cond_destroy_GLIBC_2_2_5(void *c)
{
	struct ev e;
	int on = sync_begin_destroy(&e, CALL_pthread_cond_destroy_GLIBC_2_2_5, PROPHET_ObjCond, c, CALLER());
	return sync_end_destroy(&e, on, REAL(pthread_cond_destroy_GLIBC_2_2_5)(c));
}
#endif

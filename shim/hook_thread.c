/* Threads by hand: creation, so that a thread has its name and its ring from its first instruction on, and the end,
 * so that they are taken back. Nothing is allocated: routine and argument travel in the thread's state.
 *
 * The routine may be left by pthread_exit or cancellation. C's cleanup attribute would need libgcc_s in every
 * program; the C library's own jump-based handlers, which pthread.h has for C without exceptions, do not.
 */
#undef __EXCEPTIONS
#include "replay.h"
#include "scrub.h"
#include "steps_proc.h"

static void ending(void *t)
{
	shim_thread_ending(t);
}

/* Each kind of routine in one frame of ours. */
static void *begin_posix(void *p)
{
	struct thr *t = p;
	void *r;
	shim_thread_begin(t);
	pthread_cleanup_push(ending, t);
	shim_scrub_thread();
	r = ((void *(*)(void *))t->start)(t->arg);
	pthread_cleanup_pop(1);
	return r;
}

void shim_thread_fired(u32 nth, void (*fn)(union sigval), union sigval v)
{
	struct thr *t = 0;
	if (shim_run.state == RUN_ON && !shim_self.off && shim_wiped->alive && !shim_self.thr && (t = shim_thread_found(nth))) {
		if (unlikely(t->re != 0))
			shim_re_fired(t);
		shim_thread_starts(t);
	}
	pthread_cleanup_push(ending, t);
	shim_scrub_thread();
	fn(v);
	pthread_cleanup_pop(1);
}

static int begin_c11(void *p)
{
	struct thr *t = p;
	int r;
	shim_thread_begin(t);
	pthread_cleanup_push(ending, t);
	shim_scrub_thread();
	r = ((thrd_start_t)t->start)(t->arg);
	pthread_cleanup_pop(1);
	return r;
}

/* The state for a new thread, whatever is recorded right now; NULL: it finds its own when it needs one. */
static struct thr *child(const struct ev *e, int on, void *start, void *arg)
{
	struct thr *t = on ? e->t : shim_self.thr, *n;
	if (shim_run.state != RUN_ON || shim_self.off || !t || !t->begun || t->vfork)
		return 0;
	shim_reap();
	n = shim_thread_new(t);
	if (n) {
		n->start = start;
		n->arg = arg;
	}
	return n;
}

/* Whether a thread's mask comes from its attribute, or where it has none, from what the program has set for all such. */
static int masked(const pthread_attr_t *attr)
{
	static int (*mask_of)(const pthread_attr_t *, sigset_t *);
	static int (*usual)(pthread_attr_t *);
	static int (*destroy)(pthread_attr_t *);
	sigset_t set;
	pthread_attr_t a;
	int r;
	if (!mask_of) {
		usual = (__typeof__(usual))shim_find("pthread_getattr_default_np", 0);
		destroy = (__typeof__(destroy))shim_find("pthread_attr_destroy", 0);
		__atomic_store_n(&mask_of, (__typeof__(mask_of))shim_find("pthread_attr_getsigmask_np", 0), __ATOMIC_RELEASE);
		if (!mask_of)
			return 0;
	}
	if (attr)
		return mask_of(attr, &set) == 0;
	if (!usual || !destroy || usual(&a) != 0)
		return 0;
	r = mask_of(&a, &set) == 0;
	destroy(&a);
	return r;
}

/* A signal that reached a thread before it knows who it is would be told as another thread's. So it begins with all of them
 * blocked, as its creator then has; unless its attribute says which. What it will have is the creator's own mask. */
static u64 quiet(struct thr *n, const pthread_attr_t *attr)
{
	u64 mask = 0;
	if (!n)
		return 0;
	n->quiet = !masked(attr);
	shim_block(&mask);
	n->mask = mask;
	return mask;
}

static void loud(const struct thr *n, u64 mask)
{
	if (n)
		shim_unblock(&mask);
}

/* What creators remember of the latest threads. Any thread stores; one that reads half of two finds nothing. */
static struct created {
	u64 handle, uid;
} lately[256];

static struct created *place(u64 handle)
{
	return &lately[handle * 0x9E3779B97F4A7C15ull >> 56];
}

u32 shim_uid_created(pthread_t th)
{
	struct created *c = place((u64)th);
	u64 uid = __atomic_load_n(&c->uid, __ATOMIC_ACQUIRE);
	return c->handle == (u64)th ? (u32)uid : 0;
}

/* uid is n's before it ran: it may be over and another's by now. */
static void created(struct ev *e, int on, struct thr *n, u32 uid, int r, u64 handle)
{
	if (r != 0 && n) {
		shim_thread_drop(n);
		if (shim_self.thr)
			shim_self.thr->nthread--;
	}
	if (r == 0) {
		struct created *c = place(handle);
		__atomic_store_n(&c->uid, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&c->handle, handle, __ATOMIC_RELEASE);
		__atomic_store_n(&c->uid, uid, __ATOMIC_RELEASE);
	}
	if (!on)
		return;
	shim_end(e, WRAP_BLOCK);
	e->ret = r;
	e->obj = r == 0 ? shim_thread_object(uid) : 0;
	e->f1 = r == 0 ? handle : 0;
	shim_done(e);
}

EXPORT int pthread_create(pthread_t *th, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	struct ev e;
	int on = shim_begin(&e, CALL_pthread_create, CLASS_thread, CALLER()), r;
	struct thr *n = child(&e, on, (void *)start, arg);
	u32 uid = n ? n->uid : 0;
	u64 mask = quiet(n, attr);
	r = n ? REAL(pthread_create)(th, attr, begin_posix, n) : REAL(pthread_create)(th, attr, start, arg);
	loud(n, mask);
	created(&e, on, n, uid, r, r == 0 ? (u64)*th : 0);
	return r;
}

EXPORT int thrd_create(thrd_t *th, thrd_start_t start, void *arg)
{
	struct ev e;
	int on = shim_begin(&e, CALL_thrd_create, CLASS_thread, CALLER()), r;
	struct thr *n = child(&e, on, (void *)start, arg);
	u32 uid = n ? n->uid : 0;
	u64 mask = quiet(n, 0);
	r = n ? REAL(thrd_create)(th, begin_c11, n) : REAL(thrd_create)(th, start, arg);
	loud(n, mask);
	created(&e, on, n, uid, r, r == thrd_success ? (u64)*th : 0);
	return r;
}

/* What does not return is written before; what runs after it is not inside of it. */
static void leave(u32 call, void *pc)
{
	struct ev e;
	if (!shim_begin(&e, call, CLASS_thread, pc))
		return;
	shim_end(&e, WRAP_ONCE);
	shim_done(&e);
	if (unlikely(e.t->re != 0))
		shim_re_ending(e.t); /* the first thread has no routine that could say so */
}

EXPORT void pthread_exit(void *value)
{
	leave(CALL_pthread_exit, CALLER());
	REAL(pthread_exit)(value);
	__builtin_unreachable();
}

EXPORT void thrd_exit(int value)
{
	leave(CALL_thrd_exit, CALLER());
	REAL(thrd_exit)(value);
	__builtin_unreachable();
}

/* A thread that cancels itself, asynchronously, does not come back. */
EXPORT int pthread_cancel(pthread_t th)
{
	struct ev e;
	int r;
	shim_cancels();
	if (!shim_begin(&e, CALL_pthread_cancel, CLASS_thread, CALLER()))
		return REAL(pthread_cancel)(th);
	shim_pre_thread(&e, th);
	if (th == pthread_self()) {
		shim_end(&e, WRAP_ONCE);
		e.f1 = (u64)th;
		shim_done(&e);
		return REAL(pthread_cancel)(th);
	}
	r = REAL(pthread_cancel)(th);
	shim_end(&e, WRAP_ONCE);
	e.ret = r;
	e.f1 = (u64)th;
	shim_done(&e);
	return r;
}

#if SHIM_OLD_VERSIONS
__asm__(".symver pthread_kill_GLIBC_2_2_5, pthread_kill@GLIBC_2.2.5");

EXPORT int pthread_kill_GLIBC_2_2_5(pthread_t th, int sig)
{
	struct ev e;
	int r;
	if (!shim_begin(&e, CALL_pthread_kill_GLIBC_2_2_5, CLASS_thread, CALLER()))
		return REAL(pthread_kill_GLIBC_2_2_5)(th, sig);
	shim_pre_thread(&e, th);
	r = REAL(pthread_kill_GLIBC_2_2_5)(th, sig);
	shim_end(&e, WRAP_ONCE);
	e.ret = r;
	e.obj = shim_obj_thread(e.t, e.obj);
	e.f1 = (u64)th;
	e.f2 = (u64)sig;
	shim_done(&e);
	return r;
}
#endif

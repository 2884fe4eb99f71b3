/* POSIX semaphores. A post takes its place before it posts, a wait after it has got one, from one counter: so a wait
 * comes after the post that let it through. Once it has posted another thread may destroy the semaphore, so nothing
 * of it is touched after.
 */
#include "steps_sync.h"
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static inline u32 peek(const sem_t *s)
{
	return __atomic_load_n((const u32 *)s, __ATOMIC_RELAXED); /* struct new_sem: the value is the low half of data */
}

static inline int begin(struct ev *e, u32 call, sem_t *s, void *pc, int waits)
{
	if (!shim_begin(e, call, CLASS_sync, pc))
		return 0;
	if (waits)
		e->note |= PROPHET_NoteWaited;
	e->f1 = (u64)s;
	return 1;
}

static inline int got(struct ev *e, sem_t *s, int r)
{
	struct object_entry *o;
	shim_end(e, e->note & PROPHET_NoteWaited);
	e->ret = shim_ret_errno(r);
	o = shim_object(e->t, PROPHET_ObjSem, s);
	e->obj = o->id;
	if (r == 0)
		e->seq = shim_object_next(o);
	shim_done(e);
	return r;
}

static NOINLINE int wait_event(sem_t *s, void *pc)
{
	struct ev e;
	if (!begin(&e, CALL_sem_wait, s, pc, peek(s) == 0))
		return REAL(sem_wait)(s);
	return got(&e, s, REAL(sem_wait)(s));
}

EXPORT int sem_wait(sem_t *s)
{
	struct thr *t = sync_quick();
	struct object_entry *o;
	u64 now;
	int r;
	if (unlikely(!t || peek(s) == 0))
		return wait_event(s, CALLER());
	r = REAL(sem_wait)(s);
	now = shim_ticks();
	o = shim_object(t, PROPHET_ObjSem, s);
	if (likely(r == 0))
		sync_event(t, CALL_sem_wait, CALLER(), o->id, (u64)s, 0, shim_object_next(o), now);
	else
		shim_sync_late(t, CALL_sem_wait, CALLER(), o->id, shim_ret_errno(r), (u64)s, 0, 0, now, now);
	return r;
}

static NOINLINE int try_event(sem_t *s, void *pc)
{
	struct ev e;
	if (!begin(&e, CALL_sem_trywait, s, pc, 0))
		return REAL(sem_trywait)(s);
	return got(&e, s, REAL(sem_trywait)(s));
}

EXPORT int sem_trywait(sem_t *s)
{
	struct thr *t = sync_quick();
	struct object_entry *o;
	u64 now;
	int r;
	if (unlikely(!t))
		return try_event(s, CALLER());
	r = REAL(sem_trywait)(s);
	now = shim_ticks();
	o = shim_object(t, PROPHET_ObjSem, s);
	if (likely(r == 0))
		sync_event(t, CALL_sem_trywait, CALLER(), o->id, (u64)s, 0, shim_object_next(o), now);
	else
		shim_sync_late(t, CALL_sem_trywait, CALLER(), o->id, shim_ret_errno(r), (u64)s, 0, 0, now, now);
	return r;
}

EXPORT int sem_timedwait(sem_t *s, const struct timespec *until)
{
	struct ev e;
	if (!begin(&e, CALL_sem_timedwait, s, CALLER(), peek(s) == 0))
		return REAL(sem_timedwait)(s, until);
	return got(&e, s, REAL(sem_timedwait)(s, until));
}

EXPORT int sem_clockwait(sem_t *s, clockid_t clk, const struct timespec *until)
{
	struct ev e;
	if (!begin(&e, CALL_sem_clockwait, s, CALLER(), peek(s) == 0))
		return REAL(sem_clockwait)(s, clk, until);
	return got(&e, s, REAL(sem_clockwait)(s, clk, until));
}

static NOINLINE int post_event(sem_t *s, void *pc)
{
	struct ev e;
	struct object_entry *o;
	int r;
	if (!begin(&e, CALL_sem_post, s, pc, 0))
		return REAL(sem_post)(s);
	o = shim_object(e.t, PROPHET_ObjSem, s);
	e.obj = o->id;
	e.seq = shim_object_next(o);
	r = REAL(sem_post)(s);
	shim_end(&e, WRAP_ONCE);
	e.ret = shim_ret_errno(r);
	shim_done(&e);
	return r;
}

EXPORT int sem_post(sem_t *s)
{
	struct thr *t = sync_quick();
	struct object_entry *o;
	u64 now, id, seq;
	int r;
	if (unlikely(!t))
		return post_event(s, CALLER());
	o = shim_object(t, PROPHET_ObjSem, s);
	id = o->id;
	seq = shim_object_next(o);
	now = shim_ticks();
	r = REAL(sem_post)(s);
	if (likely(r == 0))
		sync_event(t, CALL_sem_post, CALLER(), id, (u64)s, 0, seq, now);
	else /* the place is used up all the same */
		shim_sync_late(t, CALL_sem_post, CALLER(), id, shim_ret_errno(r), (u64)s, 0, seq, now, now);
	return r;
}

EXPORT int sem_getvalue(sem_t *s, int *value)
{
	struct ev e;
	int r;
	if (!begin(&e, CALL_sem_getvalue, s, CALLER(), 0))
		return REAL(sem_getvalue)(s, value);
	r = REAL(sem_getvalue)(s, value);
	shim_end(&e, WRAP_ONCE);
	e.ret = shim_ret_errno(r);
	e.obj = shim_obj_sem(e.t, s);
	if (r == 0)
		e.f2 = (u64)*value;
	shim_done(&e);
	return r;
}

EXPORT int sem_init(sem_t *s, int shared, unsigned value)
{
	struct ev e;
	int r, on;
	shim_object_gone(PROPHET_ObjSem, s);
	on = begin(&e, CALL_sem_init, s, CALLER(), 0);
	r = REAL(sem_init)(s, shared, value);
	if (!on)
		return r;
	shim_end(&e, WRAP_ONCE);
	e.ret = shim_ret_errno(r);
	e.f2 = value;
	if (r == 0)
		e.obj = shim_obj_sem(e.t, s);
	shim_done(&e);
	return r;
}

EXPORT int sem_destroy(sem_t *s)
{
	struct ev e;
	int r, on = sync_begin_destroy(&e, CALL_sem_destroy, PROPHET_ObjSem, s, CALLER());
	r = REAL(sem_destroy)(s);
	if (!on)
		return r;
	shim_end(&e, WRAP_ONCE);
	e.ret = shim_ret_errno(r);
	shim_done(&e);
	return r;
}

/* A named one is a file of its own: which one is how all processes know it. */
static void named(const sem_t *s, const char *name)
{
	char path[300];
	struct text t;
	struct stat st;
	while (*name == '/')
		name++;
	shim_text(&t, path, sizeof path);
	shim_put(&t, "/dev/shm/sem.");
	shim_put(&t, name);
	if (sys(SYS_newfstatat, AT_FDCWD, path, &st, 0) == 0)
		shim_object_mapped(s, sizeof *s, (u64)major(st.st_dev) << 32 | minor(st.st_dev), st.st_ino, 0);
}

EXPORT sem_t *sem_open(const char *name, int flags, ...)
{
	struct ev e;
	mode_t mode = 0;
	unsigned value = 0;
	sem_t *s;
	int on;
	if (flags & O_CREAT) {
		va_list args;
		va_start(args, flags);
		mode = va_arg(args, mode_t);
		value = va_arg(args, unsigned);
		va_end(args);
	}
	on = shim_begin(&e, CALL_sem_open, CLASS_sync, CALLER());
	s = REAL(sem_open)(name, flags, mode, value);
	if (s != SEM_FAILED)
		named(s, name);
	if (!on)
		return s;
	shim_end(&e, WRAP_ONCE);
	e.ret = shim_ret_ptr(s);
	e.f1 = (u64)flags;
	e.f2 = mode;
	e.f3 = value;
	if (s != SEM_FAILED)
		e.obj = shim_obj_sem(e.t, s);
	shim_tail_text(&e, name, PART_PATH);
	shim_done(&e);
	return s;
}

EXPORT int sem_close(sem_t *s)
{
	struct ev e;
	int r, on = begin(&e, CALL_sem_close, s, CALLER(), 0);
	if (on)
		e.obj = shim_obj_sem(e.t, s);
	r = REAL(sem_close)(s);
	if (r == 0)
		shim_object_closed(PROPHET_ObjSem, s);
	if (!on)
		return r;
	shim_end(&e, WRAP_ONCE);
	e.ret = shim_ret_errno(r);
	shim_done(&e);
	return r;
}

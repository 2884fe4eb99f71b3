/* pthread_once and call_once: which run of the routine it was, or which one the caller found done or waited for (f2),
 * and whether the caller ran it (f3). The routine is called through ours, so that it is known who runs it. It may be left by an
 * exception or by cancellation: then it did not run (f2 is 0), and the next caller does. f3 counts how many were left before, as each waits
 * until the one before has tried.
 */
#include "steps_sync.h"
#include <threads.h>

#define DONE 2

struct once {
	void (*routine)(void);
	struct object_entry *o; /* seen: how many were left */
	u64 run, ran; /* 0: not by this caller */
	struct ev *e;
	struct once *outer;
	int took;
};

/* Read at once by the routine that the real function calls; a handler in between puts back what it found. */
static __thread struct once *current __attribute__((tls_model("initial-exec")));

static inline void end(struct ev *e, struct once *me, int r)
{
	shim_end(e, WRAP_BLOCK);
	e->ret = r;
	e->f3 = me->ran;
	shim_done(e);
}

/* Nobody else runs it before we are out of here. */
static void was_left(struct once **p)
{
	struct once *me = *p;
	if (!me)
		return;
	if (me->took)
		shim_serial_give();
	current = me->outer;
	__atomic_store_n(&me->o->seen, me->ran, __ATOMIC_RELEASE);
	me->e->f2 = 0;
	end(me->e, me, 0);
}

/* The number is taken before the control says that it is done. */
static void run_once(void)
{
	struct once *mine = current, *me __attribute__((cleanup(was_left))) = mine;
	mine->took = shim_ctl.serial && shim_serial_take(1) != 0;
	mine->ran = 1 + __atomic_load_n(&mine->o->seen, __ATOMIC_RELAXED);
	mine->routine();
	me = 0;
	if (mine->took)
		shim_serial_give();
	mine->run = shim_object_next(mine->o);
}

static inline struct object_entry *entry(struct thr *t, const int *control)
{
	struct object_entry *o = shim_object(t, PROPHET_ObjOnce, control);
	if (unlikely(__atomic_load_n(control, __ATOMIC_ACQUIRE) == 0 && o->seq)) {
		/* Done once and not any more: another control at this address. */
		shim_object_gone(PROPHET_ObjOnce, control);
		o = shim_object(t, PROPHET_ObjOnce, control);
	}
	return o;
}

static inline int begin(struct ev *e, struct once *me, u32 call, const int *control, void (*routine)(void), void *pc)
{
	if (!shim_begin(e, call, CLASS_sync, pc))
		return 0;
	e->t->slot->call = 0; /* what the routine calls is not inside of it */
	if (__atomic_load_n(control, __ATOMIC_RELAXED) & 1) /* another is at it */
		e->note |= PROPHET_NoteWaited;
	me->routine = routine;
	me->o = entry(e->t, control);
	me->run = me->ran = 0;
	me->e = e;
	me->outer = current;
	e->obj = me->o->id;
	e->f1 = (u64)control;
	return 1;
}

static inline u64 which(const struct once *me)
{
	return me->run ? me->run : __atomic_load_n(&me->o->seq, __ATOMIC_RELAXED);
}

/* The unwinder of a cancelled wait comes here while the C library has yet to lock the mutex again: who holds that goes on only when
 * the token is not ours meanwhile. */
static int relocks(const struct thr *t)
{
	switch (t ? t->slot->call : 0) {
	case CALL_pthread_cond_wait:
	case CALL_pthread_cond_timedwait:
	case CALL_pthread_cond_clockwait:
	case CALL_pthread_cond_wait_GLIBC_2_2_5:
	case CALL_pthread_cond_timedwait_GLIBC_2_2_5:
	case CALL_cnd_wait:
	case CALL_cnd_timedwait:
		return 1;
	}
	return 0;
}

static NOINLINE int once_event(u32 call, pthread_once_t *control, void (*routine)(void), void *pc)
{
	struct ev e;
	struct once me;
	int r, relock = shim_ctl.serial && relocks(shim_self.thr);
	if (!begin(&e, &me, call, control, routine, pc))
		return REAL(pthread_once)(control, routine);
	current = &me;
	r = REAL(pthread_once)(control, run_once);
	current = me.outer;
	e.f2 = which(&me);
	end(&e, &me, r);
	if (relock)
		shim_serial_give();
	return r;
}

EXPORT int pthread_once(pthread_once_t *control, void (*routine)(void))
{
	struct thr *t = sync_quick();
	struct object_entry *o;
	/* An unwinder that begins comes here first: what it unwinds is said to be left. */
	if (unlikely(!t || !(__atomic_load_n(control, __ATOMIC_ACQUIRE) & DONE) || t->slot->call))
		return once_event(CALL_pthread_once, control, routine, CALLER());
	o = shim_object(t, PROPHET_ObjOnce, control);
	sync_event(t, CALL_pthread_once, CALLER(), o->id, (u64)control, o->seq, 0, shim_ticks());
	return 0;
}

/* For libraries that were linked against an older C library. */
EXPORT int __pthread_once(pthread_once_t *control, void (*routine)(void))
{
	return once_event(CALL___pthread_once, control, routine, CALLER());
}

EXPORT void call_once(once_flag *flag, void (*routine)(void))
{
	struct ev e;
	struct once me;
	if (!begin(&e, &me, CALL_call_once, (const int *)flag, routine, CALLER())) {
		REAL(call_once)(flag, routine);
		return;
	}
	current = &me;
	REAL(call_once)(flag, run_once);
	current = me.outer;
	e.f2 = which(&me);
	end(&e, &me, 0);
}

/* The guards of C++'s function-local statics. The compiler tests the guard's first byte inline, so only first uses
 * come here. Acquire says 1 to who initialises: its place in the guard's order is f2; others get 0 and the place of the
 * one they waited for.
 *
 * The C++ library may have been loaded by dlopen, out of our sight, and may go away again. Then we do what its ABI
 * says ourselves, as the GNU library does it on Linux, so that guards of both are understood by both.
 */
#include "replay.h"
#include "steps_sync.h"
#include <linux/futex.h>

#define DONE 1u /* first byte: initialised */
#define PENDING 0x100u /* second byte: a thread is at it */
#define WAITING 0x10000u /* third: others sleep */

typedef unsigned long long guard_t;

static int acquire(guard_t *g)
{
	u32 *w = (u32 *)g, was = 0;
	for (;;) {
		if (__atomic_compare_exchange_n(w, &was, PENDING, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return 1;
		if (was == DONE)
			return 0;
		if (was == PENDING && !__atomic_compare_exchange_n(w, &was, PENDING | WAITING, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			if (was == DONE)
				return 0;
			if (was == 0)
				continue;
		}
		sys(SYS_futex, w, FUTEX_WAIT, PENDING | WAITING, 0, 0, 0);
		was = 0;
	}
}

static void leave(guard_t *g, u32 as)
{
	u32 was = __atomic_exchange_n((u32 *)g, as, __ATOMIC_ACQ_REL);
	if (was & WAITING)
		sys(SYS_futex, g, FUTEX_WAKE, 0x7fffffff, 0, 0, 0);
}

/* The GNU library's own would wait by calls that pass through us, as many as it happens to need. Others are called:
 * what their guards look like is their affair. */
static int as_gnu(void)
{
	static u32 known; /* 0 not yet, 1 yes, 2 no */
	u32 k = __atomic_load_n(&known, __ATOMIC_RELAXED);
	if (!k) {
		k = shim_from(CALL___cxa_guard_acquire, "libstdc++.so.") ? 1 : 2;
		__atomic_store_n(&known, k, __ATOMIC_RELAXED);
	}
	return k == 1;
}

static int real_acquire(guard_t *g)
{
	int (*f)(guard_t *) = as_gnu() ? 0 : (int (*)(guard_t *))shim_real_maybe(CALL___cxa_guard_acquire);
	return f ? f(g) : acquire(g);
}

static void real_leave(guard_t *g, u32 call, u32 as)
{
	void (*f)(guard_t *) = as_gnu() ? 0 : (void (*)(guard_t *))shim_real_maybe(call);
	if (f)
		f(g);
	else
		leave(g, as);
}

EXPORT int __cxa_guard_acquire(guard_t *g)
{
	struct ev e;
	struct object_entry *o;
	int r;
	if (unlikely(shim_replays) && shim_re_guard_inline(g, shim_object_known(PROPHET_ObjGuard, g), CALLER()))
		return 0;
	if (!shim_begin(&e, CALL___cxa_guard_acquire, CLASS_sync, CALLER()))
		return real_acquire(g);
	if (*(u32 *)g & PENDING)
		e.note |= PROPHET_NoteWaited;
	o = shim_object(e.t, PROPHET_ObjGuard, g);
	if (unlikely(shim_replays))
		shim_re_guard(g, o);
	r = real_acquire(g);
	shim_end(&e, WRAP_BLOCK);
	if (r && o->seen) {
		/* Released before, and to be initialised again: another static at this address. */
		shim_object_gone(PROPHET_ObjGuard, g);
		o = shim_object(e.t, PROPHET_ObjGuard, g);
	}
	e.ret = r;
	e.obj = o->id;
	e.f1 = (u64)g;
	e.f2 = r ? shim_object_next(o) : __atomic_load_n(&o->seq, __ATOMIC_RELAXED);
	shim_done(&e);
	return r;
}

static inline void left(guard_t *g, u32 call, u32 as, void *pc)
{
	struct ev e;
	struct object_entry *o;
	if (!shim_begin(&e, call, CLASS_sync, pc)) {
		real_leave(g, call, as);
		return;
	}
	o = shim_object(e.t, PROPHET_ObjGuard, g);
	e.obj = o->id;
	e.f1 = (u64)g;
	if (as == DONE)
		o->seen = 1;
	real_leave(g, call, as);
	shim_end(&e, WRAP_ONCE);
	shim_done(&e);
}

EXPORT void __cxa_guard_release(guard_t *g)
{
	left(g, CALL___cxa_guard_release, DONE, CALLER());
}

EXPORT void __cxa_guard_abort(guard_t *g)
{
	left(g, CALL___cxa_guard_abort, 0, CALLER());
}

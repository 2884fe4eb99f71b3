/* Barriers. An arrival takes its place before it waits; with the count that gives the generation: the arrivals of
 * generation g have the places g*count+1 to (g+1)*count. The result says who was the serial thread. Once a thread
 * has come through another may destroy the barrier, so nothing of it is touched after. A signal that comes before a place
 * is taken came before the call: inside of it are those that came to who had arrived.
 */
#include "steps_sync.h"

EXPORT int pthread_barrier_wait(pthread_barrier_t *b)
{
	struct ev e;
	struct object_entry *o;
	u32 count;
	int r;
	if (!shim_begin(&e, CALL_pthread_barrier_wait, CLASS_sync, CALLER()))
		return REAL(pthread_barrier_wait)(b);
	e.t->slot->call = 0;
	count = ((const u32 *)b)[2]; /* struct pthread_barrier: in, current_round, count */
	o = shim_object(e.t, PROPHET_ObjBarrier, b);
	e.obj = o->id;
	e.seq = shim_object_next(o);
	e.f1 = (u64)b;
	e.f2 = count ? (e.seq - 1) / count : 0;
	if (count > 1)
		e.note |= PROPHET_NoteWaited;
	e.t->slot->call = CALL_pthread_barrier_wait;
	if (unlikely(shim_replays))
		shim_re_arrived(&e, o, count);
	r = REAL(pthread_barrier_wait)(b);
	shim_end(&e, WRAP_BLOCK);
	e.ret = r;
	shim_done(&e);
	return r;
}

EXPORT int pthread_barrier_init(pthread_barrier_t *b, const pthread_barrierattr_t *a, unsigned count)
{
	struct ev e;
	int on = sync_begin_init(&e, CALL_pthread_barrier_init, PROPHET_ObjBarrier, b, CALLER());
	if (on)
		e.f2 = count;
	return sync_end_init(&e, on, PROPHET_ObjBarrier, b, REAL(pthread_barrier_init)(b, a, count));
}

EXPORT int pthread_barrier_destroy(pthread_barrier_t *b)
{
	struct ev e;
	int on = sync_begin_destroy(&e, CALL_pthread_barrier_destroy, PROPHET_ObjBarrier, b, CALLER());
	return sync_end_destroy(&e, on, REAL(pthread_barrier_destroy)(b));
}

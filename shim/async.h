/* POSIX asynchronous I/O. Threads of the C library do it, which no wrapper sees; what the program may know of it, it is told
 * by aio_error, aio_return, aio_suspend and lio_listio. The first of them to find an operation over records what it
 * brought. Which those are is marked in bytes of the control block that glibc leaves alone.
 */
#ifndef SHIM_ASYNC_H
#define SHIM_ASYNC_H

#include "wrap_all.h"

#define AIO_UNTOLD 0x6f69615f746e6f63ull /* begun, and its end is not in the trace yet */
#define AIO_AHEAD 0x6f69615f64616568ull /* of a re-execution: the trace has not said yet that it is over */

static inline u64 *shim_aio_mark(const struct aiocb *cb)
{
	_Static_assert(sizeof cb->__glibc_reserved >= 8 && offsetof(struct aiocb, __glibc_reserved) % 8 == 0, "room for a mark");
	return (u64 *)(u64)cb->__glibc_reserved;
}

/* A copy of a control block is not marked. */
static inline u64 shim_aio_state(const struct aiocb *cb, u64 state)
{
	return state ^ (u64)cb;
}

static inline int shim_aio_is(const struct aiocb *cb, u64 state)
{
	return __atomic_load_n(shim_aio_mark(cb), __ATOMIC_ACQUIRE) == shim_aio_state(cb, state);
}

static inline void shim_aio_set(const struct aiocb *cb, u64 state)
{
	__atomic_store_n(shim_aio_mark(cb), state ? shim_aio_state(cb, state) : 0, __ATOMIC_RELEASE);
}

#endif

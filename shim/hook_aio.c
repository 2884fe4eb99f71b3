/* Asynchronous I/O by hand: its results are found in control blocks, of one or of many operations (async.h). */
#include "async.h"

#define FINISHED 16 /* that one event tells of; others are told by the calls that ask for them */

/* Operations that are over, and that no event has told of: for each V which of the list, Z bytes or -errno. What they have read
 * is the event's data, one behind the other. */
static void finished(struct ev *e, const struct aiocb *const list[], int n, struct iovec v[FINISHED])
{
	u8 *p = e->inbuf;
	u64 len = 0;
	u32 policy = 0, told = 0, pieces = 0;
	int i;
	_Static_assert(FINISHED * 18 <= INPUT_ROOM, "all of them have room");
	for (i = 0; i < n && told < FINISHED; i++) {
		const struct aiocb *cb = list[i];
		u64 mine;
		i64 r;
		int error;
		if (!cb || !shim_aio_is(cb, AIO_UNTOLD) || (error = __atomic_load_n(&cb->__error_code, __ATOMIC_ACQUIRE)) == EINPROGRESS)
			continue;
		mine = shim_aio_state(cb, AIO_UNTOLD);
		if (!__atomic_compare_exchange_n(shim_aio_mark(cb), &mine, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			continue; /* another thread tells it */
		shim_timer_restore((struct sigevent *)(u64)&cb->aio_sigevent);
		r = error ? -(i64)error : (i64)cb->__return_value;
		p = put_v(p, (u64)i);
		p = put_z(p, r);
		told++;
		if (r > 0 && (cb->aio_lio_opcode & 127) == LIO_READ && (u64)r <= cb->aio_nbytes) {
			u32 one = shim_policy(cb->aio_fildes, 0);
			policy = one > policy ? one : policy;
			v[pieces].iov_base = (void *)cb->aio_buf;
			v[pieces++].iov_len = (u64)r;
			len += (u64)r;
		}
	}
	e->inlen = (u32)(p - e->inbuf);
	if (policy && len)
		shim_data_iov_slow(e, policy, v, pieces, len);
}

#define READS (-1)
#define WRITES (-2)

/* Told before it begins, as it may be over, and its block gone, before the call is: what it is, and what it writes. A thread that
 * is to be started at its end is known as those of timers are (timers.c); the program's own event is in the block again when
 * its end is told. */
static void begins(struct ev *e, struct aiocb *cb, struct sigevent *room, int how)
{
	e->obj = shim_obj_fd(e->t, cb->aio_fildes);
	e->f1 = how < 0 ? cb->aio_nbytes : (u64)how;
	e->f2 = how < 0 ? (u64)cb->aio_offset : 0;
	e->f3 = (u64)cb->aio_sigevent.sigev_notify;
	if (how == WRITES && cb->aio_nbytes && shim_policy(cb->aio_fildes, 1))
		shim_data_slow(e, PROPHET_InputsHash, (const void *)cb->aio_buf, cb->aio_nbytes);
	if (shim_timer_threads(&cb->aio_sigevent, room) == room)
		cb->aio_sigevent = *room;
	else
		room->sigev_notify = SIGEV_NONE;
	shim_aio_set(cb, AIO_UNTOLD);
}

static void begun(struct ev *e, struct aiocb *cb, struct sigevent *room, int r)
{
	shim_end(e, WRAP_ONCE);
	e->ret = shim_ret_errno(r);
	if (r != 0) {
		shim_aio_set(cb, 0);
		shim_timer_restore(&cb->aio_sigevent);
		shim_timer_not_made(room->sigev_notify == SIGEV_NONE ? 0 : room, room);
		e->data_kind = 0;
	}
	shim_done(e);
}

#define BEGINS(name, params, args, how)                                 \
	EXPORT int name params                                          \
	{                                                               \
		struct sigevent room;                                   \
		struct ev e;                                            \
		int r;                                                  \
		if (!shim_begin(&e, CALL_##name, CLASS_disk, CALLER())) \
			return REAL(name) args;                         \
		begins(&e, (struct aiocb *)cb, &room, how);             \
		r = REAL(name) args;                                    \
		begun(&e, (struct aiocb *)cb, &room, r);                \
		return r;                                               \
	}
BEGINS(aio_read, (struct aiocb * cb), (cb), READS)
BEGINS(aio_read64, (struct aiocb64 * cb), (cb), READS)
BEGINS(aio_write, (struct aiocb * cb), (cb), WRITES)
BEGINS(aio_write64, (struct aiocb64 * cb), (cb), WRITES)
BEGINS(aio_fsync, (int how, struct aiocb *cb), (how, cb), how & 0x7fffffff)
BEGINS(aio_fsync64, (int how, struct aiocb64 *cb), (how, cb), how & 0x7fffffff)

#define TELLS(type, name, params)                                       \
	EXPORT type name params                                         \
	{                                                               \
		const struct aiocb *one = (const struct aiocb *)cb;     \
		struct iovec v[FINISHED];                               \
		u8 room[INPUT_ROOM];                                    \
		struct ev e;                                            \
		type r;                                                 \
		if (!shim_begin(&e, CALL_##name, CLASS_disk, CALLER())) \
			return REAL(name)(cb);                          \
		r = REAL(name)(cb);                                     \
		shim_end(&e, WRAP_ONCE);                                \
		e.inbuf = room;                                         \
		e.ret = (i64)r;                                         \
		e.obj = shim_obj_fd(e.t, one->aio_fildes);              \
		finished(&e, &one, 1, v);                               \
		shim_done(&e);                                          \
		return r;                                               \
	}
TELLS(int, aio_error, (const struct aiocb *cb))
TELLS(int, aio_error64, (const struct aiocb64 *cb))
TELLS(ssize_t, aio_return, (struct aiocb * cb))
TELLS(ssize_t, aio_return64, (struct aiocb64 * cb))

#define SUSPENDS(name, block)                                                                           \
	EXPORT int name(const struct block *const list[], int n, const struct timespec *restrict limit) \
	{                                                                                               \
		struct iovec v[FINISHED];                                                               \
		u8 room[INPUT_ROOM];                                                                    \
		struct ev e;                                                                            \
		int r;                                                                                  \
		if (!shim_begin(&e, CALL_##name, CLASS_disk, CALLER()))                                 \
			return REAL(name)(list, n, limit);                                              \
		r = REAL(name)(list, n, limit);                                                         \
		shim_end(&e, WRAP_BLOCK);                                                               \
		e.inbuf = room;                                                                         \
		e.ret = shim_ret_errno(r);                                                              \
		e.f1 = (u64)n;                                                                          \
		e.f2 = shim_timespec(&e, limit);                                                        \
		if (r == 0)                                                                             \
			finished(&e, (const struct aiocb *const *)list, n, v);                          \
		shim_done(&e);                                                                          \
		return r;                                                                               \
	}
SUSPENDS(aio_suspend, aiocb)
SUSPENDS(aio_suspend64, aiocb64)

/* Those that come to nothing at once have their error in their block, where they are asked for it. */
static void listed(const struct aiocb *const list[], int n)
{
	int i;
	for (i = 0; i < n; i++)
		if (list[i] && list[i]->aio_lio_opcode != LIO_NOP)
			shim_aio_set(list[i], AIO_UNTOLD);
}

#define LISTS(name, block)                                                                                  \
	EXPORT int name(int mode, struct block *const list[restrict], int n, struct sigevent *restrict sev) \
	{                                                                                                   \
		struct sigevent own, *asked = sev;                                                          \
		struct iovec v[FINISHED];                                                                   \
		u8 room[INPUT_ROOM];                                                                        \
		struct ev e;                                                                                \
		int r;                                                                                      \
		if (!shim_begin(&e, CALL_##name, CLASS_disk, CALLER()))                                     \
			return REAL(name)(mode, list, n, sev);                                              \
		e.f3 = sev && mode == LIO_NOWAIT ? (u64)sev->sigev_notify : (u64)SIGEV_NONE;                \
		listed((const struct aiocb *const *)list, n);                                               \
		if (mode == LIO_NOWAIT)                                                                     \
			asked = shim_timer_threads(sev, &own);                                              \
		r = REAL(name)(mode, list, n, asked);                                                       \
		shim_end(&e, WRAP_BLOCK);                                                                   \
		if (r != 0)                                                                                 \
			shim_timer_not_made(asked, &own);                                                   \
		e.inbuf = room;                                                                             \
		e.ret = shim_ret_errno(r);                                                                  \
		e.f1 = (u64)mode;                                                                           \
		e.f2 = (u64)n;                                                                              \
		if (mode == LIO_WAIT)                                                                       \
			finished(&e, (const struct aiocb *const *)list, n, v);                              \
		shim_done(&e);                                                                              \
		return r;                                                                                   \
	}
LISTS(lio_listio, aiocb)
LISTS(lio_listio64, aiocb64)

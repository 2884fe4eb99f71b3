/* Stand-ins for asynchronous I/O. What is done to a file is done when the program asks for it, and awaited; that it is over the
 * program is told when the trace says so, and by the signals that the trace has. What comes from a channel comes then.
 */
#include "async.h"
#include "channel.h"

/* The C library's threads do it, as from then on the program has more than one, and its memory is where it was. No call that is
 * made here can be cancelled. */
static i64 by_library(const struct aiocb *cb, int how)
{
	struct aiocb own = *cb;
	struct timespec moment = {0, 20000};
	int r;
	own.aio_sigevent.sigev_notify = SIGEV_NONE;
	if (how == LIO_READ)
		r = TRUE(aio_read)(&own);
	else if (how == LIO_WRITE)
		r = TRUE(aio_write)(&own);
	else
		r = TRUE(aio_fsync)(O_DSYNC, &own);
	if (r != 0)
		return -(i64)errno;
	while ((r = TRUE(aio_error)(&own)) == EINPROGRESS)
		sys(SYS_nanosleep, &moment, 0);
	return r ? -(i64)r : (i64)TRUE(aio_return)(&own);
}

/* A program whose harness comes off sees operations that are over: those on files as they were done, others as cancelled. */
static void begin(struct aiocb *cb, int how)
{
	int fd = cb->aio_fildes, was = errno;
	int file = how == LIO_WRITE && shim_channel_outside(fd) ? shim_channel_kind(fd) == FD_NULL : shim_channel_file(fd);
	i64 r = by_library(cb, file ? how : LIO_NOP);
	if (!file && how == LIO_READ)
		r = -ECANCELED;
	if (!file && how == LIO_WRITE) {
		struct expect all = {.ret = (i64)cb->aio_nbytes};
		struct iovec v = {(void *)cb->aio_buf, cb->aio_nbytes};
		if (shim_channel_inside(fd) || shim_channel_outside(fd))
			shim_channel_write(&all, fd, &v, 1, 0, 0);
		r = all.ret;
	}
	errno = was;
	cb->aio_lio_opcode = how;
	cb->__error_code = r < 0 ? (int)-r : 0;
	cb->__return_value = r < 0 ? -1 : r;
	shim_aio_set(cb, AIO_AHEAD);
}

/* What was written to a channel was, before the program learnt that it had come. No turn is waited for, as who learns that has it. */
static void drained(int fd, u8 *to, u64 n)
{
	u64 at = 0;
	while (at < n) {
		long r;
		shim_channel_await(fd, POLLIN);
		r = shim_re_detached() ? 0 : sys(SYS_read, fd, to + at, n - at);
		if (r == 0 || (r < 0 && r != -EAGAIN && r != -EINTR))
			return;
		at += r > 0 ? (u64)r : 0;
	}
}

/* What the trace says is over; what was read by those is in the event's data, or was read when they began. */
static void over(const struct expect *x, const struct aiocb *const list[], int n)
{
	const u8 *p = x->input, *end = p + x->input_len;
	u64 at = 0;
	while (p < end) {
		u64 i = shim_get_v(&p, end);
		i64 r = shim_get_z(&p, end);
		struct aiocb *cb = i < (u64)n ? (struct aiocb *)(u64)list[i] : 0;
		if (!cb || !shim_aio_is(cb, AIO_AHEAD))
			continue; /* the comparison finds it */
		if (r > 0 && (cb->aio_lio_opcode & 127) == LIO_READ && (u64)r <= cb->aio_nbytes) {
			const u8 *kept = x->data && x->data_len >= at && x->data_len - at >= (u64)r ? x->data + at : 0;
			int fd = cb->aio_fildes;
			if (shim_channel_inside(fd) && shim_channel_kind(fd) != FD_ANON)
				drained(fd, (u8 *)cb->aio_buf, (u64)r);
			if (kept)
				shim_copy((void *)cb->aio_buf, kept, (u64)r);
			at += (u64)r;
		}
		cb->__error_code = r < 0 ? (int)-r : 0;
		cb->__return_value = r < 0 ? -1 : r;
		shim_aio_set(cb, AIO_UNTOLD);
	}
}

#define BEGINS(name, params, args, how)                     \
	static int re_##name params                         \
	{                                                   \
		struct expect *x = shim_re_of(CALL_##name); \
		if (!x)                                     \
			return TRUE(name) args;             \
		if (x->ret == 0)                            \
			begin((struct aiocb *)cb, how);     \
		return (int)shim_re_ret(x);                 \
	}                                                   \
	STANDIN(name, re_##name)
BEGINS(aio_read, (struct aiocb * cb), (cb), LIO_READ)
BEGINS(aio_read64, (struct aiocb64 * cb), (cb), LIO_READ)
BEGINS(aio_write, (struct aiocb * cb), (cb), LIO_WRITE)
BEGINS(aio_write64, (struct aiocb64 * cb), (cb), LIO_WRITE)
BEGINS(aio_fsync, (int how, struct aiocb *cb), (how, cb), LIO_NOP)
BEGINS(aio_fsync64, (int how, struct aiocb64 *cb), (how, cb), LIO_NOP)

/* Before that its end is told there is none. */
#define TELLS(type, name, params)                                   \
	static type re_##name params                                \
	{                                                           \
		struct expect *x = shim_re_of(CALL_##name);         \
		const struct aiocb *one = (const struct aiocb *)cb; \
		if (!x)                                             \
			return TRUE(name)(cb);                      \
		over(x, &one, 1);                                   \
		return (type)x->ret;                                \
	}                                                           \
	STANDIN(name, re_##name)
TELLS(int, aio_error, (const struct aiocb *cb))
TELLS(int, aio_error64, (const struct aiocb64 *cb))
TELLS(ssize_t, aio_return, (struct aiocb * cb))
TELLS(ssize_t, aio_return64, (struct aiocb64 * cb))

#define SUSPENDS(name, block)                                                                                \
	static int re_##name(const struct block *const list[], int n, const struct timespec *restrict limit) \
	{                                                                                                    \
		struct expect *x = shim_re_asked(CALL_##name);                                               \
		if (!x)                                                                                      \
			return TRUE(name)(list, n, limit);                                                   \
		over(x, (const struct aiocb *const *)list, n);                                               \
		return (int)shim_re_ret(x);                                                                  \
	}                                                                                                    \
	STANDIN(name, re_##name)
SUSPENDS(aio_suspend, aiocb)
SUSPENDS(aio_suspend64, aiocb64)

static void begin_all(const struct expect *x, struct aiocb *const list[], int n)
{
	int i;
	for (i = 0; x->ret != -EINVAL && i < n; i++)
		if (list[i] && list[i]->aio_lio_opcode != LIO_NOP) {
			list[i]->aio_sigevent.sigev_notify = SIGEV_NONE; /* as the C library does */
			begin(list[i], list[i]->aio_lio_opcode & 127);
		}
	over(x, (const struct aiocb *const *)list, n);
}

#define LISTS(name, block)                                                                                       \
	static int re_##name(int mode, struct block *const list[restrict], int n, struct sigevent *restrict sev) \
	{                                                                                                        \
		struct expect *x = shim_re_asked(CALL_##name);                                                   \
		if (!x)                                                                                          \
			return TRUE(name)(mode, list, n, sev);                                                   \
		begin_all(x, (struct aiocb *const *)list, n);                                                    \
		return (int)shim_re_ret(x);                                                                      \
	}                                                                                                        \
	STANDIN(name, re_##name)
LISTS(lio_listio, aiocb)
LISTS(lio_listio64, aiocb64)

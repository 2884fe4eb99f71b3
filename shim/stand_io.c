/* Stand-ins for reading and writing. What the trace kept of the data is given back. A regular file of which it has only
 * a hash is really read, as it is what it was, or a copy of that, and the data compared. As much is read and written as
 * then. Channels go by channel.h.
 */
#include "channel.h"
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/uio.h>

#define ASK (-2) /* the kernel has to be asked */

/* A file's data where the trace has all of it; the file's offset moves as if it had been read. */
static ssize_t from_file(const struct expect *x, int fd, const struct iovec *v, int n, int moves)
{
	if (x->ret < 0)
		return shim_re_ret(x);
	if (x->ret > 0 && (!x->data || x->data_len != (u64)x->ret))
		return ASK;
	if (unlikely(shim_re_issued(shim_self.thr)) && shim_channel_kind(fd) == FD_FILE)
		return ASK;
	if (x->ret > 0) {
		shim_scatter(v, (u64)n, x->data, x->data_len);
		if (moves && shim_channel_kind(fd) == FD_FILE)
			sys(SYS_lseek, fd, x->ret, SEEK_CUR);
	}
	return x->ret;
}

/* The recorded answer. */
static ssize_t from_trace(const struct expect *x, int fd, const struct iovec *v, int n, int moves)
{
	if (x->data && x->data_len > shim_room_of(v, n))
		return ASK;
	if (shim_channel_inside(fd) && x->ret >= 0 && shim_room_of(v, n)) { /* to read nothing waits for nothing */
		u64 value = 0;
		if (shim_channel_kind(fd) != FD_ANON)
			return shim_channel_read(x, fd, v, n, 0);
		if (x->data && x->data_len == 8)
			shim_copy(&value, x->data, 8);
		shim_channel_count(x, fd, value);
	}
	return from_file(x, fd, v, n, moves);
}

/* The same, as long as it asks for what the trace has: what is learnt from must not be given another call's answer. */
static struct expect *asked(u32 call, int fd, u64 n, u64 off)
{
	struct expect *x = shim_re_asked(call);
	u64 obj;
	if (likely(!(shim_index->flags & PROPHET_ReplayLearn)) || !x || x->kind != EXPECT_EVENT)
		return x;
	obj = shim_fd_known(fd);
	if (x->f1 != n)
		shim_re_differs(shim_self.thr, x, PROPHET_DiffersField, call, x->f1, n, "1");
	else if (x->f2 != off)
		shim_re_differs(shim_self.thr, x, PROPHET_DiffersField, call, x->f2, off, "2");
	else if (obj && x->obj && x->obj != obj)
		shim_re_differs(shim_self.thr, x, PROPHET_DiffersObject, call, x->obj, obj, "");
	else
		return x;
	return 0;
}

#define LESS n = (u64)x->ret < n ? (size_t)x->ret : n
#define ONE                                     \
	struct iovec one = {buf, n}, *v = &one; \
	int pieces = 1;
#define MANY                         \
	const struct iovec *v = iov; \
	int pieces = n;

/* limit: no more is read than then. */
#define READS(name, params, args, give, limit, moves, from)                     \
	static ssize_t re_##name params                                         \
	{                                                                       \
		struct expect *x = asked(CALL_##name, fd, (u64)n, (u64)(from)); \
		if (x) {                                                        \
			give ssize_t r = from_trace(x, fd, v, pieces, moves);   \
			if (r != ASK)                                           \
				return r;                                       \
			limit;                                                  \
		}                                                               \
		return ((ssize_t(*) params)shim_true(CALL_##name))args;         \
	}                                                                       \
	STANDIN(name, re_##name)
READS(read, (int fd, void *buf, size_t n), (fd, buf, n), ONE, LESS, 1, 0)
READS(__read, (int fd, void *buf, size_t n), (fd, buf, n), ONE, LESS, 1, 0)
READS(__read_chk, (int fd, void *buf, size_t n, size_t room), (fd, buf, n, room), ONE, LESS, 1, 0)
READS(pread, (int fd, void *buf, size_t n, off_t off), (fd, buf, n, off), ONE, LESS, 0, off)
READS(pread64, (int fd, void *buf, size_t n, off_t off), (fd, buf, n, off), ONE, LESS, 0, off)
READS(__pread64, (int fd, void *buf, size_t n, off_t off), (fd, buf, n, off), ONE, LESS, 0, off)
READS(__pread_chk, (int fd, void *buf, size_t n, off_t off, size_t room), (fd, buf, n, off, room), ONE, LESS, 0, off)
READS(__pread64_chk, (int fd, void *buf, size_t n, off_t off, size_t room), (fd, buf, n, off, room), ONE, LESS, 0, off)
READS(readv, (int fd, const struct iovec *iov, int n), (fd, iov, n), MANY, (void)0, 1, 0)
READS(preadv, (int fd, const struct iovec *iov, int n, off_t off), (fd, iov, n, off), MANY, (void)0, 0, off)
READS(preadv64, (int fd, const struct iovec *iov, int n, off_t off), (fd, iov, n, off), MANY, (void)0, 0, off)
READS(preadv2, (int fd, const struct iovec *iov, int n, off_t off, int flags), (fd, iov, n, off, flags), MANY, (void)0, off == -1, off)
READS(preadv64v2, (int fd, const struct iovec *iov, int n, off_t off, int flags), (fd, iov, n, off, flags), MANY, (void)0, off == -1, off)

static ssize_t re_stdio_read(FILE *fp, void *buf, ssize_t n)
{
	struct expect *x = asked(CALL__IO_file_read, fp->_fileno, (u64)n, 0);
	struct iovec v = {buf, (size_t)n};
	ssize_t (*real)(FILE *, void *, ssize_t) = (__typeof__(real))shim_true(CALL__IO_file_read);
	ssize_t r;
	if (!x)
		return real(fp, buf, n);
	r = from_trace(x, fp->_fileno, &v, 1, 1);
	return r == ASK ? real(fp, buf, x->ret < n ? x->ret : n) : r;
}
STANDIN(_IO_file_read, re_stdio_read)

/* Whether what was written has gone the recorded way; 0: a file is really written, unless it sets the machine. */
static int to_trace(const struct expect *x, int fd, const struct iovec *v, int n)
{
	if (x->ret < 0)
		return 1;
	if (shim_channel_outside(fd) ? shim_channel_kind(fd) == FD_NULL : shim_channel_file(fd))
		return shim_fd_machines(fd);
	if (x->ret > 0 && (shim_channel_inside(fd) || shim_channel_outside(fd)))
		shim_channel_write(x, fd, v, n, 0, 0);
	return 1;
}

/* A part of it, if it was a part. */
#define WRITES(name, params, args, give, limit, from)                               \
	static ssize_t re_##name params                                             \
	{                                                                           \
		struct expect *x = asked(CALL_##name, fd, (u64)n, (u64)(from));     \
		if (x) {                                                            \
			give if (to_trace(x, fd, v, pieces)) return shim_re_ret(x); \
			limit;                                                      \
		}                                                                   \
		return ((ssize_t(*) params)shim_true(CALL_##name))args;             \
	}                                                                           \
	STANDIN(name, re_##name)
WRITES(write, (int fd, void *buf, size_t n), (fd, buf, n), ONE, LESS, 0)
WRITES(__write, (int fd, void *buf, size_t n), (fd, buf, n), ONE, LESS, 0)
WRITES(pwrite, (int fd, void *buf, size_t n, off_t off), (fd, buf, n, off), ONE, LESS, off)
WRITES(pwrite64, (int fd, void *buf, size_t n, off_t off), (fd, buf, n, off), ONE, LESS, off)
WRITES(__pwrite64, (int fd, void *buf, size_t n, off_t off), (fd, buf, n, off), ONE, LESS, off)
WRITES(writev, (int fd, const struct iovec *iov, int n), (fd, iov, n), MANY, (void)0, 0)
WRITES(pwritev, (int fd, const struct iovec *iov, int n, off_t off), (fd, iov, n, off), MANY, (void)0, off)
WRITES(pwritev64, (int fd, const struct iovec *iov, int n, off_t off), (fd, iov, n, off), MANY, (void)0, off)
WRITES(pwritev2, (int fd, const struct iovec *iov, int n, off_t off, int flags), (fd, iov, n, off, flags), MANY, (void)0, off)
WRITES(pwritev64v2, (int fd, const struct iovec *iov, int n, off_t off, int flags), (fd, iov, n, off, flags), MANY, (void)0, off)

#define IO_ERR_SEEN 0x20 /* in _flags */

/* The stream learns of an error by its flag, and of how much was written before. */
static ssize_t re_stdio_write(FILE *fp, void *buf, ssize_t n)
{
	struct expect *x = asked(CALL__IO_file_write, fp->_fileno, (u64)n, 0);
	ssize_t (*real)(FILE *, void *, ssize_t) = (__typeof__(real))shim_true(CALL__IO_file_write);
	struct iovec v = {buf, (size_t)n};
	ssize_t r;
	if (!x)
		return real(fp, buf, n);
	if (!to_trace(x, fp->_fileno, &v, 1))
		r = real(fp, buf, x->ret < n ? x->ret : n);
	else
		r = x->ret > 0 ? x->ret : 0;
	if (x->ret < 0)
		errno = (int)-x->ret;
	if (x->ret < n)
		fp->_flags |= IO_ERR_SEEN;
	return r;
}
STANDIN(_IO_file_write, re_stdio_write)

static off_t re_io_seek(FILE *fp, off_t off, int whence)
{
	struct expect *x = shim_re_asked(CALL__IO_file_seek);
	if (!x)
		return ((off_t(*)(FILE *, off_t, int))shim_true(CALL__IO_file_seek))(fp, off, whence);
	feed_offset(x, fp->_fileno);
	return shim_re_ret(x);
}
STANDIN(_IO_file_seek, re_io_seek)

static int re_io_stat(FILE *fp, void *st)
{
	struct expect *x = shim_re_asked(CALL__IO_file_stat);
	if (!x)
		return ((int (*)(FILE *, void *))shim_true(CALL__IO_file_stat))(fp, st);
	feed_stat(x, st, fp->_fileno, "", AT_EMPTY_PATH);
	return (int)shim_re_ret(x);
}
STANDIN(_IO_file_stat, re_io_stat)

static int re_eventfd_read(int fd, eventfd_t *value)
{
	struct expect *x = shim_re_asked(CALL_eventfd_read);
	if (!x)
		return TRUE(eventfd_read)(fd, value);
	if (x->ret != 0)
		return (int)shim_re_ret(x);
	if (shim_channel_inside(fd))
		shim_channel_count(x, fd, x->f1);
	*value = x->f1;
	return 0;
}
STANDIN(eventfd_read, re_eventfd_read)

static int re_eventfd_write(int fd, eventfd_t value)
{
	struct expect *x = shim_re_asked(CALL_eventfd_write);
	if (!x)
		return TRUE(eventfd_write)(fd, value);
	if (x->ret == 0 && shim_channel_inside(fd)) {
		struct iovec v = {&value, 8};
		struct expect all = *x;
		all.ret = 8;
		shim_channel_write(&all, fd, &v, 1, 0, 0);
	}
	return (int)shim_re_ret(x);
}
STANDIN(eventfd_write, re_eventfd_write)

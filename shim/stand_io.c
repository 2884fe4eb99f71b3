/* Stand-ins for reading and writing. What the trace kept of the data is given back. A regular file of which it has only
 * a hash is really read, as it is what it was, or a copy of that, and the data compared. As much is read and written as
 * then. Descriptors that are no files are another's matter where the trace has nothing (stand_channel).
 */
#include "feed.h"
#include <stdio.h>
#include <sys/uio.h>

/* The recorded answer in the caller's memory, or -2: the kernel has to be asked. moves: the call moves the file's
 * offset. */
static ssize_t from_trace(struct expect *x, int fd, const struct iovec *v, u64 pieces, int moves)
{
	u64 at = 0, n = (u64)x->ret, i;
	if (x->ret <= 0)
		return shim_re_ret(x);
	if (!x->data || x->data_len != n)
		return -2;
	for (i = 0; i < pieces && at < n; i++) {
		u64 m = v[i].iov_len < n - at ? v[i].iov_len : n - at;
		shim_copy(v[i].iov_base, x->data + at, m);
		at += m;
	}
	if (moves && shim_fd_kind(fd) == FD_FILE)
		sys(SYS_lseek, fd, x->ret, SEEK_CUR);
	return at == n ? x->ret : -2;
}

/* READS(name, params, args of the real call with n for how much, whether the offset moves) */
#define READS(name, params, args, moves)                                                   \
	static ssize_t re_##name params                                                    \
	{                                                                                  \
		struct expect *x = shim_re_of(CALL_##name);                                \
		struct iovec v = {buf, n};                                                 \
		ssize_t r;                                                                 \
		if (x && (r = from_trace(x, fd, &v, 1, moves)) != -2)                      \
			return r;                                                          \
		if (x && (u64)x->ret < n)                                                  \
			n = (size_t)x->ret;                                                \
		return ((ssize_t(*) params)shim_true(CALL_##name))args;                    \
	}                                                                                  \
	STANDIN(name, re_##name)
READS(read, (int fd, void *buf, size_t n), (fd, buf, n), 1)
READS(__read, (int fd, void *buf, size_t n), (fd, buf, n), 1)
READS(__read_chk, (int fd, void *buf, size_t n, size_t room), (fd, buf, n, room), 1)
READS(pread, (int fd, void *buf, size_t n, off_t off), (fd, buf, n, off), 0)
READS(pread64, (int fd, void *buf, size_t n, off_t off), (fd, buf, n, off), 0)
READS(__pread64, (int fd, void *buf, size_t n, off_t off), (fd, buf, n, off), 0)
READS(__pread_chk, (int fd, void *buf, size_t n, off_t off, size_t room), (fd, buf, n, off, room), 0)
READS(__pread64_chk, (int fd, void *buf, size_t n, off_t off, size_t room), (fd, buf, n, off, room), 0)

#define READSV(name, params, args, moves)                                                  \
	static ssize_t re_##name params                                                    \
	{                                                                                  \
		struct expect *x = shim_re_of(CALL_##name);                                \
		ssize_t r;                                                                 \
		if (x && (r = from_trace(x, fd, v, (u64)n, moves)) != -2)                  \
			return r;                                                          \
		return ((ssize_t(*) params)shim_true(CALL_##name))args;                    \
	}                                                                                  \
	STANDIN(name, re_##name)
READSV(readv, (int fd, const struct iovec *v, int n), (fd, v, n), 1)
READSV(preadv, (int fd, const struct iovec *v, int n, off_t off), (fd, v, n, off), 0)
READSV(preadv64, (int fd, const struct iovec *v, int n, off_t off), (fd, v, n, off), 0)
READSV(preadv2, (int fd, const struct iovec *v, int n, off_t off, int flags), (fd, v, n, off, flags), off == -1)
READSV(preadv64v2, (int fd, const struct iovec *v, int n, off_t off, int flags), (fd, v, n, off, flags), off == -1)

/* What is written goes where it went; a part of it, if it was a part. */
#define WRITES(name, params, args)                                                         \
	static ssize_t re_##name params                                                    \
	{                                                                                  \
		struct expect *x = shim_re_of(CALL_##name);                                \
		if (x && x->ret < 0)                                                       \
			return shim_re_ret(x);                                             \
		if (x && (u64)x->ret < n && shim_fd_kind(fd) == FD_FILE)                   \
			n = (size_t)x->ret;                                                \
		return ((ssize_t(*) params)shim_true(CALL_##name))args;                    \
	}                                                                                  \
	STANDIN(name, re_##name)
WRITES(write, (int fd, const void *buf, size_t n), (fd, buf, n))
WRITES(__write, (int fd, const void *buf, size_t n), (fd, buf, n))
WRITES(pwrite, (int fd, const void *buf, size_t n, off_t off), (fd, buf, n, off))
WRITES(pwrite64, (int fd, const void *buf, size_t n, off_t off), (fd, buf, n, off))
WRITES(__pwrite64, (int fd, const void *buf, size_t n, off_t off), (fd, buf, n, off))

/* The same of the C library's streams. */

static ssize_t re_io_read(FILE *fp, void *buf, ssize_t n)
{
	struct expect *x = shim_re_of(CALL__IO_file_read);
	struct iovec v = {buf, (size_t)n};
	ssize_t r;
	if (x && (r = from_trace(x, fp->_fileno, &v, 1, 1)) != -2)
		return r;
	return ((ssize_t(*)(FILE *, void *, ssize_t))shim_true(CALL__IO_file_read))(fp, buf, x && x->ret < n ? x->ret : n);
}
STANDIN(_IO_file_read, re_io_read)

#define IO_ERR_SEEN 0x20 /* in _flags */

/* The stream learns of an error by its flag, and of how much was written before. */
static ssize_t re_io_write(FILE *fp, const void *buf, ssize_t n)
{
	struct expect *x = shim_re_of(CALL__IO_file_write);
	ssize_t r = 0;
	if (!x || x->ret >= 0)
		r = ((ssize_t(*)(FILE *, const void *, ssize_t))shim_true(CALL__IO_file_write))(fp, buf, x && x->ret < n ? x->ret : n);
	else
		errno = (int)-x->ret;
	if (x && x->ret < n)
		fp->_flags |= IO_ERR_SEEN;
	return r;
}
STANDIN(_IO_file_write, re_io_write)

static off_t re_io_seek(FILE *fp, off_t off, int whence)
{
	struct expect *x = shim_re_of(CALL__IO_file_seek);
	if (!x)
		return ((off_t(*)(FILE *, off_t, int))shim_true(CALL__IO_file_seek))(fp, off, whence);
	feed_offset(x, fp->_fileno);
	return shim_re_ret(x);
}
STANDIN(_IO_file_seek, re_io_seek)

static int re_io_stat(FILE *fp, void *st)
{
	struct expect *x = shim_re_of(CALL__IO_file_stat);
	if (!x)
		return ((int (*)(FILE *, void *))shim_true(CALL__IO_file_stat))(fp, st);
	feed_stat(x, st);
	return (int)shim_re_ret(x);
}
STANDIN(_IO_file_stat, re_io_stat)

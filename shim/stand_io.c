/* Stand-ins for reading. A regular file is really read, as it is what it was, or a copy of that; what the trace kept of
 * it counts. Everything else is answered from the trace where it has the data: the other end need not exist.
 */
#include "feed.h"
#include <sys/uio.h>

/* The recorded answer, or -2: the kernel has to be asked. */
static ssize_t from_trace(struct expect *x, int fd, void *buf, u64 n)
{
	u32 kind = shim_fd_kind(fd);
	if (kind == FD_FILE || kind == FD_DIR || kind == FD_NULL)
		return -2;
	if (x->ret > 0 && (!x->data || x->data_len > n))
		return -2;
	feed_data(x, buf, n);
	return shim_re_ret(x);
}

/* What was really read of a file is put right where the trace has it. */
static ssize_t corrected(struct expect *x, void *buf, ssize_t r)
{
	if (r == x->ret && r > 0 && x->data && x->data_len == (u64)r)
		shim_copy(buf, x->data, x->data_len);
	return r;
}

#define READS(name, params, args)                                       \
	static ssize_t re_##name params                                 \
	{                                                               \
		struct expect *x = shim_re_of(CALL_##name);             \
		ssize_t r;                                              \
		if (!x)                                                 \
			return ((ssize_t(*) params)shim_true(CALL_##name))args;                         \
		r = from_trace(x, fd, buf, n);                          \
		return r != -2 ? r : corrected(x, buf, ((ssize_t(*) params)shim_true(CALL_##name))args); \
	}                                                               \
	STANDIN(name, re_##name)
READS(read, (int fd, void *buf, size_t n), (fd, buf, n))
READS(__read, (int fd, void *buf, size_t n), (fd, buf, n))
READS(__read_chk, (int fd, void *buf, size_t n, size_t room), (fd, buf, n, room))
READS(pread, (int fd, void *buf, size_t n, off_t off), (fd, buf, n, off))
READS(pread64, (int fd, void *buf, size_t n, off_t off), (fd, buf, n, off))
READS(__pread64, (int fd, void *buf, size_t n, off_t off), (fd, buf, n, off))

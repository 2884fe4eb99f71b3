/* What the program's descriptors are: an object each, its kind, and how much of what comes through is kept.
 *
 * One table by number for the process; entries are words that any thread stores whole. Descriptors that we did not
 * see come to be (inherited, received) are looked at when first used.
 */
#ifndef SHIM_FDTAB_H
#define SHIM_FDTAB_H

#include "thread.h"

struct wrap_ev;

enum { FD_UNKNOWN, FD_FILE, FD_DIR, FD_SOCKET, FD_PIPE, FD_TTY, FD_NULL, FD_RANDOM, FD_ANON, FD_OTHER };

/* The object of an open descriptor; 0 for a number that is none. */
HIDDEN u64 shim_fd_slow(struct thr *t, int fd);
HIDDEN void shim_fd_new(struct thr *t, int fd, const char *path); /* the program got it just now */
HIDDEN void shim_fd_same(struct thr *t, int fd, int of);	   /* dup: the kind and policy of another */
HIDDEN u64 shim_fd_made(struct thr *t, int fd, u32 kind, const char *detail); /* new, and its kind is known: no system call */
HIDDEN void shim_fd_gone(int fd);
HIDDEN void shim_fd_written(int fd); /* the run writes this file: what it reads of it is kept whole */

struct fdinfo {
	u64 obj;
	u8 kind, in, out, append; /* in, out: PROPHET_Inputs… for data read and written */
	u32 pad;
};
#define FDS_PER_PAGE 256
#define FD_PAGES 4096
extern struct fdinfo *shim_fd_pages[FD_PAGES] HIDDEN;

static inline struct fdinfo *shim_fdinfo(int fd)
{
	struct fdinfo *p;
	if (unlikely((u32)fd >= FDS_PER_PAGE * FD_PAGES))
		return 0;
	p = shim_fd_pages[(u32)fd / FDS_PER_PAGE];
	return p ? p + (u32)fd % FDS_PER_PAGE : 0;
}

static inline u64 shim_obj_fd(struct thr *t, int fd)
{
	struct fdinfo *i = shim_fdinfo(fd);
	if (likely(i && i->obj))
		return i->obj;
	return shim_fd_slow(t, fd);
}

/* For the simple shape: the object when it is known, and whether data that came or went leaves nothing to record. */
static inline u64 shim_fd_known(int fd)
{
	struct fdinfo *i = shim_fdinfo(fd);
	return likely(i != 0) ? i->obj : 0;
}

static inline int shim_fd_quiet_in(int fd)
{
	struct fdinfo *i = shim_fdinfo(fd);
	return !i || !i->in || !shim_ctl.inputs;
}

static inline int shim_fd_quiet_out(int fd)
{
	struct fdinfo *i = shim_fdinfo(fd);
	return !i || !i->out || !shim_ctl.inputs;
}

/* Input data of len bytes at buf that came from fd; output data that went to fd. Called before shim_done. */
HIDDEN void shim_data_slow(struct ev *e, u32 policy, const void *buf, u64 len);

static inline void shim_data(struct ev *e, int fd, const void *buf, i64 len)
{
	struct fdinfo *i = shim_fdinfo(fd);
	if (len > 0 && i && i->in && shim_ctl.inputs)
		shim_data_slow(e, i->in, buf, (u64)len);
}

static inline void shim_wrote(struct ev *e, int fd, const void *buf, i64 len)
{
	struct fdinfo *i = shim_fdinfo(fd);
	if (len > 0 && i && i->out && shim_ctl.inputs)
		shim_data_slow(e, i->out, buf, (u64)len);
}

/* The same for scattered data: the first len bytes of what v tells. v stays until shim_done. */
HIDDEN void shim_data_iov_slow(struct ev *e, u32 policy, const struct iovec *v, u64 n, u64 len);

static inline void shim_data_iov(struct ev *e, int fd, const struct iovec *v, i64 n, i64 len)
{
	struct fdinfo *i = shim_fdinfo(fd);
	if (len > 0 && i && i->in && shim_ctl.inputs)
		shim_data_iov_slow(e, i->in, v, (u64)n, (u64)len);
}

static inline void shim_wrote_iov(struct ev *e, int fd, const struct iovec *v, i64 n, i64 len)
{
	struct fdinfo *i = shim_fdinfo(fd);
	if (len > 0 && i && i->out && shim_ctl.inputs)
		shim_data_iov_slow(e, i->out, v, (u64)n, (u64)len);
}

#endif

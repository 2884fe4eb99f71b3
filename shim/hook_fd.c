/* Calls on descriptors as such. The recorder has a few of its own, high up: the program must not meet them, so a call
 * that names one gets the answer it would get if that were no descriptor, which is recorded as any other, as a
 * re-execution has not the same ones; and one that wants its number moves ours away.
 */
#include "wrap_all.h"
#include "replay.h"
#include <errno.h>
#include <stdarg.h>
#include <asm/ioctls.h>
#include <linux/fs.h>

static int no_such(void)
{
	errno = EBADF;
	return -1;
}

static u64 known(int fd)
{
	return shim_fd_known(fd);
}

/* The number is free for others as soon as the real call has run, so it is forgotten before. */
#define CLOSE(name)                                                          \
	EXPORT LEAP int name(int fd)                                         \
	{                                                                    \
		struct ev e;                                                 \
		const struct expect *x;                                      \
		int r;                                                       \
		int ours = shim_fd_ours(fd);                                 \
		if (!shim_begin(&e, CALL_##name, CLASS_disk, CALLER())) {    \
			if (unlikely(ours))                                  \
				return no_such();                            \
			shim_fd_gone(fd);                                    \
			return REAL(name)(fd);                               \
		}                                                            \
		x = unlikely(shim_replays) ? shim_re_closes(e.call, fd) : 0; \
		e.obj = unlikely(x != 0) ? x->obj : known(fd);               \
		if (likely(!x))                                              \
			shim_fd_gone(fd);                                    \
		r = unlikely(ours || x) ? no_such() : REAL(name)(fd);        \
		shim_end(&e, WRAP_BLOCK);                                    \
		e.ret = shim_ret_errno(r);                                   \
		e.f1 = (u64)(i64)fd;                                         \
		shim_done(&e);                                               \
		return r;                                                    \
	}
CLOSE(close)
CLOSE(__close)

/* All descriptors of a range but ours. */
static int close_around(unsigned first, unsigned last, int flags)
{
	unsigned at = first;
	int ours, r = 0;
	if (first > last)
		return REAL(close_range)(first, last, flags);
	while ((ours = shim_fd_ours_from(at)) >= 0 && (unsigned)ours <= last) {
		if ((unsigned)ours > at && (r = REAL(close_range)(at, (unsigned)ours - 1, flags)) != 0)
			return r;
		at = (unsigned)ours + 1;
	}
	return at <= last ? REAL(close_range)(at, last, flags) : r;
}

EXPORT int close_range(unsigned first, unsigned last, int flags)
{
	struct ev e;
	int r, rec = shim_begin(&e, CALL_close_range, CLASS_disk, CALLER());
	if (!(flags & CLOSE_RANGE_CLOEXEC))
		shim_fd_gone_from(first, last);
	r = close_around(first, last, flags);
	if (!rec)
		return r;
	shim_end(&e, WRAP_BLOCK);
	e.ret = shim_ret_errno(r);
	e.f1 = first;
	e.f2 = last;
	e.f3 = (u64)(u32)flags;
	shim_done(&e);
	return r;
}

EXPORT void closefrom(int first)
{
	struct ev e;
	int was = errno, from = first < 0 ? 0 : first, rec = shim_begin(&e, CALL_closefrom, CLASS_disk, CALLER());
	shim_fd_gone_from((unsigned)from, ~0u);
	if (shim_fd_ours_from((unsigned)from) < 0 || close_around((unsigned)from, ~0u, 0) != 0) {
		errno = was;
		REAL(closefrom)(first); /* an older kernel: our own are found closed later, and opened again */
	}
	if (!rec)
		return;
	shim_end(&e, WRAP_BLOCK);
	e.f1 = (u64)from;
	shim_done(&e);
}

/* After a duplicate of `of` came to be at r. */
static void duplicated(struct ev *e, int of, int r)
{
	shim_done(e);
	if (r >= 0)
		shim_fd_same(e->t, r, of);
}

static int unseen(int r)
{
	if (r >= 0)
		shim_fd_gone(r);
	return r;
}

EXPORT int dup(int fd)
{
	struct ev e;
	int r, ours = shim_fd_ours(fd);
	if (!shim_begin(&e, CALL_dup, CLASS_disk, CALLER()))
		return unlikely(ours) ? no_such() : unseen(REAL(dup)(fd));
	r = unlikely(ours) ? no_such() : REAL(dup)(fd);
	shim_end(&e, WRAP_BLOCK); /* when it was over tells who got a number first */
	e.ret = shim_ret_errno(r);
	e.obj = shim_obj_fd(e.t, fd);
	duplicated(&e, fd, r);
	return r;
}

#define DUP_TO(name, args, call, more)                                               \
	EXPORT int name args                                                         \
	{                                                                            \
		struct ev e;                                                         \
		int r, ours = shim_fd_ours(fd);                                      \
		if (unlikely(shim_fd_ours(to)) && !ours)                             \
			shim_fd_yield(to);                                           \
		if (!shim_begin(&e, CALL_##name, CLASS_disk, CALLER()))              \
			return unlikely(ours) ? no_such() : unseen(REAL(name) call); \
		r = unlikely(ours) ? no_such() : REAL(name) call;                    \
		shim_end(&e, WRAP_BLOCK);                                            \
		e.ret = shim_ret_errno(r);                                           \
		e.obj = shim_obj_fd(e.t, fd);                                        \
		e.f1 = (u64)(i64)to;                                                 \
		more;                                                                \
		duplicated(&e, fd, r);                                               \
		return r;                                                            \
	}
DUP_TO(dup2, (int fd, int to), (fd, to), (void)0)
DUP_TO(__dup2, (int fd, int to), (fd, to), (void)0)
DUP_TO(dup3, (int fd, int to, int flags), (fd, to, flags), e.f2 = shim_open_flags((u64)(u32)flags))

static int is_lock(int cmd)
{
	return cmd == F_SETLK || cmd == F_SETLKW || cmd == F_GETLK || cmd == F_OFD_SETLK || cmd == F_OFD_SETLKW || cmd == F_OFD_GETLK;
}

static int takes_lock(int cmd)
{
	return cmd == F_SETLK || cmd == F_SETLKW || cmd == F_OFD_SETLK || cmd == F_OFD_SETLKW;
}

/* What other commands were given, if anything, may be what a register held. */
static int takes_number(int cmd)
{
	switch (cmd) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
	case F_SETFD:
	case F_SETOWN:
	case F_SETSIG:
	case F_SETLEASE:
	case F_NOTIFY:
	case F_SETPIPE_SZ:
	case F_ADD_SEALS:
		return 1;
	default:
		return 0;
	}
}

static int duplicates(int cmd)
{
	return cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC;
}

typedef int (*fcntl_fn)(int, int, ...);

/* The lowest number from min on: one of ours that stands in its way gives way. */
static int duplicate_from(fcntl_fn real, int fd, int cmd, unsigned long min)
{
	int r = real(fd, cmd, min), ours;
	if (unlikely(r >= 0 && (ours = shim_fd_ours_from((u32)min)) >= 0 && ours < r)) {
		do
			shim_fd_yield(ours);
		while ((ours = shim_fd_ours_from((u32)min)) >= 0 && ours < r);
		sys(SYS_close, r);
		r = real(fd, cmd, min);
	}
	return r;
}

static LEAP NOINLINE int fcntl_on(fcntl_fn real, u32 call, int fd, int cmd, unsigned long arg, void *pc)
{
	u8 room[64];
	struct ev e;
	int r, ours = shim_fd_ours(fd);
	if (cmd == F_SETFL && !(arg & O_NONBLOCK)) /* before others can be waiting */
		shim_fd_hurry(fd, 0);
	if (!shim_begin(&e, call, CLASS_disk, pc))
		return unlikely(ours) ? no_such() : duplicates(cmd) ? unseen(duplicate_from(real, fd, cmd, arg)) : real(fd, cmd, arg);
	e.inbuf = room;
	r = unlikely(ours) ? no_such() : duplicates(cmd) ? duplicate_from(real, fd, cmd, arg) : real(fd, cmd, arg);
	shim_end(&e, cmd == F_SETLKW || cmd == F_OFD_SETLKW || duplicates(cmd));
	e.ret = shim_ret_errno(r);
	e.obj = shim_obj_fd(e.t, fd);
	e.f1 = (u64)(u32)cmd;
	if (cmd == F_GETFL && r >= 0)
		e.ret = (i64)shim_open_flags((u64)(u32)r);
	if (cmd == F_SETFL)
		e.f2 = shim_open_flags(arg);
	else if (takes_number(cmd))
		e.f2 = (u64)(u32)arg;
	if (is_lock(cmd) && (r == 0 || e.ret == -EAGAIN || e.ret == -EACCES || e.ret == -EINTR || e.ret == -EDEADLK))
		shim_input_flock(&e, (const struct flock *)arg);
	if (r == 0 && takes_lock(cmd) && ((const struct flock *)arg)->l_type != F_UNLCK)
		shim_file_locked(&e, fd);
	if (duplicates(cmd)) {
		duplicated(&e, fd, r);
		return r;
	}
	shim_done(&e);
	if (r == 0 && cmd == F_SETFL && arg & O_NONBLOCK)
		shim_fd_hurry(fd, 1);
	if (r == 0 && (cmd == F_SETLK || cmd == F_SETLKW))
		shim_keep_locked(fd);
	return r;
}

/* What was not passed is not looked at: the kernel takes a long for every command. */
#define FCNTL(name)                                                                                     \
	EXPORT LEAP int name(int fd, int cmd, ...)                                                      \
	{                                                                                               \
		va_list ap;                                                                             \
		unsigned long arg;                                                                      \
		va_start(ap, cmd);                                                                      \
		arg = va_arg(ap, unsigned long);                                                        \
		va_end(ap);                                                                             \
		return fcntl_on((fcntl_fn)shim_real(CALL_##name), CALL_##name, fd, cmd, arg, CALLER()); \
	}
FCNTL(fcntl)
FCNTL(fcntl64)
FCNTL(__fcntl)

/* Bytes of the structure that a successful request has filled in (out) or read (in). */
static u32 ioctl_room(unsigned long request)
{
	u32 n = _IOC_SIZE(request);
	switch (request) {
	case FIONREAD: /* also TIOCINQ */
	case TIOCOUTQ:
	case TIOCGPGRP:
	case TIOCSPGRP:
	case TIOCGSID:
	case TIOCGPTN:
	case TIOCSPTLCK:
	case FIONBIO:
	case FIOASYNC:
	case FS_IOC_GETFLAGS: /* says long, means int */
	case FS_IOC_SETFLAGS:
	case TIOCMGET:
	case TIOCMSET:
	case TIOCPKT:
		return 4;
	case TIOCGWINSZ:
	case TIOCSWINSZ:
		return 8;
	case TCGETS:
	case TCSETS:
	case TCSETSW:
	case TCSETSF:
		return 36;
	}
	if (_IOC_TYPE(request) == 0 || !(_IOC_DIR(request) & _IOC_READ) || n > 256)
		return 0;
	return n;
}

static int ioctl_number(unsigned long request)
{
	return request == FICLONE || request == TIOCSCTTY || request == TCSBRK || request == TCXONC || request == TCFLSH || request == TCSBRKP;
}

EXPORT LEAP int ioctl(int fd, unsigned long request, ...)
{
	u8 room[INPUT_ROOM];
	struct ev e;
	va_list ap;
	unsigned long arg;
	u32 n;
	int r, ours = shim_fd_ours(fd);
	va_start(ap, request);
	arg = va_arg(ap, unsigned long);
	va_end(ap);
	if (request == FIONBIO)
		shim_fd_hurry(fd, 0); /* until it is known what was asked for */
	if (!shim_begin(&e, CALL_ioctl, CLASS_disk, CALLER()))
		return unlikely(ours) ? no_such() : REAL(ioctl)(fd, request, arg);
	e.inbuf = room;
	r = unlikely(ours) ? no_such() : REAL(ioctl)(fd, request, arg);
	shim_end(&e, WRAP_BLOCK);
	e.ret = shim_ret_errno(r);
	e.obj = shim_obj_fd(e.t, fd);
	e.f1 = request;
	if (ioctl_number(request)) {
		e.f2 = arg;
	} else if (r >= 0 && arg && (n = ioctl_room(request))) {
		if (request == FIONBIO || request == FIOASYNC)
			e.f2 = *(const u32 *)arg;
		else
			shim_input_text(&e, (const void *)arg, n);
	}
	if (request == FIONBIO && r == 0)
		shim_fd_hurry(fd, e.f2 != 0);
	shim_done(&e);
	return r;
}

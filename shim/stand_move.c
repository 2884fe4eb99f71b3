/* Stand-ins for calls by which the kernel moves data from one descriptor to another: as much as then, however much there is, or room for, now.
 * What is moved the trace does not have: it is what the re-execution finds there. What comes from outside must so be given again.
 */
#include "channel.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#define PIPE_MOST (1 << 20) /* what any user may ask for */

/* Whether a re-execution has it; what goes to others goes nowhere. */
static int is_there(int fd)
{
	return shim_channel_file(fd) || shim_channel_inside(fd) || shim_channel_outside(fd);
}

/* Whether to try again, after a moment. */
static int again(long r, int in, int out)
{
	if (r != -EAGAIN)
		return r == -EINTR;
	shim_channel_await(in, POLLIN);
	if (out >= 0)
		shim_channel_await(out, POLLOUT);
	return !shim_re_detached();
}

/* What the kernel would move to somebody who is not there. A file's offset moves as if it had. */
static void lost(int in, off_t *off, u64 n)
{
	char room[4096];
	if (!n)
		return;
	if (!shim_channel_file(in)) {
		while (n && shim_channel_inside(in)) {
			long r;
			shim_channel_await(in, POLLIN);
			r = sys(SYS_read, in, room, n < sizeof room ? n : sizeof room);
			if (r <= 0 && !again(r, in, -1))
				break;
			n -= r > 0 ? (u64)r : 0;
		}
	} else if (off) {
		*off += (off_t)n;
	} else {
		sys(SYS_lseek, in, n, SEEK_CUR);
	}
}

/* Who reads what is moved may have gone by now: that was not so then. */
struct deaf {
	u64 was;
};

static void deafen(struct deaf *d)
{
	u64 pipes = 1ull << (SIGPIPE - 1);
	sys(SYS_rt_sigprocmask, SIG_BLOCK, &pipes, &d->was, 8);
}

static void undeafen(const struct deaf *d, long r)
{
	u64 pipes = 1ull << (SIGPIPE - 1);
	struct timespec now = {0, 0};
	if (r == -EPIPE && !(d->was & pipes))
		sys(SYS_rt_sigtimedwait, &pipes, 0, &now, 8);
	sys(SYS_rt_sigprocmask, SIG_SETMASK, &d->was, 0, 8);
}

static long sendfile_once(int in, off_t *off, int out, off_t *outoff, u64 n)
{
	(void)outoff;
	return sys(SYS_sendfile, out, in, off, n);
}

static long splice_once(int in, off_t *off, int out, off_t *outoff, u64 n)
{
	return sys(SYS_splice, in, off, out, outoff, n, SPLICE_F_NONBLOCK);
}

static ssize_t moves(const struct expect *x, int in, off_t *off, int out, off_t *outoff, long (*once)(int, off_t *, int, off_t *, u64))
{
	struct deaf d;
	i64 at = 0;
	long r = 0;
	if (x->ret == 0 && x->f1 && shim_channel_inside(in))
		shim_channel_await(in, POLLIN); /* its end */
	if (x->ret <= 0)
		return shim_re_ret(x);
	if (!is_there(out)) {
		lost(in, off, (u64)x->ret);
		return x->ret;
	}
	deafen(&d);
	while (at < x->ret) {
		r = once(in, off, out, outoff, (u64)(x->ret - at));
		if (r <= 0 && !again(r, in, out))
			break;
		at += r > 0 ? r : 0;
	}
	undeafen(&d, r);
	if (r == -EPIPE) {
		lost(in, off, (u64)(x->ret - at));
		at = x->ret;
	}
	return at;
}

#define SENDFILE(name)                                                                             \
	static ssize_t re_##name(int out, int in, off_t *off, size_t n)                            \
	{                                                                                          \
		struct expect *x = shim_re_of(CALL_##name);                                        \
		return x ? moves(x, in, off, out, 0, sendfile_once) : TRUE(name)(out, in, off, n); \
	}                                                                                          \
	STANDIN(name, re_##name)
SENDFILE(sendfile)
SENDFILE(sendfile64)

static ssize_t re_splice(int in, off_t *off, int out, off_t *outoff, size_t n, unsigned flags)
{
	struct expect *x = shim_re_of(CALL_splice);
	return x ? moves(x, in, off, out, outoff, splice_once) : TRUE(splice)(in, off, out, outoff, n, flags);
}
STANDIN(splice, re_splice)

static u64 holds(int fd)
{
	u32 n = 0;
	return sys(SYS_ioctl, fd, FIONREAD, &n) == 0 ? n : 0;
}

static int ended(int fd)
{
	struct pollfd p = {fd, POLLIN, 0};
	struct timespec now = {0, 0};
	return sys(SYS_ppoll, &p, 1, &now, 0, 0) == 1 && p.revents & POLLHUP;
}

/* Where there is no room for all of it no second call goes on with the rest: so it goes through a pipe that has. */
static ssize_t tees(const struct expect *x, int in, int out)
{
	struct thr *t = shim_self.thr;
	u32 round = 0;
	long all, r = 0;
	i64 at = 0;
	struct deaf d;
	int p[2];
	shim_channel_await(in, POLLIN);
	while (holds(in) < (u64)x->ret && !ended(in) && !shim_re_detached()) {
		shim_re_waits(t, shim_fd_known(in));
		shim_re_pause(t, &round);
	}
	if (round)
		shim_re_goes_on(t);
	if (x->ret == 0 || !is_there(out))
		return x->ret;
	if (sys(SYS_pipe2, p, O_CLOEXEC) != 0)
		return -1;
	sys(SYS_fcntl, p[1], F_SETPIPE_SZ, PIPE_MOST);
	all = sys(SYS_tee, in, p[1], x->ret, SPLICE_F_NONBLOCK);
	deafen(&d);
	while (at < all) {
		r = sys(SYS_splice, p[0], 0, out, 0, all - at, SPLICE_F_NONBLOCK);
		if (r <= 0 && !again(r, p[0], out))
			break;
		at += r > 0 ? r : 0;
	}
	undeafen(&d, r);
	sys(SYS_close, p[0]);
	sys(SYS_close, p[1]);
	return r == -EPIPE ? all : at;
}

static ssize_t re_tee(int in, int out, size_t n, unsigned flags)
{
	struct expect *x = shim_re_of(CALL_tee);
	if (!x)
		return TRUE(tee)(in, out, n, flags);
	return x->ret < 0 || !x->f1 ? shim_re_ret(x) : tees(x, in, out);
}
STANDIN(tee, re_tee)

static ssize_t re_vmsplice(int fd, const struct iovec *v, size_t n, unsigned flags)
{
	struct expect *x = shim_re_of(CALL_vmsplice);
	if (!x)
		return TRUE(vmsplice)(fd, v, n, flags);
	if (x->ret <= 0)
		return shim_re_ret(x);
	if ((sys(SYS_fcntl, fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
		return shim_channel_inside(fd) ? shim_channel_read(x, fd, v, (int)n, 0) : TRUE(vmsplice)(fd, v, n, flags);
	if (is_there(fd))
		shim_channel_write(x, fd, v, (int)n, 0, 0);
	return x->ret;
}
STANDIN(vmsplice, re_vmsplice)

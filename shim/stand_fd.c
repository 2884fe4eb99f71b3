/* Descriptors have their recorded numbers. Whoever makes one waits until the number is free, and until all that the
 * process made with that number before have come to be; one that the kernel numbered otherwise is moved.
 *
 * A number is taken by F_DUPFD alone, which never takes one that is in use. One that has to wait is parked above all
 * that the program has, so that it stands in nobody's way.
 */
#include "channel.h"
#include <stdarg.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <mqueue.h>

static u32 *made; /* of each number, how many times this process has made it; a forked child has its own */

static u32 *made_of(i64 fd)
{
	u32 *m = __atomic_load_n(&made, __ATOMIC_ACQUIRE), *none = 0;
	if (fd < 0 || fd >= FDS_PER_PAGE * FD_PAGES)
		return 0;
	if (!m) {
		u64 len = FDS_PER_PAGE * FD_PAGES * sizeof *m;
		long p = sys(SYS_mmap, shim_apart(len), len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p < 0 && p > -4096)
			return 0;
		sys(SYS_madvise, p, len, MADV_WIPEONFORK);
		if (!__atomic_compare_exchange_n(&made, &none, (u32 *)p, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			sys(SYS_munmap, p, len);
		m = made;
	}
	return m + fd;
}

/* The place of the next that this thread makes with that number, or closes; ~0: others make none. */
static u32 place_of(struct thr *t, u32 fd)
{
	struct replaythread *th = t->re->th;
	const struct replayfd *f = (const struct replayfd *)((const u8 *)shim_index + shim_index->fdsat) + th->firstfd;
	struct re *re = t->re;
	u32 i;
	while (re->fd_next < th->fds && re->fd_taken & 1) {
		re->fd_taken >>= 1;
		re->fd_next++;
	}
	for (i = 0; i < 64 && re->fd_next + i < th->fds; i++)
		if (!(re->fd_taken >> i & 1) && f[re->fd_next + i].fd == fd) {
			re->fd_taken |= 1ull << i;
			return f[re->fd_next + i].place;
		}
	return ~0u;
}

static int in_use(i64 fd)
{
	return sys(SYS_fcntl, fd, F_GETFD, 0) >= 0;
}

/* A vforked child has descriptors of its own, and our memory. */
static struct thr *keeps_order(void)
{
	struct thr *t = shim_self.thr;
	return t && t->re && !(t->vfork && shim_in_vfork(t)) ? t : 0;
}

static void all_before(i64 fd, u32 closes)
{
	struct thr *t = keeps_order();
	u32 *m, place, round = 0;
	if (!t || !t->re->th->fds || !(m = made_of(fd)) || (place = place_of(t, (u32)fd | closes)) == ~0u)
		return;
	while (__atomic_load_n(m, __ATOMIC_ACQUIRE) < place) {
		shim_re_waits(t, 0);
		shim_re_pause(t, &round);
	}
	if (round)
		shim_re_goes_on(t);
}

/* Until all that came before with that number have come. */
void shim_re_fd_place(i64 want)
{
	all_before(want, 0);
}

/* A forked child may have what another thread of its parent was making, in the kernel or in a call that was not over: here that
 * thread may be before it, or behind it. Whoever closes what is not there has this instead. */
static void stands_for(int fd)
{
	long null = sys(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
	if (null >= 0 && null != fd) {
		sys(SYS_dup3, null, fd, O_CLOEXEC);
		sys(SYS_close, null);
	}
}

/* What is closed may be what another thread made: then when that has come. What was not open is left as it is now. */
const struct expect *shim_re_closes(u32 call, int fd)
{
	struct thr *t = keeps_order();
	const struct expect *x = shim_re_of(call);
	u32 round = 0;
	if (t && x && x->ret == 0 && t->re->th->fds) {
		all_before(fd, PROPHET_ReplayCloses);
		while (!in_use(fd) && !shim_re_detached()) {
			shim_re_waits(t, x->obj);
			shim_re_pause(t, &round);
		}
		if (round)
			shim_re_goes_on(t);
	}
	if (t && x && x->ret == 0 && unlikely(!in_use(fd)) && shim_re_alone(t))
		stands_for(fd);
	return x && x->ret == -EBADF ? x : 0;
}

void shim_re_fd_turn(i64 want)
{
	struct thr *t = keeps_order();
	u32 round = 0;
	struct fdinfo *i;
	if (!t || want < 0 || want > 0x7fffffff)
		return;
	shim_re_fd_place(want);
	while ((i = shim_fdinfo((int)want)) && __atomic_load_n(&i->obj, __ATOMIC_ACQUIRE) && in_use(want)) {
		shim_re_waits(t, i->obj);
		shim_re_pause(t, &round);
	}
	if (round)
		shim_re_goes_on(t);
}

static int high(void)
{
	struct rlimit l = {1024, 1024};
	sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &l);
	if (l.rlim_cur > FDS_PER_PAGE * FD_PAGES)
		l.rlim_cur = FDS_PER_PAGE * FD_PAGES;
	return (int)(l.rlim_cur > 256 ? l.rlim_cur - 128 : l.rlim_cur / 2);
}

static int dup_like(int fd)
{
	return sys(SYS_fcntl, fd, F_GETFD, 0) & FD_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD;
}

/* Out of the way. */
static int park(int fd)
{
	long r = sys(SYS_fcntl, fd, dup_like(fd), high());
	if (r < 0)
		return fd;
	sys(SYS_close, fd);
	return (int)r;
}

static int move(struct thr *t, int got, int want)
{
	int dup = dup_like(got);
	u32 round = 0;
	long r;
	if (shim_fd_ours(want))
		shim_fd_yield(want);
	if (shim_fd_stranger(want)) { /* inherited, and not in the recording */
		shim_fd_known_now(want);
		sys(SYS_close, want);
	}
	for (;;) {
		r = sys(SYS_fcntl, got, dup, want);
		if (r >= 0 && r != want)
			sys(SYS_close, r);
		if (r < 0 || r == want)
			break;
		if (!round && got < high())
			got = park(got);
		shim_re_waits(t, shim_fd_known(want));
		shim_re_pause(t, &round);
	}
	if (round)
		shim_re_goes_on(t);
	if (r < 0)
		return got;
	sys(SYS_close, got);
	return want;
}

int shim_re_fd(int got, i64 want)
{
	struct thr *t = keeps_order();
	u32 *m;
	if (got < 0 || want < 0 || want > 0x7fffffff || !t)
		return got;
	if (unlikely(got != want))
		got = move(t, got, (int)want);
	shim_fd_known_now(got);
	if ((m = made_of(want)))
		__atomic_add_fetch(m, 1, __ATOMIC_ACQ_REL);
	return got;
}

/* A socket of the kind, not joined to anything; one of another kind where the machine has none such. */
int shim_re_fd_any(int family, int type, i64 want, int flags)
{
	long fd;
	shim_re_fd_turn(want);
	fd = sys(SYS_socket, family, type | flags, 0);
	if (fd < 0)
		fd = sys(SYS_socket, AF_UNIX, (type == SOCK_DGRAM || type == SOCK_SEQPACKET ? type : SOCK_STREAM) | flags, 0);
	return shim_re_fd(fd < 0 ? -1 : (int)fd, want);
}

/* Calls that return a descriptor of what is really there. */
#define MAKES(name, params, args)                                                       \
	static int re_##name params                                                     \
	{                                                                               \
		struct expect *x = shim_re_of(CALL_##name);                             \
		if (!x)                                                                 \
			return ((int(*) params)shim_true(CALL_##name))args;             \
		if (shim_re_again(x))                                                   \
			return (int)shim_re_ret(x);                                     \
		shim_re_fd_turn(x->ret);                                                \
		return shim_re_fd(((int(*) params)shim_true(CALL_##name))args, x->ret); \
	}                                                                               \
	STANDIN(name, re_##name)
MAKES(creat, (const char *path, mode_t mode), (path, mode))
MAKES(creat64, (const char *path, mode_t mode), (path, mode))
MAKES(memfd_create, (const char *name, unsigned flags), (name, flags))
MAKES(shm_open, (const char *name, int flags, mode_t mode), (name, flags, mode))
MAKES(posix_openpt, (int flags), (flags))
MAKES(getpt, (void), ())
MAKES(inotify_init, (void), ())
MAKES(inotify_init1, (int flags), (flags))
MAKES(dup, (int fd), (fd))
MAKES(epoll_create, (int size), (size))
MAKES(epoll_create1, (int flags), (flags))
MAKES(eventfd, (unsigned initval, int flags), (initval, flags))
MAKES(timerfd_create, (clockid_t clock, int flags), (clock, flags))

static int re_signalfd(int fd, const sigset_t *mask, int flags)
{
	struct expect *x = shim_re_of(CALL_signalfd);
	int r;
	if (!x)
		return TRUE(signalfd)(fd, mask, flags);
	if (shim_re_again(x))
		return (int)shim_re_ret(x);
	if (fd < 0)
		shim_re_fd_turn(x->ret);
	r = TRUE(signalfd)(fd, mask, flags);
	return fd < 0 ? shim_re_fd(r, x->ret) : r;
}
STANDIN(signalfd, re_signalfd)

/* The number is asked for: nothing is moved, but those made before with it come first. */
#define MAKES_AT(name, params, args)                                        \
	static int re_##name params                                         \
	{                                                                   \
		struct expect *x = shim_re_of(CALL_##name);                 \
		int r;                                                      \
		if (!x)                                                     \
			return ((int(*) params)shim_true(CALL_##name))args; \
		if (shim_re_again(x))                                       \
			return (int)shim_re_ret(x);                         \
		if (fd != to)                                               \
			shim_ready_gone(to);                                \
		shim_re_fd_place(x->ret);                                   \
		r = ((int(*) params)shim_true(CALL_##name))args;            \
		return shim_re_fd(r, r);                                    \
	}                                                                   \
	STANDIN(name, re_##name)
MAKES_AT(dup2, (int fd, int to), (fd, to))
MAKES_AT(__dup2, (int fd, int to), (fd, to))
MAKES_AT(dup3, (int fd, int to, int flags), (fd, to, flags))

#define CLOSES(name)                                               \
	static int re_##name(int fd)                               \
	{                                                          \
		shim_ready_gone(fd);                               \
		shim_fd_known_now(fd);                             \
		return ((int (*)(int))shim_true(CALL_##name))(fd); \
	}                                                          \
	STANDIN(name, re_##name)
CLOSES(close)
CLOSES(__close)

/* Two at once. While one waits the other must not stand in anybody's way. */
static void settle(int *a, int *b, i64 first, i64 second)
{
	if (*a != first)
		*a = park(*a);
	if (*b != second)
		*b = park(*b);
	*a = shim_re_fd(*a, first);
	*b = shim_re_fd(*b, second);
}

#define PAIR(name, params, args, a, b, first, second)              \
	static int re_##name params                                \
	{                                                          \
		struct expect *x = shim_re_of(CALL_##name);        \
		int r;                                             \
		if (!x)                                            \
			return TRUE(name) args;                    \
		if (shim_re_again(x))                              \
			return (int)shim_re_ret(x);                \
		if (x->ret == 0) {                                 \
			shim_re_fd_turn((i64)(first));             \
			shim_re_fd_turn((i64)(second));            \
		}                                                  \
		r = TRUE(name) args;                               \
		if (r == 0 && x->ret == 0) {                       \
			settle(a, b, (i64)(first), (i64)(second)); \
			shim_channel_room(*(a));                   \
			shim_channel_room(*(b));                   \
		}                                                  \
		return r;                                          \
	}                                                          \
	STANDIN(name, re_##name)
PAIR(pipe, (int *fds), (fds), fds, fds + 1, x->f1, x->f2)
PAIR(__pipe, (int *fds), (fds), fds, fds + 1, x->f1, x->f2)
PAIR(pipe2, (int *fds, int flags), (fds, flags), fds, fds + 1, x->f1, x->f2)
PAIR(socketpair, (int domain, int type, int protocol, int *fds), (domain, type, protocol, fds), fds, fds + 1, x->f1, x->f2)
PAIR(openpty, (int *fd, int *other, char *name, const struct termios *to, const struct winsize *w), (fd, other, name, to, w), fd, other, feed_tail(x, 0),
     feed_tail(x, 1))

/* The number that it got may be another thread's, which may have to go on before that asking is over. */
void shim_re_appends(FILE *f)
{
	struct thr *t = shim_self.thr;
	const struct expect *o = t && t->begun && t->re && f->_fileno >= 0 ? shim_fd_opening(t) : 0;
	if (o && (i64)feed_tail(o, 0) != f->_fileno)
		f->_fileno = park(f->_fileno);
}

/* See channel.h. */
#include "channel.h"
#include "serial.h"
#include "token.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>

void shim_re_waits(struct thr *t, u64 object)
{
	struct replaythread *th = t->re->th;
	th->object = object;
	th->turn = 0;
	if (th->state != PROPHET_TurnWaits)
		t->re->was = th->state; /* one that is over stays so */
	__atomic_store_n(&th->state, PROPHET_TurnWaits, __ATOMIC_RELEASE);
}

void shim_re_goes_on(struct thr *t)
{
	__atomic_store_n(&t->re->th->state, t->re->was, __ATOMIC_RELEASE);
}

int shim_re_alone(const struct thr *t)
{
	const struct replaythread *th = shim_index_threads();
	u32 i;
	for (i = 1; i < shim_index->threads; i++)
		if (th[i].uid && i != t->uid && th[i].proc == t->proc)
			return 0;
	return 1;
}

void shim_re_pause(struct thr *t, u32 *round)
{
	struct timespec ts = {0, 10000 << (*round < 7 ? *round : 7)};
	if (__atomic_load_n(&shim_index->diverged, __ATOMIC_ACQUIRE))
		shim_re_stop(t, PROPHET_TurnWaits);
	sys(SYS_nanosleep, &ts, 0);
	shim_park();
	++*round;
}

/* The C library uses descriptors of its own, which are named when the call is over. */
u32 shim_channel_kind(int fd)
{
	struct fdinfo room, *i = shim_fd_look(fd, &room);
	return i ? i->kind : FD_UNKNOWN;
}

static int flag(int fd, u32 which)
{
	struct fdinfo room, *i = shim_fd_look(fd, &room);
	return i && i->flags & which;
}

int shim_channel_inside(int fd)
{
	return flag(fd, FD_INSIDE);
}

int shim_channel_outside(int fd)
{
	return flag(fd, FD_OUTSIDE);
}

int shim_channel_file(int fd)
{
	u32 kind = shim_channel_kind(fd);
	return kind == FD_FILE || kind == FD_DIR || kind == FD_NULL;
}

static int ready(int fd, short events, int ms)
{
	struct pollfd p = {fd, events, 0};
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000L};
	return sys(SYS_ppoll, &p, 1, &ts, 0, 0) != 0 ? p.revents | (short)0x4000 : 0; /* refused: asking again will not help */
}

void shim_channel_await(int fd, short events)
{
	struct thr *t = shim_self.thr;
	if (ready(fd, events, 0))
		return;
	shim_re_waits(t, shim_fd_known(fd));
	while (!ready(fd, events, 50)) {
		if (__atomic_load_n(&shim_index->diverged, __ATOMIC_ACQUIRE))
			shim_re_stop(t, PROPHET_TurnWaits);
		if (shim_re_detached())
			break;
		shim_park();
	}
	shim_re_goes_on(t);
}

/* What was taken from each channel so far, in this process. */
static u32 taken[RE_LOOKED];

static void takes(int fd)
{
	if (fd >= 0 && fd < RE_LOOKED)
		__atomic_add_fetch(&taken[fd], 1, __ATOMIC_RELEASE);
}

#define REST_MS 100

/* Nobody but us will ever do anything: all others wait as well, and have no event while a while passes. */
static int at_rest(const struct thr *t, u64 *events)
{
	const struct replaythread *th = shim_index_threads();
	u64 sum = 0;
	u32 i, runs = 0;
	for (i = 1; i < shim_index->threads; i++) {
		u32 state = __atomic_load_n(&th[i].state, __ATOMIC_ACQUIRE);
		sum += __atomic_load_n(&th[i].event, __ATOMIC_RELAXED);
		if (th[i].uid && i != t->uid && th[i].now && state == PROPHET_TurnRuns)
			runs += !shim_sleeps(th[i].now);
	}
	if (sum == *events)
		return !runs;
	*events = sum;
	return 0;
}

/* In a serial run the turn says it. Else it is ready now; or it was, as another thread has taken something since this one
 * last looked; or it was then and now all the rest stands, as a thread in another process has taken what there was. */
void shim_channel_was_ready(int fd)
{
	struct thr *t = shim_self.thr;
	struct re *re = t->re;
	int known = fd >= 0 && fd < RE_LOOKED, waits = 0, ms;
	u64 events = 0;
	if (re->ex.serial)
		return;
	for (ms = 0; !ready(fd, POLLIN, ms ? ms < 20 ? 1 : 10 : 0); ms += ms < 20 ? 1 : 10) {
		if (known && __atomic_load_n(&taken[fd], __ATOMIC_ACQUIRE) != re->looked[fd])
			break;
		if (__atomic_load_n(&shim_index->diverged, __ATOMIC_ACQUIRE))
			shim_re_stop(t, PROPHET_TurnWaits);
		if (shim_re_detached() || (ms >= REST_MS && at_rest(t, &events)))
			break;
		if (ms >= REST_MS)
			ms = 20;
		if (!waits)
			shim_re_waits(t, shim_fd_known(fd));
		waits = 1;
		shim_park();
	}
	if (known)
		re->looked[fd] = __atomic_load_n(&taken[fd], __ATOMIC_ACQUIRE);
	if (waits)
		shim_re_goes_on(t);
}

/* Whether what is sent keeps its bounds: one message a call, however long. */
static int messages(int fd)
{
	int type = SOCK_STREAM;
	u32 len = sizeof type;
	if (shim_channel_kind(fd) == FD_SOCKET)
		sys(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &len);
	return type != SOCK_STREAM;
}

/* The piece that byte `at` lies in, up to most bytes. */
static struct iovec piece(const struct iovec *v, int n, u64 at, u64 most)
{
	struct iovec p = {0, 0};
	for (; n > 0 && at >= v->iov_len; v++, n--)
		at -= v->iov_len;
	if (n > 0) {
		p.iov_base = (u8 *)v->iov_base + at;
		p.iov_len = v->iov_len - at < most ? v->iov_len - at : most;
	}
	return p;
}

static long take(int fd, struct iovec *p, int flags)
{
	if (shim_channel_kind(fd) == FD_SOCKET)
		return sys(SYS_recvfrom, fd, p->iov_base, p->iov_len, flags & MSG_PEEK, 0, 0);
	return sys(SYS_read, fd, p->iov_base, p->iov_len);
}

/* The harness is off: what comes now is what is read. */
static ssize_t freely(const struct expect *x, int fd, const struct iovec *v, int n, int flags, u64 at, int kept)
{
	struct iovec p = piece(v, n, 0, ~0ull);
	long r;
	if (at) {
		if (kept && x->data)
			shim_scatter(v, (u64)n, x->data, at < x->data_len ? at : x->data_len);
		return (ssize_t)at;
	}
	do
		r = take(fd, &p, flags);
	while (r == -EINTR);
	if (r < 0) {
		errno = (int)-r;
		return -1;
	}
	return r;
}

/* Bytes that the trace has are only waited for and thrown away: where several write, they may have come in another order.
 * In a serial run what there is is for whose turn it is; others may want what comes only after that. So what is written,
 * which needs no turn, must find room (shim_channel_room). */
ssize_t shim_channel_read(const struct expect *x, int fd, const struct iovec *v, int n, int flags)
{
	u64 want = x->ret > 0 ? (u64)x->ret : 0, at = 0;
	int cut = flags & MSG_TRUNC, kept = cut || (x->data && x->data_len >= want && !shim_re_issued(shim_self.thr)), whole = messages(fd);
	u8 room[512];
	if (x->ret < 0)
		return shim_re_ret(x);
	shim_token_await(shim_self.thr, x);
	if ((kept && flags & (MSG_PEEK | MSG_OOB)) || (!want && !whole && !shim_room_of(v, n)))
		shim_channel_await(fd, flags & MSG_OOB ? POLLPRI : POLLIN); /* none of it is taken */
	else
		for (;;) {
			struct iovec p = {room, sizeof room};
			long r;
			if (!kept && want)
				p = piece(v, n, at, want - at);
			else if (want && !whole && want - at < sizeof room)
				p.iov_len = want - at;
			shim_channel_await(fd, POLLIN);
			if (unlikely(shim_re_detached()))
				return freely(x, fd, v, n, flags, at, kept);
			r = take(fd, &p, flags);
			if (r == -EAGAIN || r == -EINTR)
				continue;
			if (r <= 0)
				break;
			at = flags & MSG_PEEK ? (u64)r : at + (u64)r;
			if (whole || (want && at >= want))
				break;
		}
	if (at)
		takes(fd);
	if (kept && x->data)
		shim_scatter(v, (u64)n, x->data, x->data_len);
	return kept || !want ? (ssize_t)x->ret : (ssize_t)at;
}

/* That nobody reads any more was not so when it was written. */
void shim_channel_write(const struct expect *x, int fd, const struct iovec *v, int n, const struct msghdr *msg, int flags)
{
	struct thr *t = shim_self.thr;
	u64 want = x->ret > 0 ? (u64)x->ret : 0, at = 0, pipes = 1ull << (SIGPIPE - 1), was = 0;
	int socket = shim_channel_kind(fd) == FD_SOCKET, whole = messages(fd);
	if (x->ret < 0 || (!want && !whole))
		return;
	if (!socket)
		sys(SYS_rt_sigprocmask, SIG_BLOCK, &pipes, &was, 8);
	shim_re_waits(t, shim_fd_known(fd));
	for (;;) {
		struct iovec p = piece(v, n, at, want - at);
		struct msghdr m;
		long r;
		shim_zero(&m, sizeof m);
		if (msg && !at) {
			m.msg_control = msg->msg_control;
			m.msg_controllen = msg->msg_controllen;
		}
		m.msg_iov = whole ? (struct iovec *)v : &p;
		m.msg_iovlen = whole ? (u64)n : 1;
		r = socket ? sys(SYS_sendmsg, fd, &m, MSG_NOSIGNAL | flags) : sys(SYS_write, fd, p.iov_base, p.iov_len);
		if (r == -EPIPE && !socket && !(was & pipes)) {
			struct timespec now = {0, 0};
			sys(SYS_rt_sigtimedwait, &pipes, 0, &now, 8);
		}
		if (r == -EAGAIN || r == -EINTR) {
			ready(fd, POLLOUT, 50);
			if (__atomic_load_n(&shim_index->diverged, __ATOMIC_ACQUIRE))
				shim_re_stop(t, PROPHET_TurnWaits);
			continue;
		}
		if (r < 0)
			break;
		at += (u64)r;
		if (whole || at >= want)
			break;
	}
	shim_re_goes_on(t);
	if (!socket)
		sys(SYS_rt_sigprocmask, SIG_SETMASK, &was, 0, 8);
}

/* A user may have 64 MiB of pipes in all. */
void shim_channel_room(int fd)
{
	int size = 4 << 20;
	if (!shim_index->token)
		return;
	if (sys(SYS_fcntl, fd, F_SETPIPE_SZ, 256 << 10) == -EBADF && sys(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) != 0)
		sys(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
}

/* What others have added since belongs to a later read. */
u64 shim_channel_count(const struct expect *x, int fd, u64 value)
{
	u64 have = 0, more;
	shim_token_await(shim_self.thr, x);
	while (have < value) {
		shim_channel_await(fd, POLLIN);
		if (sys(SYS_read, fd, &more, 8) != 8)
			break;
		have += more;
	}
	takes(fd);
	if (have > value) {
		more = have - value;
		sys(SYS_write, fd, &more, 8);
	}
	return value;
}

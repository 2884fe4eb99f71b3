/* Stand-ins for waiting for readiness: what was ready comes from the trace, without waiting, but for a channel that both
 * ends of are the run's (channel.h): there it is awaited, as it says that another thread has come that far.
 *
 * What a program gave to epoll_ctl with a descriptor may be an address; then what epoll_wait gives it is the one of now.
 * A table keeps what was given by what the trace says of it. An address that was freed and given again may be there
 * twice, as the thread that gives it may be ahead of the one that closes the old descriptor: the older counts until
 * then. Threads share the table under a lock that is never held while anything else is done.
 */
#include "channel.h"
#include <poll.h>
#include <sys/mman.h>

struct given {
	u64 was, is; /* the data, in the recording and now */
	int epfd, fd; /* epfd -1: free */
	u64 order;
};

static struct given *table;
static u32 cap, used, lock;
static u64 orders;

static void take(void)
{
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		shim_pause();
}

static void let_go(void)
{
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

static u32 place(int epfd, u64 was)
{
	return (u32)((was ^ (u64)(u32)epfd << 32) * 0x9E3779B97F4A7C15ull >> 32) & (cap - 1);
}

/* The oldest entry of that data, or that descriptor's, if one is given; where there is none, the free one to put it in. */
static struct given *find(int epfd, u64 was, int fd)
{
	struct given *oldest = 0;
	u32 i;
	for (i = place(epfd, was); table[i].epfd != -1; i = (i + 1) & (cap - 1))
		if (table[i].epfd == epfd && table[i].was == was && (fd < 0 ? !oldest || table[i].order < oldest->order : table[i].fd == fd))
			oldest = &table[i];
	return oldest ? oldest : &table[i];
}

static int grow(void)
{
	struct given *old = table;
	u32 n = cap, i;
	long p;
	if (cap && used < cap / 2)
		return 1;
	p = sys(SYS_mmap, shim_apart((n ? n * 2 : 1024) * sizeof *table), (n ? n * 2 : 1024) * sizeof *table, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p < 0 && p > -4096)
		return used + 1 < cap;
	table = (struct given *)p;
	cap = n ? n * 2 : 1024;
	for (i = 0; i < cap; i++)
		table[i].epfd = -1;
	for (i = 0; i < n; i++)
		if (old[i].epfd != -1)
			*find(old[i].epfd, old[i].was, old[i].fd) = old[i];
	if (old)
		sys(SYS_munmap, old, n * sizeof *old);
	return 1;
}

/* Those behind it that would not be found any more move up. */
static void drop(u32 i)
{
	u32 j = i;
	used--;
	for (;;) {
		table[i].epfd = -1;
		for (;;) {
			u32 home;
			j = (j + 1) & (cap - 1);
			if (table[j].epfd == -1)
				return;
			home = place(table[j].epfd, table[j].was);
			if (i <= j ? i < home && home <= j : i < home || home <= j)
				continue;
			break;
		}
		table[i] = table[j];
		i = j;
	}
}

/* The last registration of each descriptor, so that it is forgotten when that is closed. */
static struct latest {
	u64 was;
	int epfd, is; /* is: there is one */
} * latest;

static struct latest *latest_of(int fd)
{
	if (fd < 0 || fd >= FDS_PER_PAGE * FD_PAGES)
		return 0;
	if (!latest) {
		long p = sys(SYS_mmap, shim_apart(FDS_PER_PAGE * FD_PAGES * sizeof *latest), FDS_PER_PAGE * FD_PAGES * sizeof *latest, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p < 0 && p > -4096)
			return 0;
		latest = (struct latest *)p;
	}
	return latest + fd;
}

static void forget(int fd, struct latest *l)
{
	struct given *g = find(l->epfd, l->was, fd);
	l->is = 0;
	if (g->epfd != -1)
		drop((u32)(g - table));
}

void shim_ready_gone(int fd)
{
	struct thr *t = shim_self.thr;
	if (fd < 0 || fd >= FDS_PER_PAGE * FD_PAGES || !__atomic_load_n(&latest, __ATOMIC_ACQUIRE) || !latest[fd].is || (t && t->vfork && shim_in_vfork(t)))
		return;
	take();
	if (latest[fd].is)
		forget(fd, &latest[fd]);
	let_go();
}

static void registers(int epfd, int fd, u64 was, const struct epoll_event *ev)
{
	struct latest *l;
	take();
	l = latest_of(fd);
	if (l && l->is && l->epfd == epfd && l->was != was)
		forget(fd, l);
	if (l && grow()) {
		struct given *g = find(epfd, was, fd);
		if (g->epfd == -1) {
			used++;
			g->order = ++orders;
		}
		g->was = was;
		g->is = ev->data.u64;
		g->epfd = epfd;
		g->fd = fd;
		l->was = was;
		l->epfd = epfd;
		l->is = 1;
	}
	let_go();
}

/* fd is -1 where several were given the same: which of them it is does not show. */
static int known(int epfd, u64 was, struct given *out)
{
	int r = 0;
	take();
	if (cap) {
		struct given *g = find(epfd, was, -1);
		u32 i;
		if (g->epfd != -1) {
			*out = *g;
			r = 1;
		}
		for (i = place(epfd, was); table[i].epfd != -1; i = (i + 1) & (cap - 1))
			if (table[i].epfd == epfd && table[i].was == was && &table[i] != g)
				out->fd = -1;
	}
	let_go();
	return r;
}

static int re_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	struct expect *x = shim_re_asked(CALL_epoll_ctl);
	if (!x)
		return TRUE(epoll_ctl)(epfd, op, fd, ev);
	if (x->ret == 0) {
		if (op != EPOLL_CTL_DEL && ev)
			registers(epfd, fd, feed_tail(x, 0), ev);
		else
			shim_ready_gone(fd);
		sys(SYS_epoll_ctl, epfd, op, fd, ev);
	}
	return (int)shim_re_ret(x);
}
STANDIN(epoll_ctl, re_epoll_ctl)

/* A list that had no room in its event is its data. */
static const u8 *list(const struct expect *x, const u8 **end)
{
	const u8 *p = x->input_len ? x->input : x->data;
	*end = p + (x->input_len ? x->input_len : p ? x->data_len : 0);
	return p;
}

#define LOOKS 2000 /* at what another thread is about to register; then it was done in a way that is not seen */

static u64 data_of(int epfd, u64 was, u32 events)
{
	struct thr *t = shim_self.thr;
	struct given g = {0};
	u32 looks, round = 0;
	for (looks = 0; !known(epfd, was, &g); looks++) {
		if (shim_re_alone(t) || looks == LOOKS)
			return was;
		shim_re_waits(t, shim_fd_known(epfd));
		shim_re_pause(t, &round);
	}
	if (round)
		shim_re_goes_on(t);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLRDHUP) && g.fd >= 0 && shim_channel_inside(g.fd))
		shim_channel_was_ready(g.fd);
	return g.is;
}

/* For each event V events, Z difference of the data to the one before. */
static int events(const struct expect *x, int epfd, struct epoll_event *ev)
{
	const u8 *end, *p = list(x, &end);
	u64 was = 0;
	i64 i;
	for (i = 0; i < x->ret && p < end; i++) {
		u32 what = (u32)shim_get_v(&p, end);
		was += (u64)shim_get_z(&p, end);
		ev[i].data.u64 = data_of(epfd, was, what);
		ev[i].events = what;
	}
	return (int)shim_re_ret(x);
}

#define EPOLLS(name, params, args)                                \
	static int re_##name params                               \
	{                                                         \
		struct expect *x = shim_re_asked(CALL_##name);    \
		return x ? events(x, epfd, ev) : TRUE(name) args; \
	}                                                         \
	STANDIN(name, re_##name)
EPOLLS(epoll_wait, (int epfd, struct epoll_event *ev, int max, int timeout), (epfd, ev, max, timeout))
EPOLLS(epoll_pwait, (int epfd, struct epoll_event *ev, int max, int timeout, const sigset_t *mask), (epfd, ev, max, timeout, mask))
EPOLLS(epoll_pwait2, (int epfd, struct epoll_event *ev, int max, const struct timespec *tmo, const sigset_t *mask), (epfd, ev, max, tmo, mask))

/* For each descriptor Z difference to the one before, V events << 1 | whether any came, V events that came. */
static int polled(const struct expect *x, struct pollfd *fds, u64 n)
{
	const u8 *end, *p = list(x, &end);
	i64 fd = -1;
	u64 i;
	n = (u32)n;
	for (i = 0; x->ret >= 0 && i < n; i++) {
		u64 asked, came = 0;
		if (p < end) {
			fd += shim_get_z(&p, end);
			asked = shim_get_v(&p, end);
			if (asked & 1)
				came = shim_get_v(&p, end);
			if (fd != fds[i].fd || (u16)(asked >> 1) != (u16)fds[i].events) {
				shim_re_differs(shim_self.thr, x, PROPHET_DiffersData, x->call, (u64)fd, (u64)(i64)fds[i].fd, "");
				errno = EINTR; /* the harness is off: it asks again */
				return -1;
			}
		}
		fds[i].revents = (short)came;
		if (came & (POLLIN | POLLHUP) && shim_channel_inside(fds[i].fd))
			shim_channel_was_ready(fds[i].fd);
	}
	return (int)shim_re_ret(x);
}

#define POLLS(name, params, args)                               \
	static int re_##name params                             \
	{                                                       \
		struct expect *x = shim_re_asked(CALL_##name);  \
		return x ? polled(x, fds, n) : TRUE(name) args; \
	}                                                       \
	STANDIN(name, re_##name)
POLLS(poll, (struct pollfd * fds, nfds_t n, int timeout), (fds, n, timeout))
POLLS(__poll, (struct pollfd * fds, nfds_t n, int timeout), (fds, n, timeout))
POLLS(__poll_chk, (struct pollfd * fds, nfds_t n, int timeout, size_t space), (fds, n, timeout, space))
POLLS(ppoll, (struct pollfd * fds, nfds_t n, const struct timespec *tmo, const sigset_t *mask), (fds, n, tmo, mask))
POLLS(__ppoll_chk, (struct pollfd * fds, nfds_t n, const struct timespec *tmo, const sigset_t *mask, size_t space), (fds, n, tmo, mask, space))

/* A set of n descriptors as runs: V how many, then V gap, V length. */
static void get_set(const u8 **p, const u8 *end, fd_set *set, u32 n, int await)
{
	u64 *words = (u64 *)set, runs = shim_get_v(p, end), at = 0, k;
	if (set && n)
		shim_zero(words, (n + 63) / 64 * 8);
	while (runs-- && *p < end) {
		u64 len;
		at += shim_get_v(p, end);
		len = shim_get_v(p, end);
		for (k = at; set && k < at + len && k < n; k++) {
			words[k / 64] |= 1ull << (k % 64);
			if (await && shim_channel_inside((int)k))
				shim_channel_was_ready((int)k);
		}
		at += len;
	}
}

static void skip_sets(const u8 **p, const u8 *end)
{
	u32 i;
	for (i = 0; i < 3; i++)
		get_set(p, end, 0, 0, 0);
}

static int selected(const struct expect *x, int n, fd_set *r, fd_set *w, fd_set *e)
{
	const u8 *p = x->input, *end = p + x->input_len;
	u32 bits = n > 0 ? (u32)n : 0;
	if (x->ret >= 0) {
		skip_sets(&p, end);
		get_set(&p, end, r, bits, 1);
		get_set(&p, end, w, bits, 0);
		get_set(&p, end, e, bits, 0);
	}
	return (int)shim_re_ret(x);
}

static void time_left(const struct expect *x, struct timeval *tmo)
{
	if (x->ret >= 0 && tmo) {
		tmo->tv_sec = (time_t)(x->f3 / 1000000000u);
		tmo->tv_usec = (suseconds_t)(x->f3 % 1000000000u / 1000u);
	}
}

#define SELECTS(name, type, params, args, more)                                        \
	static int re_##name(int n, fd_set *r, fd_set *w, fd_set *e, type *tmo params) \
	{                                                                              \
		struct expect *x = shim_re_asked(CALL_##name);                         \
		if (!x)                                                                \
			return TRUE(name) args;                                        \
		more;                                                                  \
		return selected(x, n, r, w, e);                                        \
	}                                                                              \
	STANDIN(name, re_##name)
#define MASK , const sigset_t *mask
SELECTS(select, struct timeval, , (n, r, w, e, tmo), time_left(x, tmo))
SELECTS(__select, struct timeval, , (n, r, w, e, tmo), time_left(x, tmo))
SELECTS(pselect, const struct timespec, MASK, (n, r, w, e, tmo, mask), (void)0)

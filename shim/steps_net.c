/* See steps_net.h. */
#include "replay.h"
#include "wrap_all.h"
#include <linux/un.h>
#include <sys/mman.h>

#define ADDR_MAX 128
#define OPTION_MAX 256 /* of a socket's option */
#define CONTROL_MAX 128 /* of one control message: 32 descriptors */

int shim_may_read(const void *p, u64 n)
{
	static u64 pages[64]; /* of stacks, found readable; any thread stores whole words */
	u64 page = (u64)p >> 12, here = (u64)__builtin_frame_address(0), *known = &pages[page % 64];
	int stack = (u64)p > here && (u64)p - here < 1u << 16 && ((u64)p + n - 1) >> 12 == page;
	if (!n)
		return 1;
	if (stack && (*known == page || page == here >> 12))
		return 1;
	if (!shim_readable(p, n))
		return 0;
	if (stack)
		*known = page;
	return 1;
}

void shim_input_list(struct ev *e, shim_encode encode, const void *what, u64 n, u64 most)
{
	u8 *p = encode(e->inbuf, e->inbuf + INPUT_ROOM, what, n);
	long m;
	if (likely(p != 0)) {
		e->inlen = (u32)(p - e->inbuf);
		return;
	}
	if (unlikely(shim_replays)) /* it is the trace's */
		return;
	m = sys(SYS_mmap, 0, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m < 0 && m > -4096) {
		e->note |= PROPHET_NoteOnlyTime;
		return;
	}
	p = encode((u8 *)m, (u8 *)m + most, what, n);
	if (p) {
		e->data_len = (u64)(p - (u8 *)m);
		e->hash = shim_data_chunk(e->t, (u8 *)m, e->data_len);
		e->data_kind = DATA_BIG;
	} else {
		e->note |= PROPHET_NoteCut;
	}
	sys(SYS_munmap, m, most);
}

static u8 *put_bytes(u8 *p, const void *s, u64 n)
{
	p = put_v(p, n);
	shim_copy(p, s, n);
	return p + n;
}

static u8 *put_text(u8 *p, const char *s, u64 most)
{
	u64 n = s ? shim_len(s) : 0;
	return put_bytes(p, s ? s : "", n < most ? n : most);
}

/* Objects */

static const char *const domains[] = {[AF_UNIX] = "unix", [AF_INET] = "inet", [AF_INET6] = "inet6", [AF_NETLINK] = "netlink", [AF_PACKET] = "packet"};
static const char *const types[] = {[SOCK_STREAM] = "stream", [SOCK_DGRAM] = "dgram", [SOCK_RAW] = "raw", [SOCK_SEQPACKET] = "seqpacket"};

static u64 hurrying(int fd, int flags, u64 obj)
{
	if (flags & SOCK_NONBLOCK)
		shim_fd_hurry(fd, 1);
	return obj;
}

u64 shim_obj_socket(struct thr *t, int fd, int domain, int type)
{
	char b[64];
	struct text s;
	u32 d = (u32)domain, k = (u32)type & 15;
	if (fd < 0)
		return 0;
	shim_text(&s, b, sizeof b);
	shim_put(&s, "socket ");
	if (d < sizeof domains / sizeof *domains && domains[d])
		shim_put(&s, domains[d]);
	else
		shim_putd(&s, domain);
	shim_put(&s, " ");
	if (k < sizeof types / sizeof *types && types[k])
		shim_put(&s, types[k]);
	else
		shim_putd(&s, k);
	return hurrying(fd, type, shim_fd_made(t, fd, FD_SOCKET, b));
}

u64 shim_obj_accepted(struct thr *t, int fd, int flags)
{
	return fd < 0 ? 0 : hurrying(fd, flags, shim_fd_made(t, fd, FD_SOCKET, "accepted"));
}

u64 shim_obj_pair(struct thr *t, const int *fds, int r, u32 kind)
{
	u64 first;
	if (r != 0)
		return 0;
	first = shim_fd_made(t, fds[0], kind, kind == FD_PIPE ? "pipe, read end" : "socketpair");
	shim_fd_made(t, fds[1], kind, kind == FD_PIPE ? "pipe, write end" : "socketpair");
	shim_fd_inside(fds[0]);
	shim_fd_inside(fds[1]);
	return first;
}

/* With a descriptor given it changes that one's mask. */
u64 shim_obj_signalfd(struct thr *t, int r, int fd)
{
	if (r < 0)
		return 0;
	return r == fd ? shim_obj_fd(t, fd) : shim_fd_made(t, r, FD_ANON, "signalfd");
}

/* Addresses */

u8 *shim_put_addr(u8 *p, const void *addr, u64 len)
{
	const u8 *a = addr;
	u16 family = AF_UNSPEC;
	if (len > ADDR_MAX)
		len = ADDR_MAX;
	if (len < 2)
		return put_bytes(put_v(p, 0), "", 0);
	shim_copy(&family, a, 2);
	a += 2;
	len -= 2;
	if (family == AF_INET && len > 6) {
		len = 6; /* port, address */
	} else if (family == AF_INET6 && len > 26) {
		len = 26; /* port, flow, address, scope */
	} else if (family == AF_UNIX && len && a[0]) {
		u64 n = 0;
		while (n < len && a[n])
			n++;
		len = n;
	}
	return put_bytes(put_v(p, family), a, len);
}

/* Whether a call that got an address has read it, though it may have failed. */
static int addr_was_read(const struct ev *e)
{
	return e->ret >= 0 || (e->ret != -EFAULT && e->ret != -EINVAL && e->ret != -EBADF && e->ret != -ENOTSOCK && e->ret != -EINTR && e->ret != -ENOMEM);
}

static void input_is(struct ev *e, const u8 *end)
{
	e->inlen = (u32)(end - e->inbuf);
}

/* Some calls do not look at the address (sendto on a connected stream), so success alone proves nothing. */
void shim_input_addr(struct ev *e, const struct sockaddr *addr, u32 len)
{
	if (addr && len && len <= ADDR_MAX && addr_was_read(e) && shim_may_read(addr, len))
		input_is(e, shim_put_addr(e->inbuf, addr, len));
}

void shim_input_addr_of(struct ev *e, const struct sockaddr *addr, u32 len)
{
	if (addr && len && len <= ADDR_MAX)
		input_is(e, shim_put_addr(e->inbuf, addr, len));
}

/* The kernel tells the length that the address has, and may have written less of it, at a page's end, too. */
static int addr_came(const struct sockaddr *addr, u64 len)
{
	return addr && len >= 2 && len <= ADDR_MAX && shim_may_read(addr, 2);
}

/* As shim_put_addr, of one that came. What was not written is what was there; but a path gets the length that was told. */
static u8 *put_came(u8 *p, const struct sockaddr *addr, u64 len)
{
	u8 a[ADDR_MAX];
	u16 family;
	u64 n = 4096 - ((u64)addr & 4095);
	if (n > len || shim_may_read(addr, len))
		n = len;
	shim_zero(a, sizeof a);
	shim_copy(a, addr, n);
	shim_copy(&family, a, 2);
	if (family == AF_UNIX && len > 3 && a[2]) {
		for (n = 3; n < len && a[n]; n++)
			;
		shim_zero(a + n, len - n);
		return put_bytes(put_v(p, family), a + 2, len - 3); /* without the zero that ends it */
	}
	return shim_put_addr(p, a, len);
}

void shim_input_from(struct ev *e, const struct sockaddr *addr, const socklen_t *len)
{
	if (e->ret >= 0 && addr && len && addr_came(addr, *len))
		input_is(e, put_came(e->inbuf, addr, *len));
}

static u8 *put_name(u8 *p, int fd, int peer, u16 *family)
{
	u8 a[ADDR_MAX];
	u32 len = sizeof a;
	long r = sys(peer ? SYS_getpeername : SYS_getsockname, fd, a, &len);
	if (r != 0 || len < 2)
		len = 0;
	if (len && family)
		shim_copy(family, a, 2);
	return shim_put_addr(p, a, len);
}

void shim_input_name(struct ev *e, int fd, int peer)
{
	if (e->ret == 0)
		input_is(e, put_name(e->inbuf, fd, peer, 0));
}

static void ends(struct ev *e, int fd, const struct sockaddr *addr, u32 len)
{
	u16 family = 0;
	u8 *p = put_name(e->inbuf, fd, 0, &family);
	u64 ino = 0, pid = 0;
	p = addr ? shim_put_addr(p, addr, len) : put_name(p, fd, 1, 0);
	if (family == AF_UNIX) {
		struct stat st;
		struct ucred peer;
		u32 n = sizeof peer;
		if (sys(SYS_fstat, fd, &st) == 0)
			ino = st.st_ino;
		if (sys(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0)
			pid = (u64)peer.pid;
	}
	p = put_v(p, ino);
	input_is(e, put_v(p, pid));
}

void shim_input_accepted(struct ev *e, int fd)
{
	if (fd >= 0)
		ends(e, fd, 0, 0);
}

/* A connect under way has its local end already; its peer is who was asked for. */
void shim_input_connected(struct ev *e, int fd, const struct sockaddr *addr, u32 len)
{
	int given = addr && len >= 2 && len <= ADDR_MAX && addr_was_read(e);
	if (e->ret == 0 || e->ret == -EISCONN)
		ends(e, fd, 0, 0);
	else if (given && e->ret == -EINPROGRESS)
		ends(e, fd, addr, len);
	else if (given)
		input_is(e, put_v(put_v(shim_put_addr(put_v(put_v(e->inbuf, 0), 0), addr, len), 0), 0));
}

void shim_input_opt(struct ev *e, const void *val, u32 len)
{
	u32 n = len < OPTION_MAX ? len : OPTION_MAX;
	if (e->ret < 0 || !val || len == 4 || !n || !shim_may_read(val, n))
		return;
	input_is(e, put_bytes(e->inbuf, val, n));
	if (n < len)
		e->note |= PROPHET_NoteCut;
}

/* Messages */

i64 shim_got_odd(int fd, u64 n, int flags, i64 r)
{
	if (flags & MSG_TRUNC) {
		int domain = 0, type = 0;
		u32 len = sizeof type;
		sys(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &len);
		len = sizeof domain;
		sys(SYS_getsockopt, fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
		if (type == SOCK_STREAM && domain != AF_UNIX)
			return 0;
	}
	return r < (i64)n ? r : (i64)n;
}

static u64 iov_bytes(const struct iovec *v, u64 n)
{
	u64 sum = 0, i;
	for (i = 0; i < n; i++)
		sum += v[i].iov_len;
	return sum;
}

/* Descriptors that came along are the program's from now on. */
static void rights(struct ev *e, const struct cmsghdr *c, u64 bytes)
{
	const int *fds = (const int *)(c + 1);
	u64 i;
	for (i = 0; i < bytes / sizeof *fds; i++)
		shim_fd_new(e->t, fds[i], 0);
}

static const struct cmsghdr *next_control(const struct msghdr *msg, u64 *at)
{
	const struct cmsghdr *c = (const void *)((const u8 *)msg->msg_control + *at);
	if (!msg->msg_control || *at + sizeof *c > msg->msg_controllen || c->cmsg_len < sizeof *c || c->cmsg_len > msg->msg_controllen - *at)
		return 0;
	*at += (c->cmsg_len + 7) & ~7ull;
	return c;
}

void shim_do_recvmsg(struct ev *e, int fd, const struct msghdr *msg, int flags)
{
	const struct cmsghdr *c;
	u64 at = 0;
	if (e->ret < 0)
		return;
	while ((c = next_control(msg, &at)))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			rights(e, c, c->cmsg_len - sizeof *c);
	shim_data_iov(e, fd, msg->msg_iov, (i64)msg->msg_iovlen, shim_got(fd, iov_bytes(msg->msg_iov, msg->msg_iovlen), flags, e->ret));
}

static int msg_addr(const struct msghdr *msg, int in)
{
	return addr_came(msg->msg_name, msg->msg_namelen) && (in || shim_may_read(msg->msg_name, msg->msg_namelen));
}

static u8 *put_msg_addr(u8 *p, const struct msghdr *msg, int in)
{
	if (!msg_addr(msg, in))
		return shim_put_addr(p, 0, 0);
	return in ? put_came(p, msg->msg_name, msg->msg_namelen) : shim_put_addr(p, msg->msg_name, msg->msg_namelen);
}

/* V family, S address, V flags, then for each control message V level, V type, V length, S its first bytes. */
void shim_input_msg(struct ev *e, const struct msghdr *msg, int in)
{
	const struct cmsghdr *c;
	u8 *p = e->inbuf, *limit = e->inbuf + INPUT_ROOM - INPUT_ITEM;
	u64 at = 0, n;
	if (e->ret < 0)
		return;
	if (!msg_addr(msg, in) && !(in && msg->msg_flags) && !(msg->msg_control && msg->msg_controllen))
		return;
	p = put_msg_addr(p, msg, in);
	p = put_v(p, in ? (u32)msg->msg_flags : 0);
	while ((c = next_control(msg, &at))) {
		n = c->cmsg_len - sizeof *c;
		if (n > CONTROL_MAX)
			e->note |= PROPHET_NoteCut;
		if (p + (n < CONTROL_MAX ? n : CONTROL_MAX) > limit) {
			e->note |= PROPHET_NoteCut;
			break;
		}
		p = put_v(p, (u32)c->cmsg_level);
		p = put_v(p, (u32)c->cmsg_type);
		p = put_v(p, n);
		p = put_bytes(p, c + 1, n < CONTROL_MAX ? n : CONTROL_MAX);
	}
	input_is(e, p);
}

/* The data of all messages together; it is rare enough to go out at once when it is kept. */
void shim_do_mmsg(struct ev *e, int fd, const struct mmsghdr *vec, int in)
{
	struct fdinfo *i = shim_fdinfo(fd);
	u32 keep = i ? in ? i->in : i->out : 0;
	u64 total = 0, k, j, left, have;
	i64 n = e->ret;
	if (n <= 0)
		return;
	for (k = 0; k < (u64)n; k++) {
		const struct msghdr *m = &vec[k].msg_hdr;
		const struct cmsghdr *c;
		u64 at = 0;
		while (in && (c = next_control(m, &at)))
			if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
				rights(e, c, c->cmsg_len - sizeof *c);
		have = iov_bytes(m->msg_iov, m->msg_iovlen);
		total += vec[k].msg_len < have ? vec[k].msg_len : have;
	}
	if (!keep || !shim_ctl.inputs || !total)
		return;
	if (keep == PROPHET_InputsHash || (unlikely(shim_replays) && e->x->hashed)) {
		struct hash_state h;
		shim_hash_begin(&h);
		for (k = 0; k < (u64)n; k++) {
			const struct msghdr *m = &vec[k].msg_hdr;
			for (j = 0, left = vec[k].msg_len; left && j < m->msg_iovlen; j++) {
				u64 b = m->msg_iov[j].iov_len < left ? m->msg_iov[j].iov_len : left;
				shim_hash_more(&h, m->msg_iov[j].iov_base, b);
				left -= b;
			}
		}
		e->hash = shim_hash_end(&h);
		e->data_kind = DATA_HASH;
		if (unlikely(shim_replays))
			shim_re_hashed(e);
	} else if (unlikely(shim_replays)) {
		return; /* it is the trace's */
	} else {
		long p;
		u64 at = 0;
		if (total > PROPHET_ChunkMax) {
			e->note |= PROPHET_NoteCut;
			return;
		}
		p = sys(SYS_mmap, 0, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p < 0 && p > -4096) {
			e->note |= PROPHET_NoteOnlyTime;
			return;
		}
		for (k = 0; k < (u64)n; k++) {
			const struct msghdr *m = &vec[k].msg_hdr;
			for (j = 0, left = vec[k].msg_len; left && j < m->msg_iovlen && at < total; j++) {
				u64 b = m->msg_iov[j].iov_len < left ? m->msg_iov[j].iov_len : left;
				if (b > total - at)
					b = total - at;
				shim_copy((u8 *)p + at, m->msg_iov[j].iov_base, b);
				at += b;
				left -= b;
			}
		}
		e->data_len = total;
		e->hash = shim_data_chunk(e->t, (u8 *)p, total);
		e->data_kind = DATA_BIG;
		sys(SYS_munmap, p, total);
	}
}

/* For each message V length, V flags, V family, S address. */
void shim_input_msgs(struct ev *e, const struct mmsghdr *vec, int in)
{
	u8 *p = e->inbuf, *limit = e->inbuf + INPUT_ROOM - ADDR_MAX - INPUT_ITEM;
	i64 k;
	for (k = 0; k < e->ret; k++) {
		const struct msghdr *m = &vec[k].msg_hdr;
		if (p > limit) {
			e->note |= PROPHET_NoteCut;
			break;
		}
		p = put_v(p, vec[k].msg_len);
		p = put_v(p, (u32)m->msg_flags);
		p = put_msg_addr(p, m, in);
	}
	if (e->ret > 0)
		input_is(e, p);
}

/* Readiness */

/* For each descriptor Z difference to the one before, V events << 1 | whether any came, V events that came. */
static u8 *put_polled(u8 *p, u8 *end, const void *what, u64 n)
{
	const struct pollfd *f = what;
	i64 before = -1;
	u64 i;
	for (i = 0; i < n; i++) {
		if (end - p < INPUT_ITEM)
			return 0;
		p = put_z(p, (i64)f[i].fd - before);
		p = put_v(p, (u64)(u16)f[i].events << 1 | (f[i].revents != 0));
		if (f[i].revents)
			p = put_v(p, (u16)f[i].revents);
		before = f[i].fd;
	}
	return p;
}

void shim_input_polled(struct ev *e, const struct pollfd *fds, u64 n)
{
	n = (u32)n; /* all that the kernel looks at */
	if (e->ret >= 0 && n)
		shim_input_list(e, put_polled, fds, n, n < 65536 ? n * 12 + 4096 : 65536 * 12);
}

/* For each event V events, Z difference of the data to the one before. */
static u8 *put_events(u8 *p, u8 *end, const void *what, u64 n)
{
	const struct epoll_event *v = what;
	u64 before = 0, i;
	for (i = 0; i < n; i++) {
		if (end - p < INPUT_ITEM)
			return 0;
		p = put_v(p, v[i].events);
		p = put_z(p, (i64)(v[i].data.u64 - before));
		before = v[i].data.u64;
	}
	return p;
}

void shim_input_events(struct ev *e, const struct epoll_event *ev, i64 n)
{
	if (n > 0)
		shim_input_list(e, put_events, ev, (u64)n, n < 65536 ? (u64)n * 15 + 4096 : 65536 * 15);
}

void shim_input_itimerspec(struct ev *e, const struct itimerspec *it)
{
	if (it && e->ret == 0)
		input_is(e, put_v(put_v(e->inbuf, shim_ns(&it->it_value)), shim_ns(&it->it_interval)));
}

/* Names */

/* For each address V type of socket, V protocol, V family, S address. */
static u8 *put_addrs(u8 *p, u8 *end, const void *what, u64 n)
{
	const struct addrinfo *a;
	for (a = what; a && n; a = a->ai_next, n--) {
		if (end - p < INPUT_ITEM + ADDR_MAX)
			return 0;
		p = put_v(p, (u32)a->ai_socktype);
		p = put_v(p, (u32)a->ai_protocol);
		p = shim_put_addr(p, a->ai_addr, a->ai_addrlen);
	}
	return p;
}

void shim_input_addrs(struct ev *e, struct addrinfo **res, int r)
{
	if (r == 0)
		shim_input_list(e, put_addrs, *res, 1024, 1024 * 64);
}

/* S name, V family, then S each address. */
static u8 *put_host(u8 *p, u8 *end, const void *what, u64 n)
{
	const struct hostent *h = what;
	char **a = h->h_addr_list;
	p = put_text(p, h->h_name, 200);
	p = put_v(p, (u32)h->h_addrtype);
	for (; a && *a && n; a++, n--) {
		if (end - p < INPUT_ITEM)
			return 0;
		p = put_bytes(p, *a, h->h_length < 16 ? (u64)h->h_length : 16);
	}
	return p;
}

void shim_input_host(struct ev *e, const struct hostent *h)
{
	if (h)
		shim_input_list(e, put_host, h, 1024, 1024 * 24);
}

/* For each interface V index, S name. */
static u8 *put_interfaces(u8 *p, u8 *end, const void *what, u64 n)
{
	const struct if_nameindex *i = what;
	for (; i->if_index && i->if_name && n; i++, n--) {
		if (end - p < INPUT_ITEM)
			return 0;
		p = put_text(put_v(p, i->if_index), i->if_name, IF_NAMESIZE);
	}
	return p;
}

void shim_input_interfaces(struct ev *e, const struct if_nameindex *list)
{
	if (list)
		shim_input_list(e, put_interfaces, list, 4096, 4096 * 32);
}

/* How many bits of a mask are set from the start; its place in the flags' upper half is 1 + that, 0 for no mask. */
static u64 mask_bits(const struct sockaddr *mask)
{
	const u8 *p = (const u8 *)mask;
	u64 n = 0, len;
	if (!mask)
		return 0;
	len = mask->sa_family == AF_INET ? 4 : mask->sa_family == AF_INET6 ? 16 : 0;
	p += len == 4 ? 4 : 8;
	while (n < len * 8 && p[n / 8] >> (7 - n % 8) & 1)
		n++;
	return n + 1;
}

/* For each address of an interface S name, V flags and mask, V family, S address. */
static u8 *put_ifaddrs(u8 *p, u8 *end, const void *what, u64 n)
{
	const struct ifaddrs *i;
	for (i = what; i && n; i = i->ifa_next, n--) {
		u64 len = !i->ifa_addr				? 0
			  : i->ifa_addr->sa_family == AF_INET	? 16
			  : i->ifa_addr->sa_family == AF_INET6	? 28
			  : i->ifa_addr->sa_family == AF_PACKET ? 20
								: 2;
		if (end - p < 2 * INPUT_ITEM)
			return 0;
		p = put_text(p, i->ifa_name, IF_NAMESIZE);
		p = put_v(p, i->ifa_flags | mask_bits(i->ifa_netmask) << 32);
		p = shim_put_addr(p, i->ifa_addr, len);
	}
	return p;
}

void shim_input_ifaddrs(struct ev *e, struct ifaddrs **list, int r)
{
	if (r == 0)
		shim_input_list(e, put_ifaddrs, *list, 4096, 4096 * 64);
}

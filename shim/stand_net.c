/* Stand-ins for sockets. Their other ends are not there, unless both were made by the run (socketpair); so nothing is
 * sent, bound or joined. Only a name in the file system is really made: the program may look for it. */
#include "channel.h"
#include <sys/un.h>

/* An address as shim_put_addr wrote it; its length as the kernel would tell it. */
u32 shim_re_addr(const u8 **p, const u8 *end, u8 to[130])
{
	u32 family = (u32)shim_get_v(p, end);
	u64 n = shim_get_v(p, end);
	u16 f = (u16)family;
	shim_zero(to, 130);
	if (n > (u64)(end - *p) || n > 126)
		return 0;
	shim_copy(to, &f, 2);
	shim_copy(to + 2, *p, n);
	*p += n;
	if (!family && !n)
		return 0;
	if (family == AF_INET && n == 6)
		return 16;
	if (family == AF_UNIX && n && to[2])
		return (u32)n + 3;
	return (u32)n + 2;
}

static void skip_addr(const u8 **p, const u8 *end)
{
	u8 to[130];
	shim_re_addr(p, end, to);
}

static void give_addr(const u8 *from, u32 len, void *addr, socklen_t *room)
{
	if (!addr || !room)
		return;
	shim_copy(addr, from, *room < len ? *room : len);
	*room = len;
}

static int option(int fd, int opt, int otherwise)
{
	u32 n = sizeof otherwise;
	sys(SYS_getsockopt, fd, SOL_SOCKET, opt, &otherwise, &n);
	return otherwise;
}

static int re_socket(int domain, int type, int protocol)
{
	struct expect *x = shim_re_asked(CALL_socket);
	int r;
	if (!x)
		return TRUE(socket)(domain, type, protocol);
	if (x->ret < 0)
		return (int)shim_re_ret(x);
	shim_re_fd_turn(x->ret);
	r = TRUE(socket)(domain, type, protocol);
	if (r >= 0)
		return shim_re_fd(r, x->ret);
	return shim_re_fd_any(AF_UNIX, type & 15, x->ret, type & (SOCK_NONBLOCK | SOCK_CLOEXEC));
}
STANDIN(socket, re_socket)

/* The rest of the answer is the trace's. */
static int re_bind(int fd, __CONST_SOCKADDR_ARG addr, socklen_t len)
{
	struct expect *x = shim_re_asked(CALL_bind);
	const struct sockaddr_un *u = (const struct sockaddr_un *)addr.__sockaddr__;
	if (!x)
		return TRUE(bind)(fd, addr, len);
	if (x->ret == 0 && len > 2 && u->sun_family == AF_UNIX && u->sun_path[0])
		sys(SYS_bind, fd, u, len);
	return (int)shim_re_ret(x);
}
STANDIN(bind, re_bind)

static int accepted(const struct expect *x, int fd, void *addr, socklen_t *len, int flags)
{
	const u8 *p = x->input, *end = p + x->input_len;
	u8 peer[130];
	int r;
	if (x->ret < 0)
		return (int)shim_re_ret(x);
	r = shim_re_fd_any(option(fd, SO_DOMAIN, AF_INET), option(fd, SO_TYPE, SOCK_STREAM), x->ret, flags & (SOCK_NONBLOCK | SOCK_CLOEXEC));
	skip_addr(&p, end);
	give_addr(peer, shim_re_addr(&p, end, peer), addr, len);
	return r;
}

static int re_accept(int fd, __SOCKADDR_ARG addr, socklen_t *len)
{
	struct expect *x = shim_re_asked(CALL_accept);
	return x ? accepted(x, fd, addr.__sockaddr__, len, 0) : TRUE(accept)(fd, addr, len);
}
STANDIN(accept, re_accept)

static int re_accept4(int fd, __SOCKADDR_ARG addr, socklen_t *len, int flags)
{
	struct expect *x = shim_re_asked(CALL_accept4);
	return x ? accepted(x, fd, addr.__sockaddr__, len, flags) : TRUE(accept4)(fd, addr, len, flags);
}
STANDIN(accept4, re_accept4)

static int name(const struct expect *x, void *addr, socklen_t *len)
{
	const u8 *p = x->input;
	u8 a[130];
	if (x->ret == 0)
		give_addr(a, shim_re_addr(&p, p + x->input_len, a), addr, len);
	return (int)shim_re_ret(x);
}

#define NAME(call)                                                                      \
	static int re_##call(int fd, __SOCKADDR_ARG addr, socklen_t *restrict len)      \
	{                                                                               \
		struct expect *x = shim_re_asked(CALL_##call);                          \
		return x ? name(x, addr.__sockaddr__, len) : TRUE(call)(fd, addr, len); \
	}                                                                               \
	STANDIN(call, re_##call)
NAME(getsockname)
NAME(getpeername)

/* Four bytes are a number of the event; others are kept, up to a bound. */
static int re_getsockopt(int fd, int level, int opt, void *restrict val, socklen_t *restrict len)
{
	struct expect *x = shim_re_asked(CALL_getsockopt);
	const u8 *p, *end;
	u64 n;
	if (!x)
		return TRUE(getsockopt)(fd, level, opt, val, len);
	if (x->ret != 0 || !val || !len)
		return (int)shim_re_ret(x);
	p = x->input;
	end = p + x->input_len;
	if (x->input_len) {
		if (x->note & PROPHET_NoteCut)
			sys(SYS_getsockopt, fd, level, opt, val, len);
		n = shim_get_v(&p, end);
		if (n > (u64)(end - p) || n > *len)
			n = 0;
		shim_copy(val, p, n);
		if (!(x->note & PROPHET_NoteCut))
			*len = (u32)n;
	} else if (*len >= 4) {
		u32 v = (u32)x->f3;
		shim_copy(val, &v, 4);
		*len = 4;
	}
	return 0;
}
STANDIN(getsockopt, re_getsockopt)

/* Who reads at the other end learns of it. */
static int re_shutdown(int fd, int how)
{
	struct expect *x = shim_re_asked(CALL_shutdown);
	if (!x)
		return TRUE(shutdown)(fd, how);
	if (x->ret == 0 && shim_channel_inside(fd))
		sys(SYS_shutdown, fd, how);
	return (int)shim_re_ret(x);
}
STANDIN(shutdown, re_shutdown)

/* Whether it went, or will be said to have gone, without its socket. */
static void sent(const struct expect *x, int fd, const struct iovec *v, int n, const struct msghdr *msg, int flags)
{
	if (x->ret >= 0 && (shim_channel_inside(fd) || (shim_channel_outside(fd) && x->ret > 0)))
		shim_channel_write(x, fd, v, n, msg, flags & MSG_OOB);
}

#define SENDS(name, params, args)                              \
	static ssize_t re_##name params                        \
	{                                                      \
		struct expect *x = shim_re_asked(CALL_##name); \
		struct iovec v = {(void *)buf, n};             \
		if (!x)                                        \
			return TRUE(name) args;                \
		sent(x, fd, &v, 1, 0, flags);                  \
		return shim_re_ret(x);                         \
	}                                                      \
	STANDIN(name, re_##name)
SENDS(send, (int fd, const void *buf, size_t n, int flags), (fd, buf, n, flags))
SENDS(__send, (int fd, const void *buf, size_t n, int flags), (fd, buf, n, flags))
SENDS(sendto, (int fd, const void *buf, size_t n, int flags, __CONST_SOCKADDR_ARG addr, socklen_t len), (fd, buf, n, flags, addr, len))

static ssize_t re_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct expect *x = shim_re_asked(CALL_sendmsg);
	if (!x)
		return TRUE(sendmsg)(fd, msg, flags);
	if (x->ret >= 0)
		sent(x, fd, msg->msg_iov, (int)msg->msg_iovlen, msg, flags);
	return shim_re_ret(x);
}
STANDIN(sendmsg, re_sendmsg)

static u64 bytes_of(const struct iovec *v, u64 n)
{
	u64 sum = 0;
	while (n--)
		sum += v++->iov_len;
	return sum;
}

/* Lengths come from the trace: V length, V flags, V family, S address each. */
static int re_sendmmsg(int fd, struct mmsghdr *vec, unsigned n, int flags)
{
	struct expect *x = shim_re_asked(CALL_sendmmsg);
	const u8 *p, *end;
	i64 k;
	if (!x)
		return TRUE(sendmmsg)(fd, vec, n, flags);
	p = x->input;
	end = p + x->input_len;
	for (k = 0; k < x->ret && k < n; k++) {
		struct expect one = *x;
		struct msghdr *m = &vec[k].msg_hdr;
		vec[k].msg_len = p < end ? (u32)shim_get_v(&p, end) : (u32)bytes_of(m->msg_iov, m->msg_iovlen);
		shim_get_v(&p, end);
		skip_addr(&p, end);
		one.ret = (i64)vec[k].msg_len;
		sent(&one, fd, m->msg_iov, (int)m->msg_iovlen, m, flags);
	}
	return (int)shim_re_ret(x);
}
STANDIN(sendmmsg, re_sendmmsg)

/* What arrived. With MSG_TRUNC the result says more than came. */
static ssize_t received(const struct expect *x, int fd, struct iovec *v, int n, int flags)
{
	if (x->ret < 0)
		return shim_re_ret(x);
	if (shim_channel_inside(fd))
		return shim_channel_read(x, fd, v, n, flags);
	if (x->data)
		shim_scatter(v, (u64)n, x->data, x->data_len);
	return x->ret;
}

/* One that had no room is not kept: its length is that of its kind. */
static void from(const struct expect *x, int fd, void *addr, socklen_t *len)
{
	const u8 *p = x->input;
	u8 a[130];
	int family;
	if (x->ret < 0 || !addr || !len)
		return;
	if (x->input_len)
		give_addr(a, shim_re_addr(&p, p + x->input_len, a), addr, len);
	else if (option(fd, SO_TYPE, SOCK_STREAM) == SOCK_STREAM)
		*len = 0;
	else
		*len = (family = option(fd, SO_DOMAIN, AF_UNIX)) == AF_INET ? 16 : family == AF_INET6 ? 28 : 0;
}

#define RECEIVES(name, params, args, more)                                      \
	static ssize_t re_##name params                                         \
	{                                                                       \
		struct expect *x = shim_re_asked(CALL_##name);                  \
		struct iovec v = {buf, n};                                      \
		if (!x)                                                         \
			return ((ssize_t(*) params)shim_true(CALL_##name))args; \
		more;                                                           \
		return received(x, fd, &v, 1, flags);                           \
	}                                                                       \
	STANDIN(name, re_##name)
RECEIVES(recv, (int fd, void *buf, size_t n, int flags), (fd, buf, n, flags), (void)0)
RECEIVES(__recv_chk, (int fd, void *buf, size_t n, size_t space, int flags), (fd, buf, n, space, flags), (void)0)
RECEIVES(recvfrom, (int fd, void *buf, size_t n, int flags, __SOCKADDR_ARG addr, socklen_t *len), (fd, buf, n, flags, addr, len),
	 from(x, fd, addr.__sockaddr__, len))
RECEIVES(__recvfrom_chk, (int fd, void *buf, size_t n, size_t space, int flags, __SOCKADDR_ARG addr, socklen_t *len), (fd, buf, n, space, flags, addr, len),
	 from(x, fd, addr.__sockaddr__, len))

#define RIGHTS_MAX 253 /* the kernel's bound */

/* Takes a message off a socketpair with the descriptors that came along: they get their recorded numbers. */
static int take_rights(int fd, const struct msghdr *msg, int *fds, int most)
{
	u8 control[CMSG_SPACE(RIGHTS_MAX * sizeof(int))] __attribute__((aligned(8)));
	struct msghdr m;
	struct cmsghdr *c;
	int n = 0;
	long r;
	shim_zero(&m, sizeof m);
	m.msg_iov = msg->msg_iov;
	m.msg_iovlen = msg->msg_iovlen;
	m.msg_control = control;
	m.msg_controllen = sizeof control;
	do {
		shim_channel_await(fd, POLLIN);
		r = sys(SYS_recvmsg, fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (r == -EAGAIN || r == -EINTR);
	if (r < 0)
		return 0;
	for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
			int k, have = (int)((c->cmsg_len - sizeof *c) / sizeof(int));
			for (k = 0; k < have; k++)
				if (n < most)
					shim_copy(&fds[n++], (u8 *)(c + 1) + (u64)k * sizeof(int), sizeof(int));
		}
	return n;
}

/* Stand for descriptors that others sent. */
static void place_rights(u8 *list, u64 bytes, int *fds, int have, int cloexec)
{
	u64 i;
	for (i = 0; i < bytes / sizeof(int); i++) {
		int want, got;
		shim_copy(&want, list + i * sizeof(int), sizeof want);
		if (have > (int)i) {
			got = fds[i];
			shim_re_fd_turn(want);
			if (!cloexec)
				sys(SYS_fcntl, got, F_SETFD, 0);
			shim_re_fd(got, want);
		} else {
			shim_re_fd_any(AF_UNIX, SOCK_STREAM, want, cloexec ? SOCK_CLOEXEC : 0);
		}
	}
}

/* V family, S address, V flags, then V level, V type, V length, S each control message. */
static ssize_t re_recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct expect *x = shim_re_asked(CALL_recvmsg);
	const u8 *p, *end;
	u8 addr[130], *to;
	u64 room, used = 0;
	u32 len;
	int fds[RIGHTS_MAX], have = 0, inside;
	ssize_t r;
	if (!x)
		return TRUE(recvmsg)(fd, msg, flags);
	if (x->ret < 0)
		return shim_re_ret(x);
	inside = shim_channel_inside(fd);
	p = x->input;
	end = p + x->input_len;
	to = msg->msg_control;
	room = to ? msg->msg_controllen : 0;
	if (inside && room && x->input_len && !(flags & MSG_PEEK) && x->data_len >= (u64)x->ret) {
		have = take_rights(fd, msg, fds, RIGHTS_MAX);
		inside = 0; /* the data is the trace's */
	}
	if (inside)
		r = shim_channel_read(x, fd, msg->msg_iov, (int)msg->msg_iovlen, flags);
	else {
		if (x->data)
			shim_scatter(msg->msg_iov, msg->msg_iovlen, x->data, x->data_len);
		r = x->ret;
	}
	len = shim_re_addr(&p, end, addr);
	if (msg->msg_name) {
		shim_copy(msg->msg_name, addr, msg->msg_namelen < len ? msg->msg_namelen : len);
		msg->msg_namelen = len;
	}
	msg->msg_flags = (int)shim_get_v(&p, end);
	while (p < end) {
		struct cmsghdr c;
		u64 n, kept;
		shim_zero(&c, sizeof c);
		c.cmsg_level = (int)shim_get_v(&p, end);
		c.cmsg_type = (int)shim_get_v(&p, end);
		n = shim_get_v(&p, end);
		kept = shim_get_v(&p, end);
		if (kept > (u64)(end - p) || n > 65536 || used + sizeof c + n > room)
			break;
		c.cmsg_len = sizeof c + n;
		shim_copy(to + used, &c, sizeof c);
		shim_zero(to + used + sizeof c, n);
		shim_copy(to + used + sizeof c, p, kept < n ? kept : n);
		if (c.cmsg_level == SOL_SOCKET && c.cmsg_type == SCM_RIGHTS && !(flags & MSG_PEEK))
			place_rights(to + used + sizeof c, kept < n ? kept : n, fds, have, flags & MSG_CMSG_CLOEXEC);
		used += (c.cmsg_len + 7) & ~7ull;
		p += kept;
	}
	msg->msg_controllen = used < room ? used : room;
	return r;
}
STANDIN(recvmsg, re_recvmsg)

static int re_recvmmsg(int fd, struct mmsghdr *vec, unsigned n, int flags, struct timespec *tmo)
{
	struct expect *x = shim_re_asked(CALL_recvmmsg);
	const u8 *p, *end, *data;
	u64 left;
	i64 k;
	if (!x)
		return TRUE(recvmmsg)(fd, vec, n, flags, tmo);
	p = x->input;
	end = p + x->input_len;
	data = x->data;
	left = data ? x->data_len : 0;
	for (k = 0; k < x->ret && k < n; k++) {
		struct msghdr *m = &vec[k].msg_hdr;
		struct expect one = *x;
		u8 addr[130];
		u32 len;
		u64 mine;
		vec[k].msg_len = (u32)shim_get_v(&p, end);
		m->msg_flags = (int)shim_get_v(&p, end);
		len = shim_re_addr(&p, end, addr);
		if (m->msg_name) {
			shim_copy(m->msg_name, addr, m->msg_namelen < len ? m->msg_namelen : len);
			m->msg_namelen = len;
		}
		m->msg_controllen = 0;
		mine = vec[k].msg_len < left ? vec[k].msg_len : left;
		if (shim_channel_inside(fd)) {
			one.ret = (i64)vec[k].msg_len;
			one.data = data;
			one.data_len = mine;
			shim_channel_read(&one, fd, m->msg_iov, (int)m->msg_iovlen, flags);
		} else {
			shim_scatter(m->msg_iov, m->msg_iovlen, data, mine);
		}
		data += mine;
		left -= mine;
	}
	if (x->ret > 0 && tmo) {
		tmo->tv_sec = (time_t)(x->f3 / 1000000000u);
		tmo->tv_nsec = (long)(x->f3 % 1000000000u);
	}
	return (int)shim_re_ret(x);
}
STANDIN(recvmmsg, re_recvmmsg)

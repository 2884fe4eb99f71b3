/* Helpers of the steps `obj`, `input`, `pre`, `do` and `post` of Rec (cabi/calls.go) for sockets, readiness, pipes and
 * names.
 *
 * What the program gave is read after the call and only when the call's success proves that the kernel could read
 * it; what needs a look before the call (select's sets) or where the kernel may have touched less than is asked for
 * (addresses that were cut) goes through shim_may_read. All results are encoded the same on every architecture.
 */
#ifndef SHIM_STEPS_NET_H
#define SHIM_STEPS_NET_H

#include "wrap.h"
#include "fdtab.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <resolv.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

/* Whether [p, p+n) may be read. Asks the kernel, but for pages of the running stack only the first time. */
HIDDEN int shim_may_read(const void *p, u64 n);

/* A structured result of unknown length: encode writes to at most `end` and answers where it stopped, or NULL when
 * there was no room. One too long for the event's room goes into a data chunk, of at most `most` bytes. */
typedef u8 *(*shim_encode)(u8 *p, u8 *end, const void *what, u64 n);
HIDDEN void shim_input_list(struct ev *e, shim_encode encode, const void *what, u64 n, u64 most);
#define INPUT_ITEM 48 /* what an encoder must have before an item without text */

/* A call of the C library that may call us again (modules of the name service switch): what it calls is not a sign
 * that it was left. */
static inline void shim_pre_nested(struct ev *e)
{
	e->t->slot->call = 0;
}

/* Why a question to name servers has no answer. */
static inline u64 shim_resolve_error(int r, const struct __res_state *s)
{
	return r < 0 ? (u64)(u32)s->res_h_errno : 0;
}

/* Objects that come to be. */
HIDDEN u64 shim_obj_socket(struct thr *t, int fd, int domain, int type);
HIDDEN u64 shim_obj_accepted(struct thr *t, int fd, int flags);
HIDDEN u64 shim_obj_pair(struct thr *t, const int *fds, int r, u32 kind);
HIDDEN u64 shim_obj_signalfd(struct thr *t, int r, int fd);

static inline u64 shim_obj_epoll(struct thr *t, int fd)
{
	return shim_fd_made(t, fd, FD_ANON, "epoll");
}

static inline u64 shim_obj_eventfd(struct thr *t, int fd)
{
	u64 o = shim_fd_made(t, fd, FD_ANON, "eventfd");
	shim_fd_inside(fd);
	return o;
}

static inline u64 shim_obj_timerfd(struct thr *t, int fd)
{
	return shim_fd_made(t, fd, FD_ANON, "timerfd");
}

static inline u64 shim_pair_fd(const int *fds, int r, int which)
{
	return r == 0 ? (u64)fds[which] : 0;
}

static inline u64 shim_pair_obj(const int *fds, int r)
{
	return r == 0 ? shim_fd_known(fds[1]) : 0;
}

static inline u64 shim_pipe_flags(int flags)
{
	u32 f = (u32)flags;
	return f & (u32)O_DIRECT ? (f & ~(u32)O_DIRECT) | 040000 : f; /* amd64's O_DIRECT */
}

/* Addresses. V family, S the rest as the kernel lays it out, without what does not count. */
HIDDEN u8 *shim_put_addr(u8 *p, const void *addr, u64 len);
HIDDEN void shim_input_addr(struct ev *e, const struct sockaddr *addr, u32 len); /* that the program gave to the kernel */
HIDDEN void shim_input_addr_of(struct ev *e, const struct sockaddr *addr, u32 len); /* that it gave to the C library */
HIDDEN void shim_input_from(struct ev *e, const struct sockaddr *addr, const socklen_t *len);
HIDDEN void shim_input_name(struct ev *e, int fd, int peer);

/* Both ends of a connection: V family, S local, V family, S peer, V inode (unix), V pid of the peer (unix). */
HIDDEN void shim_input_accepted(struct ev *e, int fd);
HIDDEN void shim_input_connected(struct ev *e, int fd, const struct sockaddr *addr, u32 len);

/* Options: four bytes are f3, others S. */
static inline u32 shim_opt_len(const struct ev *e, const socklen_t *len)
{
	return e->ret >= 0 && len ? *len : 0;
}

static inline u64 shim_opt(const struct ev *e, const void *val, u32 len)
{
	i64 v = 0;
	int small;
	if (e->ret >= 0 && val && len == 4) {
		__builtin_memcpy(&small, val, 4);
		v = small;
	}
	return (u64)v;
}
HIDDEN void shim_input_opt(struct ev *e, const void *val, u32 len);

/* Received bytes that are in the buffer: with MSG_TRUNC the result may be more, or the data was thrown away. */
HIDDEN i64 shim_got_odd(int fd, u64 n, int flags, i64 r);

static inline i64 shim_got(int fd, u64 n, int flags, i64 r)
{
	if (unlikely(flags & MSG_TRUNC || r > (i64)n))
		return shim_got_odd(fd, n, flags, r);
	return r;
}

/* Messages. */
static inline u64 shim_msg_pieces(const struct ev *e, const struct msghdr *msg)
{
	return e->ret >= 0 ? msg->msg_iovlen : 0;
}

static inline void shim_do_sendmsg(struct ev *e, int fd, const struct msghdr *msg)
{
	if (e->ret > 0)
		shim_wrote_iov(e, fd, msg->msg_iov, (i64)msg->msg_iovlen, e->ret);
}

HIDDEN void shim_do_recvmsg(struct ev *e, int fd, const struct msghdr *msg, int flags);
HIDDEN void shim_input_msg(struct ev *e, const struct msghdr *msg, int in); /* address, flags, what came beside the data */
HIDDEN void shim_do_mmsg(struct ev *e, int fd, const struct mmsghdr *vec, int in);
HIDDEN void shim_input_msgs(struct ev *e, const struct mmsghdr *vec, int in);

/* Readiness. */
HIDDEN void shim_input_polled(struct ev *e, const struct pollfd *fds, u64 n);
HIDDEN void shim_input_events(struct ev *e, const struct epoll_event *ev, i64 n);

static inline u64 shim_ep_events(const struct ev *e, int op, const struct epoll_event *ev)
{
	return e->ret == 0 && (op == EPOLL_CTL_ADD || op == EPOLL_CTL_MOD) ? ev->events : 0;
}

static inline u64 shim_ep_data(const struct ev *e, int op, const struct epoll_event *ev)
{
	return e->ret == 0 && (op == EPOLL_CTL_ADD || op == EPOLL_CTL_MOD) ? ev->data.u64 : 0;
}

/* Whether the kernel has read a waiting call's time and mask: it does so before it waits. */
static inline int shim_waited(const struct ev *e)
{
	return e->ret >= 0 || e->ret == -EINTR;
}

static inline u64 shim_ns(const struct timespec *ts)
{
	return (u64)ts->tv_sec * 1000000000u + (u64)ts->tv_nsec;
}

static inline u64 shim_timespec(const struct ev *e, const struct timespec *ts)
{
	return ts && shim_waited(e) ? shim_ns(ts) : ~0ull; /* for ever */
}

/* The value or the interval of a timer that was set or read. */
static inline u64 shim_timespec0(const struct ev *e, const struct itimerspec *it, int interval)
{
	return it && e->ret == 0 ? shim_ns(interval ? &it->it_interval : &it->it_value) : 0;
}

static inline u64 shim_mask(const struct ev *e, const sigset_t *mask)
{
	u64 v = 0;
	if (mask && shim_waited(e))
		__builtin_memcpy(&v, mask, 8);
	return v;
}

static inline u64 shim_out64(int r, const void *p)
{
	u64 v = 0;
	if (r == 0)
		__builtin_memcpy(&v, p, 8);
	return v;
}

HIDDEN void shim_input_itimerspec(struct ev *e, const struct itimerspec *it);

/* Names. */
static inline const char *shim_text_if(int r, const char *s, u64 room)
{
	return r == 0 && room ? s : 0;
}

static inline u64 shim_serv_port(const struct servent *s)
{
	return s ? ntohs((u16)s->s_port) : 0;
}

static inline const char *shim_serv_name(const struct servent *s)
{
	return s ? s->s_name : 0;
}

static inline u64 shim_proto_number(const struct protoent *p)
{
	return p ? (u64)p->p_proto : 0;
}

static inline const char *shim_proto_name(const struct protoent *p)
{
	return p ? p->p_name : 0;
}

HIDDEN void shim_input_addrs(struct ev *e, struct addrinfo **res, int r);
HIDDEN void shim_input_host(struct ev *e, const struct hostent *h);

/* Why there was no answer. */
static inline u64 shim_herr(int r, struct hostent **h, const int *herr)
{
	return r == 0 && *h ? 0 : (u64)(i64)*herr;
}

static inline const char *shim_canon(struct addrinfo **res, int r)
{
	return r == 0 && *res ? (*res)->ai_canonname : 0;
}

static inline void shim_input_host_r(struct ev *e, struct hostent **h, int r)
{
	shim_input_host(e, r == 0 ? *h : 0);
}
HIDDEN void shim_input_interfaces(struct ev *e, const struct if_nameindex *list);
HIDDEN void shim_input_ifaddrs(struct ev *e, struct ifaddrs **list, int r);

/* Functions without a prototype in any header. */
int __connect(int fd, __CONST_SOCKADDR_ARG addr, socklen_t len);
ssize_t __send(int fd, const void *buf, size_t n, int flags);
ssize_t __recv_chk(int fd, void *buf, size_t n, size_t space, int flags);
ssize_t __recvfrom_chk(int fd, void *restrict buf, size_t n, size_t space, int flags, __SOCKADDR_ARG addr, socklen_t *restrict len);
int __poll(struct pollfd *fds, nfds_t n, int timeout);
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t space);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *tmo, const sigset_t *mask, size_t space);
int __select(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict x, struct timeval *restrict tmo);
int __pipe(int fds[2]);

#endif

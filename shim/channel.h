/* What a descriptor is to a re-execution: really used, or answered from the trace.
 *
 *	inside   both ends were made by the run (pipe, socketpair, eventfd): data really goes through, as many bytes as the
 *	         trace says, so that who reads waits for who wrote; what is read is the trace's where the trace has it
 *	outside  inherited by the run's first process: what is written there is really written, what is read is the trace's
 *	neither  sockets to others, timers, terminals: nothing is sent, what comes is the trace's
 *
 * Files are no channels. A wait here is for another thread of the run: it is seen by the watchdog and ends with the world.
 */
#ifndef SHIM_CHANNEL_H
#define SHIM_CHANNEL_H

#include "feed.h"

/* The expected event of the call that this stand-in is for, as shim_re_of. A call that was left, by cancellation or by a
 * handler that jumped away, waits for that. */
static inline struct expect *shim_re_asked(u32 call)
{
	struct expect *x = shim_re_under_way(call);
	while (x && x->kind == EXPECT_LEFT)
		TRUE(pause)();
	return x;
}

HIDDEN u32 shim_channel_kind(int fd); /* FD_… */
HIDDEN int shim_channel_inside(int fd);
HIDDEN int shim_channel_outside(int fd);
HIDDEN int shim_channel_file(int fd); /* a file, a directory or /dev/null: really asked */

/* Scatters len bytes over n pieces. */
static inline void shim_scatter(const struct iovec *v, u64 n, const u8 *from, u64 len)
{
	for (; n && len; v++, n--) {
		u64 m = v->iov_len < len ? v->iov_len : len;
		shim_copy(v->iov_base, from, m);
		from += m;
		len -= m;
	}
}

static inline u64 shim_room_of(const struct iovec *v, int n)
{
	u64 sum = 0;
	for (; n > 0; v++, n--)
		sum += v->iov_len;
	return sum;
}

/* Takes x's result out of fd and gives it; what the kernel has is awaited. */
HIDDEN ssize_t shim_channel_read(const struct expect *x, int fd, const struct iovec *v, int n, int flags);
/* As many bytes as were written. msg: with what goes beside the data, or NULL. */
HIDDEN void shim_channel_write(const struct expect *x, int fd, const struct iovec *v, int n, const struct msghdr *msg, int flags);
HIDDEN void shim_channel_await(int fd, short events); /* until one of them has come */
HIDDEN void shim_channel_was_ready(int fd); /* until there is something to read, or was */
HIDDEN u64 shim_channel_count(const struct expect *x, int fd, u64 value); /* takes value from an eventfd */
HIDDEN void shim_channel_room(int fd); /* of a serial run: as much as can be had */

/* The thread waits for another, goes on, pauses between two looks. */
HIDDEN void shim_re_waits(struct thr *t, u64 object);
HIDDEN void shim_re_goes_on(struct thr *t);
HIDDEN int shim_re_alone(const struct thr *t); /* the process has no other thread, so that it cannot wait for one */
HIDDEN void shim_re_pause(struct thr *t, u32 *round);

/* Descriptors' numbers (stand_fd.c). */
HIDDEN void shim_re_appends(FILE *f); /* before a stream is asked where it ends */
HIDDEN void shim_re_fd_turn(i64 want); /* before the call that makes it */
HIDDEN void shim_re_fd_place(i64 want); /* the same, but the number may be in use */
HIDDEN int shim_re_fd(int got, i64 want); /* after it: the number that was recorded */
HIDDEN int shim_re_fd_any(int family, int type, i64 want, int flags); /* one that stands for what is not there */

/* What failed for want of room, was interrupted, or found that another process had been faster does so again, at once. */
static inline int shim_re_again(const struct expect *x)
{
	return x->ret == -EMFILE || x->ret == -ENFILE || x->ret == -EINTR || x->ret == -ENOMEM || x->ret == -ENOBUFS || x->ret == -EAGAIN || x->ret == -EEXIST;
}

HIDDEN u32 shim_re_addr(const u8 **p, const u8 *end, u8 to[130]); /* what shim_put_addr wrote, and its length */

/* Registrations in epolls (stand_ready.c). */
HIDDEN void shim_ready_gone(int fd);

#endif

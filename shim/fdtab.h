/* What the program's descriptors are: an object each, its kind, and how much of what comes through is kept.
 *
 * One table by number for the process; entries are words that any thread stores whole. A descriptor is named when it
 * comes to be, and looked at (fstat) only when data first comes through it; descriptors that we did not see come to
 * be (inherited, received) are looked at when first used. In a vforked child, which has descriptors of its own but
 * our memory, the table stays as it is.
 *
 * A number keeps its object's name for as long as the process lives, open or closed: servers open and close the same
 * few numbers all day, and keys that name them stay good. What it is now says the event that returned it last (a path,
 * two ends, what it is a duplicate of), or, where we did not see it come to be, the object's record written again.
 */
#ifndef SHIM_FDTAB_H
#define SHIM_FDTAB_H

#include "thread.h"

struct stat;
struct fdinfo;

enum { FD_UNKNOWN, FD_FILE, FD_DIR, FD_SOCKET, FD_PIPE, FD_TTY, FD_NULL, FD_RANDOM, FD_ANON, FD_OTHER };

/* The object of an open descriptor; 0 for a number that is none. */
HIDDEN u64 shim_fd_slow(struct thr *t, int fd);
HIDDEN void shim_fd_new(struct thr *t, int fd, const char *detail); /* the program got it just now */
HIDDEN void shim_fd_same(struct thr *t, int fd, int of); /* dup: the kind and policy of another */
HIDDEN u64 shim_fd_made(struct thr *t, int fd, u32 kind, const char *detail); /* new, and its kind is known: no system call */
HIDDEN void shim_fd_hurry(int fd, int on); /* O_NONBLOCK */
HIDDEN void shim_fd_gone(int fd); /* before it is closed, so that no other's number is forgotten */
HIDDEN void shim_fd_gone_from(u32 first, u32 last);
HIDDEN void shim_fd_is(int fd, const struct stat *st); /* what it is, when somebody has asked already */
HIDDEN u32 shim_fd_kind(int fd); /* FD_… */
HIDDEN struct fdinfo *shim_fd_look(int fd, struct fdinfo *room); /* what it is, known or not; NULL: not open */
HIDDEN void shim_fd_named(int fd, u64 name); /* what the number is called whenever it is open */
HIDDEN void shim_fd_inside(int fd); /* a channel that the run made, both ends of it */
/* In a re-execution: of a stream that is opened to append the C library asks for the end, before it is given the number that it had
 * (stand_fd.c). The event of its opening, when that is what comes next; and the stream's object, when it has come. 0: it is not so. */
struct expect;
HIDDEN const struct expect *shim_fd_opening(struct thr *t);
HIDDEN u64 shim_fd_unopened(struct thr *t);
HIDDEN void shim_fd_inner(struct thr *t, int fd); /* in a re-execution: of a stream that the C library opened for itself */
HIDDEN void shim_fd_strangers(void); /* what was inherited from outside is there, and the program need not know of it */
HIDDEN int shim_fd_stranger(int fd);
HIDDEN int shim_fd_machines(int fd); /* what is written to it would change the machine, not the world of the re-execution */
HIDDEN void shim_fd_known_now(int fd);
HIDDEN void shim_fd_outside(void); /* from the run's first process: what it has now came from outside */

struct fdinfo {
	u64 obj; /* 0: not open, or not known */
	u64 name; /* what obj is whenever it is open */
	u64 file; /* of a regular file: shim_file_id */
	u8 kind, in, out, flags; /* flags: FD_LOCKED …; in, out: PROPHET_Inputs… for data read and written, or FD_ASK */
	u16 seen; /* how many files the run had written when in was last decided */
	u16 named; /* low bits of the process that gave the name: a forked child gives its own */
};
#define FD_HURRIES 8 /* this process has set O_NONBLOCK, or got it with the descriptor */
#define FD_ASK 0x80 /* decided in shim_fd_policy */
#define FD_LOCKED 1 /* this process has had a POSIX lock through it */
#define FD_INSIDE 2 /* in a re-execution: both its ends were made by the run (channel.h) */
#define FD_OUTSIDE 4 /* in a re-execution: the run's first process inherited it */
#define FD_MACHINES 16 /* in a re-execution: a file by which the machine is set, outside the world (shim_fd_machines) */
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

/* Whether a call on it waits for nobody, as far as this process knows: another one that has the same may have said otherwise. */
static inline int shim_fd_hurries(int fd)
{
	struct fdinfo *i = shim_fdinfo(fd);
	return i && i->obj && i->flags & FD_HURRIES;
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
HIDDEN u32 shim_fd_policy(int fd, int out);
HIDDEN void shim_data_slow(struct ev *e, u32 policy, const void *buf, u64 len);

static inline u32 shim_policy(int fd, int out)
{
	struct fdinfo *i = shim_fdinfo(fd);
	u32 p;
	if (!i || !shim_ctl.inputs)
		return 0;
	if (unlikely(shim_ctl.inputs == PROPHET_InputsReplay))
		return PROPHET_InputsReplay;
	p = out ? i->out : i->in;
	return unlikely(p & FD_ASK) ? shim_fd_policy(fd, out) : p;
}

static inline void shim_data(struct ev *e, int fd, const void *buf, i64 len)
{
	u32 p;
	if (len > 0 && (p = shim_policy(fd, 0)))
		shim_data_slow(e, p, buf, (u64)len);
}

static inline void shim_wrote(struct ev *e, int fd, const void *buf, i64 len)
{
	u32 p;
	if (len > 0 && (p = shim_policy(fd, 1)))
		shim_data_slow(e, p, buf, (u64)len);
}

/* The same for scattered data: the first len bytes of what v tells. v stays until shim_done. */
HIDDEN void shim_data_iov_slow(struct ev *e, u32 policy, const struct iovec *v, u64 n, u64 len);

static inline void shim_data_iov(struct ev *e, int fd, const struct iovec *v, i64 n, i64 len)
{
	u32 p;
	if (len > 0 && (p = shim_policy(fd, 0)))
		shim_data_iov_slow(e, p, v, (u64)n, (u64)len);
}

static inline void shim_wrote_iov(struct ev *e, int fd, const struct iovec *v, i64 n, i64 len)
{
	u32 p;
	if (len > 0 && (p = shim_policy(fd, 1)))
		shim_data_iov_slow(e, p, v, (u64)n, (u64)len);
}

#endif

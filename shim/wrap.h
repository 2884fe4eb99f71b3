/* The one shape of a wrapper (rules.h, 4), as printed for every plain row:
 *
 *	struct ev e;
 *	if (!shim_begin(&e, CALL_read, CLASS_disk, CALLER()))
 *		return REAL(read)(fd, buf, n);
 *	r = REAL(read)(fd, buf, n);
 *	shim_end(&e, WRAP_BLOCK);	// stamp
 *	e.ret = shim_ret_errno(r); e.obj = …; e.f1 = …;
 *	return shim_done(&e), r;	// written; nothing of ours touches errno
 *
 * Between begin and end nothing is held, so the real call may be left by a jump, an exception or cancellation.
 */
#ifndef SHIM_WRAP_H
#define SHIM_WRAP_H

#include "thread.h"
#include "pause.h"
#include "real.h"
#include "object.h"
#include "fdtab.h"
#include <errno.h>
#include <sys/single_threaded.h>

HIDDEN int shim_begin_special(struct ev *e); /* serial, delays, a call that was left */
HIDDEN void shim_end_special(struct ev *e);

#define FD_NONE (-1)
#define FD_AT_ONCE (-2) /* of a call that waits for nobody, other than its row says */

/* Fills e for an event that may wait, unless fd is a file's, or has room for what is written; 0: do not record. */
static inline int shim_begin_out(struct ev *e, u32 call, u32 cls, void *pc, int fd, u64 out)
{
	struct thr *t = shim_ready(cls);
	if (unlikely(!t))
		return 0;
	e->t = t;
	e->pc = pc;
	e->call = call;
	e->obj = 0;
	e->f1 = e->f2 = e->f3 = e->seq = 0;
	e->ret = 0;
	e->note = e->nparts = e->data_kind = e->inlen = 0;
	e->outer_call = (int)t->slot->call;
	e->fd = fd;
	e->out = out;
	e->held = 0;
	if (unlikely(!shim_ctl.fast || e->outer_call || t->vfork))
		shim_begin_special(e); /* stamps too */
	else
		e->begin = shim_ticks();
	t->slot->call = call;
	if (unlikely(e->begin - t->last > shim_gap))
		shim_cpu_due(t, e->begin);
	t->slot->begin = e->begin;
	return 1;
}

static inline int shim_begin_fd(struct ev *e, u32 call, u32 cls, void *pc, int fd)
{
	return shim_begin_out(e, call, cls, pc, fd, 0);
}

static inline int shim_begin(struct ev *e, u32 call, u32 cls, void *pc)
{
	return shim_begin_fd(e, call, cls, pc, FD_NONE);
}

#define WRAP_ONCE 0
#define WRAP_BLOCK 1

/* After the real call. A call that cannot wait has one stamp. */
static inline void shim_end(struct ev *e, int block)
{
	e->end = block ? shim_ticks() : e->begin;
	if (unlikely(!shim_ctl.fast))
		shim_end_special(e);
	else
		e->t->slot->call = 0;
}

/* Writes the event. errno is as the real call left it, as nothing of ours touches it. */
static inline void shim_done(struct ev *e)
{
	shim_commit(e);
}

/* The shape for rows that record numbers and perhaps data: the same steps without an event in memory while all is as
 * it should be. Everything else goes to NAME_event, the common shape. */
static inline struct thr *shim_simple(u32 cls)
{
	struct thr *t = shim_self.thr;
	return likely(t && (t->gate & shim_ctl.fast & 1u << cls) && !t->slot->call) ? t : 0;
}

static inline u64 shim_simple_begin(struct thr *t, u32 call)
{
	u64 begin = shim_ticks();
	t->slot->call = call;
	t->slot->begin = begin;
	if (unlikely(begin - t->last > shim_gap))
		shim_cpu_due(t, begin);
	return begin;
}

/* Whether the real function is no more than the system call: it is glibc's, which looks for cancellation only where
 * there are threads. Then a wrapper asks the kernel itself: the kernel's way out leaves nothing of what the CPU
 * remembers of who called, so each return after it is predicted wrongly (LEAP), and one less saves 46 ns (measured on Zen).
 * Where there are threads, what glibc does for cancellation comes to that. It can be left
 * out as long as nobody has been cancelled (shim_cancels) and the call waits for nobody, so that none is held up in it. */
static inline int shim_may_ask(u32 call, int fd)
{
	return shim_direct[call] && (__libc_single_threaded || shim_fd_hurries(fd));
}

static inline long shim_asked(long r)
{
	if (unlikely((u64)r > -4096ul)) {
		errno = (int)-r;
		return -1;
	}
	return r;
}

static inline void shim_late(struct ev *e, struct thr *t, u32 call, void *pc, u64 begin, u64 end)
{
	e->t = t;
	e->pc = pc;
	e->call = call;
	e->obj = e->f1 = e->f2 = e->f3 = e->seq = 0;
	e->ret = 0;
	e->note = e->nparts = e->data_kind = e->inlen = e->held = 0;
	e->begin = begin;
	e->end = end;
	if (unlikely(!shim_ctl.fast))
		shim_end_special(e);
}

static inline i64 shim_ret_errno(i64 r)
{
	return r == -1 ? -(i64)errno : r;
}

static inline i64 shim_ret_ptr(const void *r)
{
	return r ? 1 : -(i64)errno;
}

static inline void shim_tail_num(struct ev *e, u64 v)
{
	if (e->nparts < PARTS) {
		e->part[e->nparts].p = 0;
		e->part[e->nparts].n = v;
		e->part[e->nparts++].kind = PART_NUM;
	}
}

static inline void shim_tail_bytes(struct ev *e, const void *p, u64 n, u32 kind)
{
	if (e->nparts < PARTS) {
		e->part[e->nparts].p = p ? p : "";
		e->part[e->nparts].n = p ? n : 0;
		e->part[e->nparts++].kind = kind;
	}
}

/* A string the program gave: read only when the kernel could, or may have. */
HIDDEN void shim_tail_text(struct ev *e, const char *s, u32 kind);
HIDDEN int shim_readable(const void *p, u64 n);

static inline void shim_tail_snum(struct ev *e, i64 v)
{
	shim_tail_num(e, ((u64)v << 1) ^ (u64)(v >> 63));
}

#endif

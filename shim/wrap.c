/* The parts of the wrapper's shape that are off the fast path, and what printed wrappers share. See wrap.h. */
#include "replay.h"
#include "chaos.h"
#include <sys/uio.h>
#include <time.h>

static void left(struct ev *e)
{
	struct thr *t = e->t;
	u8 b[32], *p = put_v(b, (u64)e->outer_call);
	u64 now = shim_ticks();
	p = put_v(p, now > t->slot->begin ? now - t->slot->begin : 0);
	shim_record_at(t, PROPHET_TagLeft, b, (u32)(p - b));
	e->outer_call = 0;
}

static void delay(struct ev *e)
{
	u32 i;
	for (i = 0; i < PROPHET_DelaySlots; i++) {
		struct delay *d = &shim_ctl.delays[i];
		u64 n;
		if (!d->ns || (d->call && d->call != e->call) || (d->uid && d->uid != e->t->uid))
			continue;
		n = __atomic_add_fetch(&d->count, 1, __ATOMIC_RELAXED);
		if (!d->nth || n == d->nth) {
			struct timespec ts = {(time_t)(d->ns / 1000000000u), (long)(d->ns % 1000000000u)};
			sys(SYS_nanosleep, &ts, &ts);
			e->note |= PROPHET_NoteDelayed;
		}
	}
}

int shim_begin_special(struct ev *e)
{
	e->token = 0;
	if (unlikely(shim_self.ending)) /* the call before had nothing to write */
		shim_serial_later();
	e->held = 0;
	if (shim_ctl.serial) {
		e->t->leaves = 0; /* a handler may have jumped away */
		if (unlikely(shim_run.exiting == e->t->tid))
			shim_serial_take(1);
		e->held = (u32)shim_serial_holds(e);
		shim_zero(e->part, sizeof e->part); /* see scrub.h */
	}
	if (unlikely(e->t->re != 0)) {
		if (e->outer_call)
			left(e);
		if (e->t->vfork && shim_in_vfork(e->t))
			e->note |= PROPHET_NoteVforked;
		if (likely(shim_re_begin(e)))
			return 1;
		e->x = 0; /* the harness is off */
	}
	if (e->outer_call)
		left(e);
	if (e->t->vfork && shim_in_vfork(e->t))
		e->note |= PROPHET_NoteVforked;
	if (shim_ctl.delayed)
		delay(e);
	if (shim_ctl.chaos && !shim_ctl.serial && shim_chaos(e->t))
		e->note |= PROPHET_NoteDelayed;
	if (shim_ticks() - e->t->last > shim_gap)
		shim_cpu_due(e->t, shim_ticks()); /* while the token is ours: the event cannot begin before this record */
	e->begin = shim_ticks();
	if (shim_ctl.serial && !e->held) {
		shim_serial_give();
		if (shim_ctl.chaos && shim_chaos(e->t)) /* others can go on only now */
			e->note |= PROPHET_NoteDelayed;
	}
	return 1;
}

/* A serial event ends when the token is ours again, so that what lies between two events of a thread overlaps with nothing
 * of another. */
void shim_end_special(struct ev *e)
{
	if (shim_ctl.serial && !shim_replays && !shim_self.ending)
		shim_self.ending = 1;
	e->t->slot->call = 0;
	if (shim_ctl.chaos && !e->held)
		shim_chaos(e->t);
	if (shim_ctl.serial && !e->held) { /* else when its results have been read: shim_commit */
		e->t->slot->call = e->call; /* who dies before its turn was in it */
		e->token = shim_serial_take(0);
		e->t->slot->call = 0;
		e->end = shim_ticks_after(); /* the token first */
	}
	if (unlikely(shim_paused()))
		shim_park();
}

/* Asks the kernel by a call that does nothing but read eight bytes: it refuses what is to be done with the mask. valgrind would
 * say on stderr that this is a mistake: there it is asked whether something is mapped. */
static long fault(u64 at)
{
	u8 there;
	if (unlikely(shim_run.valgrind))
		return sys(SYS_mincore, at & ~4095ull, 1, &there) == -ENOMEM;
	return sys(SYS_rt_sigprocmask, -1, at, 0, 8) == -EFAULT;
}

/* Whether n bytes may be read without a fault, page by page. Only for where something is odd. */
int shim_readable(const void *p, u64 n)
{
	u64 at = (u64)p & ~7ull, end = (u64)p + n;
	if (end < (u64)p)
		return 0;
	for (; at < end; at = (at | 4095) + 1)
		if (!at || fault(at))
			return 0;
	return 1;
}

void shim_tail_text(struct ev *e, const char *s, u32 kind)
{
	i64 r = e->ret;
	u64 n = 0;
	/* After these the kernel has read the text; after others (EFAULT, EINVAL, EBADF, …) it may not have. */
	if (r >= 0 || r == -ENOENT || r == -EEXIST || r == -EACCES || r == -ENOTDIR || r == -EISDIR || r == -ENOTEMPTY || r == -EPERM) {
		n = s ? shim_len(s) : 0;
	} else if (s) {
		while (n < 4096 && shim_readable(s + n, 1)) { /* what holds for a byte holds for its page */
			u64 end = n + 4096 - ((u64)(s + n) & 4095);
			while (n < end && s[n])
				n++;
			if (n < end)
				break;
		}
	}
	shim_tail_bytes(e, s, n, kind);
}

/* See serial.h. */
#include "serial.h"
#include "chaos.h"
#include "wrap.h"
#include "pause.h"
#include "thread.h"
#include "step.h"
#include "token.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>

#define LOOK_NS 100000 /* a waiter looks first after this time whether the holder is dead, then after longer ones up to */
#define LOOK_NS_MAX 10000000
#define PATIENCE (shim_gap * (shim_ctl.broken ? 2500 : 25000)) /* shim_gap is 40 µs of ticks */

/* The calling thread, by the name that it has in Control.Token; 0: a vforked child, which has its parent's. */
static u32 myself(void)
{
	struct thr *t = shim_self.thr;
	u32 me = (u32)sys(SYS_gettid);
	return t && t->begun && t->vfork && me != t->tid ? 0 : me;
}

void shim_serial_give(void)
{
	u32 me = myself();
	if (unlikely(shim_replays)) {
		if (me && shim_self.thr && shim_self.thr->re)
			shim_token_give(shim_self.thr);
		return;
	}
	if (!me || __atomic_load_n(&shim_ctl.token, __ATOMIC_RELAXED) != me)
		return;
	__atomic_store_n(&shim_ctl.token, 0, __ATOMIC_RELEASE);
	__atomic_add_fetch(&shim_ctl.turn, 1, __ATOMIC_RELEASE);
	if (__atomic_load_n(&shim_ctl.waiters, __ATOMIC_ACQUIRE))
		sys(SYS_futex, &shim_ctl.turn, FUTEX_WAKE, 1, 0, 0, 0);
}

/* Reads a file of /proc/TID, of a thread of any process; its length. */
static long about(u32 tid, const char *name, char *b, u64 room)
{
	char at[40];
	struct text t;
	long fd, r;
	shim_text(&t, at, sizeof at);
	shim_put(&t, "/proc/");
	shim_putd(&t, tid);
	shim_put(&t, name);
	fd = sys(SYS_openat, -100, at, 02000000 /* O_RDONLY | O_CLOEXEC */, 0);
	if (fd < 0)
		return 0;
	r = sys(SYS_read, fd, b, room - 1);
	sys(SYS_close, fd);
	b[r > 0 ? r : 0] = 0;
	return r;
}

/* What /proc calls a thread's state; 0: there is none such. */
static char state(u32 tid)
{
	char b[512];
	long i;
	for (i = about(tid, "/stat", b, sizeof b) - 3; i > 0; i--)
		if (b[i] == ')')
			return b[i + 2];
	return 0;
}

int shim_ended(u32 tid)
{
	char s = state(tid);
	return s == 'Z' || s == 'X' || sys(SYS_tkill, tid, 0) == -ESRCH;
}

/* Whether a thread is waiting for something. */
int shim_sleeps(u32 tid)
{
	char s = state(tid);
	return s == 'S' || s == 'T' || s == 't' || s == 'Z' || s == 'X';
}

/* The number in a line of /proc/TID/status. */
static u64 line(const char *b, const char *name, u32 base)
{
	u64 v = 0;
	const char *p;
	for (p = b; *p; p++)
		if (p[-1] == '\n' && shim_starts(p, name)) {
			for (p += shim_len(name); *p == '\t' || *p == ' '; p++)
				;
			for (; *p && *p != '\n'; p++)
				v = v * base + (u64)(*p <= '9' ? *p - '0' : *p - 'a' + 10);
			return v;
		}
	return 0;
}

#define STOP 64 /* the signal that asks a thread to wait for its turn; what it says: */
#define STOP_VALUE 0x70726f70

static int is_stop(const siginfo_t *si)
{
	return si && si->si_code == SI_QUEUE && si->si_value.sival_int == STOP_VALUE;
}

void shim_serial_stop(u32 tid)
{
	const u64 bit = 1ull << (STOP - 1);
	char room[4097], *b = room + 1;
	siginfo_t si;
	room[0] = '\n';
	if (!tid || about(tid, "/status", b, sizeof room - 1) <= 0 || line(b, "SigBlk:", 16) & bit || !(line(b, "SigCgt:", 16) & bit))
		return;
	shim_zero(&si, sizeof si);
	si.si_signo = STOP;
	si.si_code = SI_QUEUE;
	si.si_pid = (int)sys(SYS_getpid);
	si.si_value.sival_int = STOP_VALUE;
	sys(SYS_rt_tgsigqueueinfo, line(b, "Tgid:", 10), tid, STOP, &si);
}

extern const char __ehdr_start[] HIDDEN, etext[] HIDDEN;

/* The thread was spinning, or slept: it goes on when the token is its own again. One that is in an event by now takes it at the end of that. */
int shim_serial_stopped(int sig, const void *info, const void *context)
{
	const siginfo_t *si = info;
	struct thr *t = shim_self.thr;
	u64 pc = SHIM_CONTEXT_PC(context), cancels = 1ull << 31, was;
	if (likely(sig != STOP) || !shim_ctl.serial || !is_stop(si))
		return 0;
	if (t && t->begun && shim_wiped->alive && !t->slot->call && !t->writing && !shim_in_vfork(t) && !(pc >= (u64)__ehdr_start && pc < (u64)etext)) {
		/* Who cancels it at once waits, as a turn that is not taken is nobody's. */
		sys(SYS_rt_sigprocmask, SIG_BLOCK, &cancels, &was, 8);
		/* In a re-execution signals that came with it, and those that came meanwhile, come here. */
		if (unlikely(t->re != 0))
			shim_re_stopped(t);
		shim_serial_take(1);
		if (unlikely(t->re != 0))
			shim_re_starts(t, 0);
		sys(SYS_rt_sigprocmask, SIG_SETMASK, &was, 0, 8);
		if (unlikely(shim_replays))
			shim_step_again((void *)(u64)context);
	}
	return 1;
}

/* The program's own signal of that number does what it does where nobody handles it: it ends the process. */
static void stopped(int sig, siginfo_t *si, void *context)
{
	int err = errno;
	if (!shim_serial_stopped(sig, si, context) && !is_stop(si)) {
		struct sigaction a;
		shim_zero(&a, sizeof a);
		REAL(sigaction)(sig, &a, 0);
		sys(SYS_rt_tgsigqueueinfo, sys(SYS_getpid), sys(SYS_gettid), sig, si);
	}
	errno = err;
}

int shim_serial_guard(const void *handler)
{
	return handler == (const void *)(u64)stopped;
}

void shim_serial_boot(void)
{
	struct sigaction a;
	if (!shim_ctl.serial || REAL(sigaction)(STOP, 0, &a) != 0 || a.sa_handler != SIG_DFL)
		return;
	shim_zero(&a, sizeof a);
	a.sa_sigaction = stopped;
	a.sa_flags = SA_SIGINFO | SA_RESTART;
	REAL(sigaction)(STOP, &a, 0);
}

/* A child that has no stream yet says its turn when it has one: the token is still its own then. */
static void tell(void)
{
	struct self *me = &shim_self;
	struct thr *t = me->thr;
	u8 b[16], *p;
	if (!me->untold || !t || !t->begun || !shim_wiped->alive || t->mute)
		return;
	p = put_v(b, PROPHET_TagToken);
	p = put_v(p, me->untold);
	t->token = me->untold >> 3;
	me->untold = 0;
	t->token_gen = 0; /* whatever is said between this and the next event */
	shim_record(t, b, (u32)(p - b));
}

static u64 took(u32 how, int here)
{
	u64 turn = __atomic_add_fetch(&shim_ctl.turns, 1, __ATOMIC_RELAXED) << 3 | how;
	if (here) {
		shim_self.untold = turn | PROPHET_TokenHere;
		tell();
	}
	return turn;
}

/* The signal stays pending, and all others do, but those by which the C library asks all threads for something, and ours. */
int shim_serial_early(int sig, const void *info, void *context)
{
	const u64 faults =
	    1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) | 1ull << (SIGFPE - 1) | 1ull << (SIGILL - 1) | 1ull << (SIGTRAP - 1) | 1ull << (SIGSYS - 1);
	const u64 never = 1ull << (STOP - 1) | 1ull << 31 | 1ull << 32;
	struct thr *t = shim_self.thr;
	u64 *mask = (u64 *)&((ucontext_t *)context)->uc_sigmask;
	if (likely(!t || !shim_self.ending) || !t->begun || !shim_wiped->alive || shim_in_vfork(t))
		return 0;
	if (faults >> (sig - 1) & 1 && ((const siginfo_t *)info)->si_code > 0)
		return 0;
	if (sys(SYS_rt_tgsigqueueinfo, sys(SYS_getpid), sys(SYS_gettid), sig, info) != 0)
		return 0;
	/* Another may interrupt us here. Where two came at once the one on top runs first, and what it interrupted has that of
	 * the other blocked: only what all of them found blocked stays so. */
	if (__atomic_exchange_n(&shim_self.ending, 2, __ATOMIC_RELAXED) == 1)
		shim_self.later = *mask;
	else
		shim_self.later &= *mask;
	*mask |= ~never;
	return 1;
}

void shim_serial_later(void)
{
	if (__atomic_exchange_n(&shim_self.ending, 0, __ATOMIC_RELAXED) == 2) /* in one instruction: what comes between two would stay blocked */
		sys(SYS_rt_sigprocmask, SIG_SETMASK, &shim_self.later, 0, 8);
}

static u64 take(u32 me, int here)
{
	u32 asleep = 0, seen = 0, look = LOOK_NS;
	u64 since = 0;
	for (;;) {
		u32 holder = 0, how, turn;
		struct timespec wait = {0, look};
		if (unlikely(shim_paused())) { /* nor is a holder that is paused asleep */
			shim_park();
			since = 0;
		}
		turn = __atomic_load_n(&shim_ctl.turn, __ATOMIC_ACQUIRE);
		if (__atomic_compare_exchange_n(&shim_ctl.token, &holder, me, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return took(PROPHET_TokenGiven, here);
		if (holder == me) {
			tell();
			return 0;
		}
		/* Signals may end each wait early, so patience is measured, not counted. */
		if (!since || turn != seen) {
			since = shim_ticks();
			seen = turn;
			asleep = 0;
			look = wait.tv_nsec = LOOK_NS;
		}
		__atomic_add_fetch(&shim_ctl.waiters, 1, __ATOMIC_ACQ_REL);
		sys(SYS_futex, &shim_ctl.turn, FUTEX_WAIT, turn, &wait, 0, 0);
		__atomic_sub_fetch(&shim_ctl.waiters, 1, __ATOMIC_ACQ_REL);
		if (__atomic_load_n(&shim_ctl.turn, __ATOMIC_ACQUIRE) != turn)
			continue;
		look = look * 2 < LOOK_NS_MAX ? look * 2 : LOOK_NS_MAX;
		if (shim_ticks() - since >= shim_gap * 250 * (asleep + 1))
			asleep = shim_sleeps(holder) ? asleep + 1 : 0;
		if (shim_ended(holder))
			how = PROPHET_TokenDead;
		else if (asleep >= 2)
			how = PROPHET_TokenSlept;
		else if (shim_ticks() - since >= PATIENCE)
			how = PROPHET_TokenSpun;
		else
			continue;
		if (__atomic_compare_exchange_n(&shim_ctl.token, &holder, me, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			__atomic_add_fetch(&shim_ctl.turn, 1, __ATOMIC_RELEASE); /* for who waits: the holder is another */
			if (how != PROPHET_TokenDead) {
				__atomic_add_fetch(&shim_ctl.broken, 1, __ATOMIC_RELAXED);
				shim_serial_stop(holder);
			}
			return took(how, here);
		}
		since = 0;
	}
}

/* A turn that is taken here is told before a signal comes: its handler's records would stand before the turn's. */
u64 shim_serial_take(int here)
{
	struct thr *t = shim_self.thr;
	u32 me = myself();
	u64 r;
	if (!me)
		return 0;
	if (unlikely(shim_replays)) /* an event's is taken when it has been compared */
		return here && t && t->re ? (u64)shim_token_here(t) : 0;
	if (!here || !t || shim_self.ending)
		return take(me, here);
	shim_self.ending = 1;
	r = take(me, here);
	shim_serial_later();
	return r;
}

#define PIPE_PAGE 4096 /* what is not longer goes into a pipe in one piece, where there is a page for it */

/* Such a stream waits when as much is under way as may be, but says that it would when it is a quarter of that. */
static int unix_room(int fd)
{
	int is[3] = {0, 0, 0}, names[3] = {SO_DOMAIN, SO_TYPE, SO_SNDBUF}, under_way = 0, i;
	for (i = 0; i < 3; i++) {
		u32 len = sizeof *is;
		if (sys(SYS_getsockopt, fd, SOL_SOCKET, names[i], &is[i], &len) != 0)
			return 0;
	}
	return is[0] == AF_UNIX && is[1] == SOCK_STREAM && sys(SYS_ioctl, fd, SIOCOUTQ, &under_way) == 0 && under_way < is[2];
}

/* Whether so much can be written to a channel at once. Pages of a pipe are no less than half full, on the average, but for its first and last. */
static int has_room(int fd, u32 kind, u64 n)
{
	struct pollfd p = {fd, POLLOUT, 0};
	struct timespec now = {0, 0};
	u32 holds = 0;
	long size;
	if (sys(SYS_ppoll, &p, 1, &now, 0, 0) != 1)
		return kind == FD_SOCKET && n <= PIPE_PAGE && unix_room(fd);
	if (n <= PIPE_PAGE || sys(SYS_fcntl, fd, F_GETFL) & O_NONBLOCK)
		return 1;
	size = kind == FD_PIPE && sys(SYS_ioctl, fd, FIONREAD, &holds) == 0 ? sys(SYS_fcntl, fd, F_GETPIPE_SZ) : 0;
	return size > 0 && n <= (u64)size && (n + PIPE_PAGE - 1) / PIPE_PAGE + (holds ? holds / (PIPE_PAGE / 2) + 2 : 0) <= (u64)size / PIPE_PAGE;
}

/* Files keep nobody waiting for another of the run. What is read and written there may be memory that others share. Nor does a channel with
 * room for what is written: where several write to it, it comes in the order of their turns. Who reads what a re-execution writes outside
 * is none of it. */
int shim_serial_holds(const struct ev *e)
{
	struct fdinfo room, *i;
	if (shim_re_flags[e->call] & RE_HOLDS || e->fd == FD_AT_ONCE)
		return 1;
	i = e->fd >= 0 ? shim_fd_look(e->fd, &room) : 0;
	if (!i)
		return 0;
	if (i->kind == FD_FILE || i->kind == FD_DIR || i->kind == FD_NULL)
		return 1;
	if (!e->out || (i->kind != FD_PIPE && i->kind != FD_SOCKET && i->kind != FD_TTY))
		return 0;
	return (shim_replays && i->flags & FD_OUTSIDE) || has_room(e->fd, i->kind, e->out);
}

u64 shim_serial_sum(const struct iovec *v, int n)
{
	u64 sum = 0;
	if (!shim_ctl.serial || n <= 0 || n > IOV_MAX || !shim_readable(v, (u64)n * sizeof *v))
		return 0;
	for (; n; v++, n--)
		sum += v->iov_len;
	return sum;
}

u64 shim_serial_message(const struct msghdr *m)
{
	if (!shim_ctl.serial || !shim_readable(m, sizeof *m) || m->msg_name || m->msg_iovlen > IOV_MAX)
		return 0;
	return shim_serial_sum(m->msg_iov, (int)m->msg_iovlen);
}

#define MAJOR_MEMORY 1 /* /dev/null and its like */

/* A pipe waits for its other end, a terminal for its line. */
int shim_serial_opens(int dirfd, const char *path)
{
	struct stat st;
	long r = sys(SYS_newfstatat, dirfd, path, &st, 0);
	return r == -ENOENT || (r == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || (S_ISCHR(st.st_mode) && major(st.st_rdev) == MAJOR_MEMORY)))
		   ? FD_AT_ONCE
		   : FD_NONE;
}

void shim_serial_next(struct ev *e)
{
	shim_serial_give();
	if (shim_ctl.chaos && shim_chaos(e->t))
		e->note |= PROPHET_NoteDelayed;
	e->token = shim_serial_take(0);
	e->end = shim_ticks_after();
}

/* See pause.h: parking, what a pause did to a call, signals that are ours. */
#include "pause.h"
#include "thread.h"
#include "real.h"
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* The slot that says where this thread is; NULL where it has none of its own. */
static struct slot *mine(void)
{
	struct thr *t = shim_self.thr;
	return shim_run.state == RUN_ON && shim_wiped->alive && t && t->begun ? t->slot : 0;
}

/* A handler that runs while we sleep parks, too, before the program's part of it. */
void shim_park(void)
{
	struct slot *s;
	u32 p, was;
	if (!shim_paused() || shim_self.off)
		return;
	s = mine();
	was = s ? s->parked : 0;
	shim_timers_freeze();
	while ((p = __atomic_load_n(&shim_ctl.pause, __ATOMIC_ACQUIRE)) & 1) {
		if (s)
			__atomic_store_n(&s->parked, p, __ATOMIC_RELEASE);
		sys(SYS_futex, &shim_ctl.pause, FUTEX_WAIT, p, 0, 0, 0);
	}
	if (s)
		__atomic_store_n(&s->parked, was, __ATOMIC_RELEASE);
	shim_timers_thaw();
}

/* How much of the ticks from begin to now virtual time stood still. */
static u64 stood(u64 begin, u64 now)
{
	u64 sum = 0;
	u32 i;
	for (i = 0; i < PROPHET_PausesKept; i++) {
		u64 stop = __atomic_load_n(&shim_ctl.pauses[i].stop, __ATOMIC_ACQUIRE);
		u64 go = __atomic_load_n(&shim_ctl.pauses[i].go, __ATOMIC_ACQUIRE);
		if (!stop)
			continue;
		if (!go || go > now)
			go = now;
		if (stop < begin)
			stop = begin;
		if (go > stop)
			sum += go - stop;
	}
	return sum;
}

static u64 mono(void)
{
	struct timespec ts = {0, 0};
	sys(SYS_clock_gettime, CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000u + (u64)ts.tv_nsec;
}

u64 shim_ran_ns(u64 begin)
{
	u64 now = shim_moment(), all = now - shim_ctl.ticks0, ns = mono() - shim_ctl.mono0, ran;
	if (now <= begin)
		return 0;
	ran = now - begin;
	ran -= stood(begin, now);
	return all ? (u64)((unsigned __int128)ran * ns / all) : 0;
}

/* 1: a pause since then; what it has done to a call may be a moment old. */
static int fell_into(u64 begin)
{
	u32 i;
	for (i = 0; i < PROPHET_PausesKept; i++) {
		u64 go = __atomic_load_n(&shim_ctl.pauses[i].go, __ATOMIC_ACQUIRE);
		if (__atomic_load_n(&shim_ctl.pauses[i].stop, __ATOMIC_ACQUIRE) && (!go || go >= begin))
			return 1;
	}
	return 0;
}

int shim_disturbed(u64 begin)
{
	struct thr *t = shim_self.thr;
	if (likely(!shim_unquiet()))
		return 0;
	shim_park();
	if (t && t->handled > begin)
		return 0;
	return (t && t->hidden > begin) || fell_into(begin);
}

static u64 limit_ns(int fd, int out)
{
	struct timeval tv = {0, 0};
	socklen_t n = sizeof tv;
	if (sys(SYS_getsockopt, fd, SOL_SOCKET, out ? SO_SNDTIMEO : SO_RCVTIMEO, &tv, &n) != 0)
		return 0;
	return (u64)tv.tv_sec * 1000000000u + (u64)tv.tv_usec * 1000u;
}

/* A descriptor's call failed. One with a timeout of its socket is broken off by SIGSTOP, and may have expired too early;
 * the time it has left it waits here, as a second call would have the whole timeout again. */
int shim_broken_slow(u64 begin, int fd, int out)
{
	int err = errno, expired = err == EAGAIN || err == EINPROGRESS;
	u64 limit, ran;
	struct pollfd p = {fd, out ? POLLOUT : POLLIN, 0};
	if ((!expired && err != EINTR) || !shim_disturbed(begin))
		return 0;
	limit = limit_ns(fd, out);
	if (!limit)
		return err == EINTR;
	for (;;) {
		struct timespec left;
		long r;
		ran = shim_ran_ns(begin);
		if (ran >= limit)
			break;
		left.tv_sec = (time_t)((limit - ran) / 1000000000u);
		left.tv_nsec = (long)((limit - ran) % 1000000000u);
		r = sys(SYS_ppoll, &p, 1, &left, 0, 8);
		shim_park();
		if (r == -EINTR && !shim_disturbed(begin)) {
			errno = EINTR;
			return 0;
		}
		if (r > 0)
			return 1;
	}
	errno = out == 2 ? EINPROGRESS : EAGAIN;
	return 0;
}

int shim_halts(u32 pid)
{
	u32 i, n = shim_ctl.haltslen;
	for (i = 0; i < n && i < PROPHET_HaltsMax; i++)
		if (shim_ctl.halts[i] == pid)
			return (int)i + 1;
	return 0;
}

/* A child's stop and continuation by a pause. The kernel tells of one SIGCHLD at a time: when another child has ended
 * meanwhile this is its signal. */
static int hidden_child(siginfo_t *si)
{
	siginfo_t other;
	if ((si->si_code != CLD_STOPPED && si->si_code != CLD_CONTINUED) || !shim_halts((u32)si->si_pid))
		return 0;
	if (si->si_status != SIGSTOP && si->si_status != SIGCONT)
		return 0;
	shim_zero(&other, sizeof other);
	if (sys(SYS_waitid, P_ALL, 0, &other, WEXITED | WNOHANG | WNOWAIT, 0) == 0 && other.si_pid) {
		*si = other;
		return 0;
	}
	return 1;
}

int shim_hidden_signal(int sig, siginfo_t *si)
{
	struct thr *t = shim_self.thr;
	if (likely(!shim_ctl.pause) || !si)
		return 0;
	if (sig == SIGCONT && si->si_code == SI_QUEUE && (u32)si->si_value.sival_int == (u32)shim_ctl.tag) {
		if (shim_paused())
			shim_timers_freeze();
		else
			shim_timers_thaw();
		__atomic_add_fetch(&shim_ctl.frozen, 1, __ATOMIC_RELEASE);
	} else if (sig != SIGCHLD || !hidden_child(si)) {
		return 0;
	}
	if (t)
		t->hidden = shim_moment();
	return 1;
}

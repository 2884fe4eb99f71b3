/* Virtual time (pause.h): what the program is told about clocks, and calls with timeouts, which the kernel counts in
 * its own time. Each function here takes the place of a real one in shim_real_table, so that wrappers know nothing of
 * it; as long as the run has never been paused they cost a load and a branch.
 *
 * A wait that is over too early is made again: at once where nothing can have been missed meanwhile, as what is waited for stays
 * (a lock, a semaphore, readiness, a message, a signal). A condition does not stay: see timed_cond.
 */
#include "pause.h"
#include "wrap_all.h"
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sysinfo.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <threads.h>

#define SECOND 1000000000ll
#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

static inline i64 ns_of(const struct timespec *ts)
{
	return (i64)ts->tv_sec * SECOND + ts->tv_nsec;
}

static inline struct timespec spec(i64 ns)
{
	struct timespec ts = {(time_t)(ns / SECOND), (long)(ns % SECOND)};
	return ts;
}

static inline int proper(const struct timespec *ts)
{
	return ts->tv_sec >= 0 && ts->tv_sec < 1ll << 33 && (u64)ts->tv_nsec < (u64)SECOND;
}

/* Clocks */

int shim_clock_index(clockid_t clk)
{
	switch (clk) {
	case CLOCK_REALTIME:
	case CLOCK_MONOTONIC:
	case CLOCK_REALTIME_COARSE:
	case CLOCK_MONOTONIC_COARSE:
	case CLOCK_REALTIME_ALARM:
	case CLOCK_TAI:
		return PROPHET_ClockMonotonic;
	case CLOCK_MONOTONIC_RAW:
		return PROPHET_ClockRaw;
	case CLOCK_BOOTTIME:
	case CLOCK_BOOTTIME_ALARM:
		return PROPHET_ClockBoot;
	default:
		return -1;
	}
}

u64 shim_clock_offset(clockid_t clk)
{
	int i = shim_clock_index(clk);
	u64 off = i < 0 ? 0 : __atomic_load_n(&shim_ctl.clocks[i].offset, __ATOMIC_RELAXED);
	switch (clk) {
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
	case CLOCK_REALTIME_ALARM:
	case CLOCK_TAI:
		return off + __atomic_load_n(&shim_ctl.realshift, __ATOMIC_RELAXED);
	default:
		return off;
	}
}

/* A coarse clock lags behind its fine one by up to a tick, and by another one after a pause: it could go back. */
static clockid_t finer(clockid_t clk)
{
	return clk == CLOCK_REALTIME_COARSE ? CLOCK_REALTIME : clk == CLOCK_MONOTONIC_COARSE ? CLOCK_MONOTONIC : clk;
}

int shim_clock_read(int (*real)(clockid_t, struct timespec *), clockid_t clk, struct timespec *ts)
{
	for (;;) {
		u32 p = __atomic_load_n(&shim_ctl.pause, __ATOMIC_ACQUIRE);
		u64 off = shim_clock_offset(clk);
		int r;
		if (p & 1 && !shim_self.off) {
			shim_park();
			continue;
		}
		r = real(off ? finer(clk) : clk, ts);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&shim_ctl.pause, __ATOMIC_RELAXED) != p && !shim_self.off)
			continue;
		if (r == 0 && off)
			*ts = spec(ns_of(ts) - (i64)off);
		return r;
	}
}

static int kernel_clock(clockid_t clk, struct timespec *ts)
{
	return (int)sys(SYS_clock_gettime, clk, ts);
}

static i64 now_ns(clockid_t clk)
{
	struct timespec ts = {0, 0};
	shim_clock_read(kernel_clock, clk, &ts);
	return ns_of(&ts);
}

/* As what is here needs no room in wrappers, each knows its real function by a variable. */
#define REALLY(name) static __typeof__(&name) really_##name

/* Whether the kernel's own answers are right: none of them fell into a pause or comes after one. */
#define PLAIN(CALL)                                                              \
	if (likely(!__atomic_load_n(&shim_ctl.pause, __ATOMIC_ACQUIRE))) {       \
		CALL;                                                            \
		if (likely(!__atomic_load_n(&shim_ctl.pause, __ATOMIC_ACQUIRE))) \
			return r;                                                \
	}

static i64 real_time(void)
{
	return now_ns(CLOCK_REALTIME);
}

REALLY(time);
static time_t v_time(time_t *t)
{
	time_t r;
	PLAIN(r = really_time(t))
	r = (time_t)(real_time() / SECOND);
	if (t)
		*t = r;
	return r;
}

REALLY(timespec_get);
static int v_timespec_get(struct timespec *ts, int base)
{
	int r;
	PLAIN(r = really_timespec_get(ts, base))
	r = really_timespec_get(ts, base);
	if (r == TIME_UTC)
		*ts = spec(real_time());
	return r;
}

REALLY(ftime);
static int v_ftime(struct timeb *tb)
{
	int r;
	i64 ns;
	PLAIN(r = really_ftime(tb))
	r = really_ftime(tb);
	ns = real_time();
	tb->time = (time_t)(ns / SECOND);
	tb->millitm = (unsigned short)(ns % SECOND / 1000000);
	return r;
}

REALLY(times);
static clock_t v_times(struct tms *buf)
{
	clock_t r;
	PLAIN(r = really_times(buf))
	r = really_times(buf);
	return r == (clock_t)-1 ? r : (clock_t)(((u64)now_ns(CLOCK_MONOTONIC) + shim_ctl.times) / 10000000u); /* USER_HZ is 100 */
}

REALLY(sysinfo);
static int v_sysinfo(struct sysinfo *info)
{
	int r;
	PLAIN(r = really_sysinfo(info))
	r = really_sysinfo(info);
	if (r == 0)
		info->uptime = (long)(now_ns(CLOCK_BOOTTIME) / SECOND);
	return r;
}

static void v_timeval(struct timeval *tv, int nano)
{
	i64 ns = real_time();
	tv->tv_sec = (time_t)(ns / SECOND);
	tv->tv_usec = (long)(nano ? ns % SECOND : ns % SECOND / 1000);
}

#define TIMEX(name)                                                 \
	REALLY(name);                                               \
	static int v_##name(struct timex *tx)                       \
	{                                                           \
		int r;                                              \
		PLAIN(r = really_##name(tx))                        \
		r = really_##name(tx);                              \
		if (r >= 0)                                         \
			v_timeval(&tx->time, tx->status &STA_NANO); \
		return r;                                           \
	}
TIMEX(adjtimex)
TIMEX(__adjtimex)
TIMEX(ntp_adjtime)

#define NTP(name)                                  \
	REALLY(name);                              \
	static int v_##name(struct ntptimeval *tv) \
	{                                          \
		int r;                             \
		PLAIN(r = really_##name(tv))       \
		r = really_##name(tv);             \
		if (r >= 0)                        \
			v_timeval(&tv->time, 0);   \
		return r;                          \
	}
NTP(ntp_gettime)
NTP(ntp_gettimex)

/* Whoever may set the clock sets what the program sees. */
REALLY(clock_settime);
static int v_clock_settime(clockid_t clk, const struct timespec *ts)
{
	u64 off = shim_clock_offset(clk);
	struct timespec real;
	if (likely(!off) || !shim_may_read(ts, sizeof *ts) || !proper(ts))
		return really_clock_settime(clk, ts);
	real = spec(ns_of(ts) + (i64)off);
	return really_clock_settime(clk, &real);
}

REALLY(settimeofday);
static int v_settimeofday(const struct timeval *tv, const struct timezone *tz)
{
	u64 off = shim_clock_offset(CLOCK_REALTIME);
	struct timeval real;
	if (likely(!off) || !tv || !shim_may_read(tv, sizeof *tv))
		return really_settimeofday(tv, tz);
	real = *tv;
	real.tv_usec += (long)(off / 1000 % 1000000);
	real.tv_sec += (time_t)(off / 1000000000u) + real.tv_usec / 1000000;
	real.tv_usec %= 1000000;
	return really_settimeofday(&real, tz);
}

/* Waits for a time from now. `left` is what of the timeout is to come, or less than 0: for ever. */

/* Where the thread's call is noted; NULL when it is not. A forked child that is not recorded has no slot. */
static struct slot *in_call(void)
{
	struct thr *t = shim_self.thr;
	return t && t->slot && t->slot->call ? t->slot : 0;
}

static u64 began(void)
{
	struct slot *s = in_call();
	return s ? s->begin : shim_moment();
}

/* What is left of a timeout in ns, not less than nothing; for ever stays. */
static i64 left_ns(u64 begin, i64 limit)
{
	i64 ran;
	if (limit < 0)
		return limit;
	ran = (i64)shim_ran_ns(begin);
	return ran < limit ? limit - ran : 0;
}

/* A call that returned (interrupted: EINTR; expired: its timeout) is to be made again, with what is left. Where it has expired
 * and nothing is left it stands. */
static int once_more(u64 begin, int interrupted, int expired, i64 limit, i64 *left)
{
	if (likely(!shim_unquiet()) || !shim_disturbed(begin) || !(interrupted || expired))
		return 0;
	*left = left_ns(begin, limit);
	return interrupted || *left;
}

/* The kernel counts poll's timeout in ms: more is better than less. */
static inline int in_ms(i64 ns)
{
	return ns < 0 ? -1 : (int)((ns + 999999) / 1000000);
}

#define POLL(name, PARAMS, ...)                                                                        \
	REALLY(name);                                                                                  \
	static LEAP int v_##name PARAMS                                                                \
	{                                                                                              \
		u64 begin = began();                                                                   \
		i64 limit = timeout < 0 ? -1 : timeout * 1000000ll, left;                              \
		int r = really_##name(__VA_ARGS__);                                                    \
		while (once_more(begin, r == -1 && errno == EINTR, r == 0 && timeout, limit, &left)) { \
			timeout = in_ms(left);                                                         \
			r = really_##name(__VA_ARGS__);                                                \
		}                                                                                      \
		return r;                                                                              \
	}

extern int __poll(struct pollfd *fds, nfds_t n, int timeout);
extern int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t room);
POLL(poll, (struct pollfd * fds, nfds_t n, int timeout), fds, n, timeout)
POLL(__poll, (struct pollfd * fds, nfds_t n, int timeout), fds, n, timeout)
POLL(__poll_chk, (struct pollfd * fds, nfds_t n, int timeout, size_t room), fds, n, timeout, room)
POLL(epoll_wait, (int fd, struct epoll_event *ev, int max, int timeout), fd, ev, max, timeout)
POLL(epoll_pwait, (int fd, struct epoll_event *ev, int max, int timeout, const sigset_t *mask), fd, ev, max, timeout, mask)

/* The same with a timespec that the kernel reads; ours takes its place only after a pause. NULL is for ever. */
#define SPEC(name, PARAMS, INTERRUPTED, EXPIRED, ...)                                     \
	REALLY(name);                                                                     \
	static int v_##name PARAMS                                                        \
	{                                                                                 \
		u64 begin = began();                                                      \
		struct timespec room;                                                     \
		i64 limit = -1, left;                                                     \
		int r = really_##name(__VA_ARGS__);                                       \
		if (likely(!shim_unquiet()) || (tmo && !shim_may_read(tmo, sizeof *tmo))) \
			return r;                                                         \
		if (tmo)                                                                  \
			limit = ns_of(tmo);                                               \
		while (once_more(begin, INTERRUPTED, EXPIRED, limit, &left)) {            \
			room = spec(left);                                                \
			if (tmo)                                                          \
				tmo = &room;                                              \
			r = really_##name(__VA_ARGS__);                                   \
		}                                                                         \
		return r;                                                                 \
	}

#define FAILED(what) (r == -1 && errno == (what))

extern int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *tmo, const sigset_t *mask, size_t room);
SPEC(ppoll, (struct pollfd * fds, nfds_t n, const struct timespec *tmo, const sigset_t *mask), FAILED(EINTR), r == 0 && limit, fds, n, tmo, mask)
SPEC(__ppoll_chk, (struct pollfd * fds, nfds_t n, const struct timespec *tmo, const sigset_t *mask, size_t size), FAILED(EINTR), r == 0 && limit, fds, n, tmo,
     mask, size)
SPEC(epoll_pwait2, (int fd, struct epoll_event *ev, int max, const struct timespec *tmo, const sigset_t *mask), FAILED(EINTR), r == 0 && limit, fd, ev, max,
     tmo, mask)
SPEC(semtimedop, (int id, struct sembuf *ops, size_t n, const struct timespec *tmo), FAILED(EINTR), FAILED(EAGAIN), id, ops, n, tmo)

/* Signals that are part of a pause are none to a thread that waits for signals. */
static int pauses_own(const siginfo_t *si)
{
	siginfo_t mine = *si;
	return shim_ctl.pause && shim_hidden_signal(si->si_signo, &mine);
}

/* Waits for a signal, with room for what the program does not want to know. */
static int wait_signal(__typeof__(&sigtimedwait) real, const sigset_t *set, siginfo_t *si, const struct timespec *tmo)
{
	u64 begin = began();
	struct timespec room;
	siginfo_t own;
	i64 limit = -1, left;
	int r = real(set, si ? si : &own, tmo);
	if (likely(!shim_unquiet()) || (tmo && !shim_may_read(tmo, sizeof *tmo)))
		return r;
	if (tmo)
		limit = ns_of(tmo);
	for (;;) {
		if (r > 0 && pauses_own(si ? si : &own))
			left = left_ns(begin, limit);
		else if (!once_more(begin, FAILED(EINTR), FAILED(EAGAIN), limit, &left))
			return r;
		room = spec(left);
		r = real(set, si ? si : &own, tmo ? &room : 0);
	}
}

REALLY(sigtimedwait);
static int v_sigtimedwait(const sigset_t *set, siginfo_t *si, const struct timespec *tmo)
{
	return wait_signal(really_sigtimedwait, set, si, tmo);
}

static __typeof__(&sigwaitinfo) really_sigwaitinfo;
static int for_ever(const sigset_t *set, siginfo_t *si, const struct timespec *tmo)
{
	(void)tmo;
	return really_sigwaitinfo(set, si);
}

static int v_sigwaitinfo(const sigset_t *set, siginfo_t *si)
{
	return wait_signal(for_ever, set, si, 0);
}

/* It does not say where a signal came from; it never fails with EINTR. */
REALLY(sigwait);
static int v_sigwait(const sigset_t *set, int *sig)
{
	u64 begin = began();
	int r = really_sigwait(set, sig);
	while (unlikely(shim_unquiet()) && r == 0 && (*sig == SIGCONT || *sig == SIGCHLD) && shim_disturbed(begin)) {
		siginfo_t si;
		if (*sig == SIGCHLD && shim_ctl.haltsof + 2 < shim_ctl.pause)
			break;
		shim_zero(&si, sizeof si);
		if (*sig == SIGCHLD && sys(SYS_waitid, P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT, 0) == 0 && si.si_pid)
			break;
		shim_timers_thaw();
		begin = shim_moment();
		r = really_sigwait(set, sig);
	}
	return r;
}

/* These return when a handler of the program has run, and only then. */
#define UNTIL_HANDLED(name, PARAMS, ...)                              \
	REALLY(name);                                                 \
	static int v_##name PARAMS                                    \
	{                                                             \
		u64 begin = began();                                  \
		i64 left;                                             \
		int r = really_##name(__VA_ARGS__);                   \
		while (once_more(begin, FAILED(EINTR), 0, -1, &left)) \
			r = really_##name(__VA_ARGS__);               \
		return r;                                             \
	}
UNTIL_HANDLED(pause, (void), )
UNTIL_HANDLED(sigsuspend, (const sigset_t *set), set)
UNTIL_HANDLED(__sigsuspend, (const sigset_t *set), set)
UNTIL_HANDLED(__sigpause, (int mask, int is_sig), mask, is_sig)
UNTIL_HANDLED(__xpg_sigpause, (int sig), sig)
UNTIL_HANDLED(semop, (int id, struct sembuf *ops, size_t n), id, ops, n)
UNTIL_HANDLED(msgsnd, (int id, const void *m, size_t n, int flags), id, m, n, flags)

static int (*really_sigpause)(int);
static int v_sigpause(int mask)
{
	u64 begin = began();
	i64 left;
	int r = really_sigpause(mask);
	while (once_more(begin, FAILED(EINTR), 0, -1, &left))
		r = really_sigpause(mask);
	return r;
}

REALLY(msgrcv);
static ssize_t v_msgrcv(int id, void *m, size_t n, long type, int flags)
{
	u64 begin = began();
	i64 left;
	ssize_t r = really_msgrcv(id, m, n, type, flags);
	while (once_more(begin, FAILED(EINTR), 0, -1, &left))
		r = really_msgrcv(id, m, n, type, flags);
	return r;
}

/* select writes what is left of the time into tmo, and its sets: those that were asked are kept for another call. The
 * sets of a call that expired or was interrupted are empty or untouched. */
typedef int (*select_fn)(int, fd_set *, fd_set *, fd_set *, struct timeval *);

struct sets {
	u64 words[3][FD_SETSIZE / 64];
	u32 n;
};

static void sets_keep(struct sets *k, int n, fd_set *const *s)
{
	u32 i;
	k->n = n <= 0 ? 0 : n > FD_SETSIZE ? FD_SETSIZE / 64 : ((u32)n + 63) / 64;
	for (i = 0; i < 3; i++)
		if (s[i] && shim_may_read(s[i], k->n * 8))
			shim_copy(k->words[i], s[i], k->n * 8);
		else if (s[i])
			k->n = 0;
}

static void sets_back(const struct sets *k, fd_set *const *s)
{
	u32 i;
	for (i = 0; i < 3; i++)
		if (s[i])
			shim_copy(s[i], k->words[i], k->n * 8);
}

static int selects(select_fn real, int n, fd_set *r, fd_set *w, fd_set *x, struct timeval *tmo)
{
	fd_set *const all[] = {r, w, x};
	struct sets kept;
	u64 begin = began();
	i64 limit = -1, left;
	int got;
	if (tmo && shim_may_read(tmo, sizeof *tmo))
		limit = (i64)tmo->tv_sec * SECOND + (i64)tmo->tv_usec * 1000;
	if (!limit || n > FD_SETSIZE)
		return real(n, r, w, x, tmo);
	sets_keep(&kept, n, all);
	got = real(n, r, w, x, tmo);
	while (once_more(begin, got == -1 && errno == EINTR, got == 0, limit, &left)) {
		sets_back(&kept, all);
		if (tmo) {
			tmo->tv_sec = (time_t)(left / SECOND);
			tmo->tv_usec = (long)(left % SECOND / 1000);
		}
		got = real(n, r, w, x, tmo);
	}
	if (unlikely(shim_unquiet()) && tmo && got >= 0 && limit > 0 && got) {
		left = left_ns(begin, limit);
		tmo->tv_sec = (time_t)(left / SECOND);
		tmo->tv_usec = (long)(left % SECOND / 1000);
	}
	return got;
}

extern int __select(int n, fd_set *r, fd_set *w, fd_set *x, struct timeval *tmo);
static select_fn really_select, really___select;
static int v_select(int n, fd_set *r, fd_set *w, fd_set *x, struct timeval *tmo)
{
	return selects(really_select, n, r, w, x, tmo);
}

static int v___select(int n, fd_set *r, fd_set *w, fd_set *x, struct timeval *tmo)
{
	return selects(really___select, n, r, w, x, tmo);
}

REALLY(pselect);
static int v_pselect(int n, fd_set *r, fd_set *w, fd_set *x, const struct timespec *tmo, const sigset_t *mask)
{
	fd_set *const all[] = {r, w, x};
	struct sets kept;
	struct timespec room;
	u64 begin = began();
	i64 limit = -1, left;
	int got;
	if (tmo && shim_may_read(tmo, sizeof *tmo))
		limit = ns_of(tmo);
	if (!limit || n > FD_SETSIZE)
		return really_pselect(n, r, w, x, tmo, mask);
	sets_keep(&kept, n, all);
	got = really_pselect(n, r, w, x, tmo, mask);
	while (once_more(begin, got == -1 && errno == EINTR, got == 0, limit, &left)) {
		sets_back(&kept, all);
		room = spec(left);
		got = really_pselect(n, r, w, x, tmo ? &room : 0, mask);
	}
	return got;
}

/* Sleeps. The kernel's are over when its own clock says so; one that a handler broke off says how long was left. */

static int nap(i64 ns, struct timespec *left)
{
	struct timespec ts = spec(ns);
	return (int)-sys(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ts, left);
}

/* r: 0, or EINTR. What is left in the end, 0 when it has slept it all. */
static i64 slept(u64 begin, int r, i64 limit)
{
	i64 left;
	while (once_more(begin, r == EINTR, r == 0, limit, &left) && left > 0)
		r = nap(left, 0);
	return r == EINTR ? left_ns(begin, limit) : 0;
}

static int broke_off(u64 begin, int r, const struct timespec *ts, struct timespec *left)
{
	i64 rest;
	if (likely(!shim_unquiet()) || (r != 0 && r != EINTR))
		return r;
	rest = slept(begin, r, ns_of(ts));
	if (!rest)
		return 0;
	if (left)
		*left = spec(rest);
	return EINTR;
}

static int finish_errno(int r)
{
	if (!r)
		return 0;
	errno = r;
	return -1;
}

/* ts and left may be the same. */
#define NANOSLEEP(name)                                                             \
	REALLY(name);                                                               \
	static int v_##name(const struct timespec *ts, struct timespec *left)       \
	{                                                                           \
		u64 begin = began();                                                \
		struct timespec whole = {0, 0};                                     \
		int r;                                                              \
		if (ts && shim_may_read(ts, sizeof *ts))                            \
			whole = *ts;                                                \
		r = really_##name(ts, left);                                        \
		if (likely(!shim_unquiet()))                                        \
			return r;                                                   \
		return finish_errno(broke_off(begin, r ? errno : 0, &whole, left)); \
	}
NANOSLEEP(nanosleep)
extern int __nanosleep(const struct timespec *ts, struct timespec *left);
NANOSLEEP(__nanosleep)

static const struct timespec *real_until(clockid_t clk, const struct timespec *until, struct timespec *room);
static int early(clockid_t clk, const struct timespec *until);

REALLY(clock_nanosleep);
static int v_clock_nanosleep(clockid_t clk, int flags, const struct timespec *ts, struct timespec *left)
{
	u64 begin = began();
	struct timespec whole = {0, 0}, room;
	int r;
	if (shim_clock_index(clk) < 0 || !ts || !shim_may_read(ts, sizeof *ts))
		return really_clock_nanosleep(clk, flags, ts, left);
	whole = *ts;
	if (!(flags & TIMER_ABSTIME)) {
		r = really_clock_nanosleep(clk, flags, ts, left);
		return likely(!shim_unquiet()) ? r : broke_off(begin, r, &whole, left);
	}
	do
		r = really_clock_nanosleep(clk, flags, real_until(clk, &whole, &room), left);
	while (unlikely(shim_unquiet()) && shim_disturbed(begin) && (r == EINTR || (r == 0 && early(clk, &whole))));
	return r;
}

REALLY(sleep);
static unsigned v_sleep(unsigned s)
{
	u64 begin = began();
	unsigned r = really_sleep(s);
	if (likely(!shim_unquiet()))
		return r;
	return (unsigned)(slept(begin, r ? EINTR : 0, (i64)s * SECOND) / SECOND);
}

REALLY(usleep);
static int v_usleep(useconds_t us)
{
	u64 begin = began();
	int r = really_usleep(us);
	if (likely(!shim_unquiet()) || (r && errno != EINTR))
		return r;
	return finish_errno(slept(begin, r ? EINTR : 0, (i64)us * 1000) ? EINTR : 0);
}

REALLY(thrd_sleep);
static int v_thrd_sleep(const struct timespec *ts, struct timespec *left)
{
	u64 begin = began();
	struct timespec whole = *ts;
	int r = really_thrd_sleep(ts, left);
	if (likely(!shim_unquiet()) || r < -1)
		return r;
	return broke_off(begin, r ? EINTR : 0, &whole, left) ? -1 : 0;
}

/* Waits until a time: the kernel's clock stands at that time + offset. The program's pointer is passed on where
 * nothing has to be added. */

static const struct timespec *real_until(clockid_t clk, const struct timespec *until, struct timespec *room)
{
	u64 off;
	if (likely(!shim_unquiet()))
		return until;
	shim_park();
	off = shim_clock_offset(clk);
	if (!off || !until || !shim_may_read(until, sizeof *until) || !proper(until))
		return until;
	*room = spec(ns_of(until) + (i64)off);
	return room;
}

static int early(clockid_t clk, const struct timespec *until)
{
	return shim_clock_index(clk) >= 0 && until && shim_may_read(until, sizeof *until) && proper(until) && now_ns(clk) < ns_of(until);
}

static int until_more(u64 begin, int interrupted, int expired, clockid_t clk, const struct timespec *until)
{
	if (likely(!shim_unquiet()) || !shim_disturbed(begin))
		return 0;
	return interrupted || (expired && early(clk, until));
}

#define UNTIL(TYPE, name, CLOCK, PARAMS, INTERRUPTED, EXPIRED, ...)              \
	REALLY(name);                                                            \
	static TYPE v_##name PARAMS                                              \
	{                                                                        \
		u64 begin = began();                                             \
		struct timespec room;                                            \
		const struct timespec *asked = until;                            \
		TYPE r;                                                          \
		do {                                                             \
			until = real_until(CLOCK, asked, &room);                 \
			r = really_##name(__VA_ARGS__);                          \
		} while (until_more(begin, INTERRUPTED, EXPIRED, CLOCK, asked)); \
		return r;                                                        \
	}

typedef const struct timespec *until_t;
#define LATE (r == ETIMEDOUT)
UNTIL(int, pthread_mutex_timedlock, CLOCK_REALTIME, (pthread_mutex_t * m, until_t until), 0, LATE, m, until)
UNTIL(int, pthread_mutex_clocklock, clk, (pthread_mutex_t * m, clockid_t clk, until_t until), 0, LATE, m, clk, until)
UNTIL(int, pthread_rwlock_timedrdlock, CLOCK_REALTIME, (pthread_rwlock_t * l, until_t until), 0, LATE, l, until)
UNTIL(int, pthread_rwlock_timedwrlock, CLOCK_REALTIME, (pthread_rwlock_t * l, until_t until), 0, LATE, l, until)
UNTIL(int, pthread_rwlock_clockrdlock, clk, (pthread_rwlock_t * l, clockid_t clk, until_t until), 0, LATE, l, clk, until)
UNTIL(int, pthread_rwlock_clockwrlock, clk, (pthread_rwlock_t * l, clockid_t clk, until_t until), 0, LATE, l, clk, until)
UNTIL(int, sem_timedwait, CLOCK_REALTIME, (sem_t * s, until_t until), FAILED(EINTR), FAILED(ETIMEDOUT), s, until)
UNTIL(int, sem_clockwait, clk, (sem_t * s, clockid_t clk, until_t until), FAILED(EINTR), FAILED(ETIMEDOUT), s, clk, until)
UNTIL(int, pthread_timedjoin_np, CLOCK_REALTIME, (pthread_t th, void **value, until_t until), 0, LATE, th, value, until)
UNTIL(int, pthread_clockjoin_np, clk, (pthread_t th, void **value, clockid_t clk, until_t until), 0, LATE, th, value, clk, until)
UNTIL(int, mq_timedsend, CLOCK_REALTIME, (mqd_t q, const char *m, size_t n, unsigned prio, until_t until), FAILED(EINTR), FAILED(ETIMEDOUT), q, m, n, prio,
      until)
UNTIL(ssize_t, mq_timedreceive, CLOCK_REALTIME, (mqd_t q, char *m, size_t n, unsigned *prio, until_t until), FAILED(EINTR), FAILED(ETIMEDOUT), q, m, n, prio,
      until)
UNTIL(int, mtx_timedlock, CLOCK_REALTIME, (mtx_t * m, until_t until), 0, r == thrd_timedout, m, until)
UNTIL_HANDLED(sem_wait, (sem_t * s), s)

/* A wait for a condition that ended too early has left the queue of waiters: a signal that came before the next wait
 * is lost to it. How many there were is the condition's order, which a signal raises before it is sent: when it has
 * changed, or is not known, the program is woken as by chance, which POSIX allows. Otherwise we wait in short steps and look after each,
 * as one may come between the look and the wait. */
#define COND_STEP 2000000ll
#define COND_STEP_MAX 10000000ll

static u64 cond_count(const void *c)
{
	return in_call() && shim_ctl.level & 1u << CLASS_sync ? shim_object(shim_self.thr, PROPHET_ObjCond, c)->seq + 1 : 0;
}

typedef int (*cond_fn)(void *c, void *m, clockid_t clk, const struct timespec *until);

static int timed_cond(cond_fn real, void *c, void *m, clockid_t clk, const struct timespec *until, int expired)
{
	u64 begin = began(), count = cond_count(c);
	struct timespec room;
	i64 step = COND_STEP;
	int r = real(c, m, clk, real_until(clk, until, &room));
	while (until_more(begin, 0, r == expired, clk, until)) {
		i64 now, end;
		struct timespec at;
		if (!count || cond_count(c) != count)
			return 0;
		now = now_ns(clk);
		end = ns_of(until);
		if (end > now + step)
			end = now + step;
		if (step < COND_STEP_MAX)
			step *= 2;
		at = spec(end);
		r = real(c, m, clk, real_until(clk, &at, &room));
	}
	return r;
}

REALLY(pthread_cond_timedwait);
static int by_timedwait(void *c, void *m, clockid_t clk, const struct timespec *until)
{
	(void)clk;
	return really_pthread_cond_timedwait(c, m, until);
}

static int v_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)
{
	/* The clock that pthread_condattr_setclock chose stands in the condition. */
	clockid_t clk = __atomic_load_n(&c->__data.__wrefs, __ATOMIC_RELAXED) & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
	return timed_cond(by_timedwait, c, m, clk, until, ETIMEDOUT);
}

REALLY(pthread_cond_clockwait);
static int by_clockwait(void *c, void *m, clockid_t clk, const struct timespec *until)
{
	return really_pthread_cond_clockwait(c, m, clk, until);
}

static int v_pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clk, const struct timespec *until)
{
	return timed_cond(by_clockwait, c, m, clk, until, ETIMEDOUT);
}

REALLY(cnd_timedwait);
static int by_cnd(void *c, void *m, clockid_t clk, const struct timespec *until)
{
	(void)clk;
	return really_cnd_timedwait(c, m, until);
}

static int v_cnd_timedwait(cnd_t *c, mtx_t *m, const struct timespec *until)
{
	return timed_cond(by_cnd, c, m, CLOCK_REALTIME, until, thrd_timedout);
}

/* Children: that a pause stopped one and let it go on is not told. */

static int told_of_halt(u32 pid, int stopped)
{
	static u32 told[PROPHET_HaltsMax]; /* the pause whose end was kept from the program already */
	int i = shim_halts(pid);
	u32 of = shim_ctl.haltsof;
	if (stopped)
		return i != 0;
	return i && __atomic_exchange_n(&told[i - 1], of, __ATOMIC_RELAXED) != of;
}

static int of_pause(int r, int status)
{
	if (likely(!shim_unquiet()) || r <= 0)
		return 0;
	shim_park();
	return (WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP && told_of_halt((u32)r, 1)) || (WIFCONTINUED(status) && told_of_halt((u32)r, 0));
}

#define WAIT(name, PARAMS, ...)                                                                        \
	REALLY(name);                                                                                  \
	static pid_t v_##name PARAMS                                                                   \
	{                                                                                              \
		u64 begin = began();                                                                   \
		int own = 0, r;                                                                        \
		i64 left;                                                                              \
		if (!st)                                                                               \
			st = &own;                                                                     \
		do                                                                                     \
			r = really_##name(__VA_ARGS__);                                                \
		while (of_pause(r, r > 0 ? *st : 0) || once_more(begin, FAILED(EINTR), 0, -1, &left)); \
		return r;                                                                              \
	}
WAIT(wait, (int *st), st)
WAIT(__wait, (int *st), st)
WAIT(waitpid, (pid_t pid, int *st, int options), pid, st, options)
WAIT(__waitpid, (pid_t pid, int *st, int options), pid, st, options)
WAIT(wait3, (int *st, int options, struct rusage *u), st, options, u)
WAIT(wait4, (pid_t pid, int *st, int options, struct rusage *u), pid, st, options, u)

REALLY(waitid);
static int v_waitid(idtype_t kind, id_t id, siginfo_t *si, int options)
{
	u64 begin = began();
	siginfo_t own;
	i64 left;
	int r;
	shim_zero(&own, sizeof own);
	if (!si)
		si = &own;
	do
		r = really_waitid(kind, id, si, options);
	while ((unlikely(shim_unquiet()) && r == 0 && !(options & WNOWAIT) && si->si_pid &&
		((si->si_code == CLD_STOPPED && si->si_status == SIGSTOP && told_of_halt((u32)si->si_pid, 1)) ||
		 (si->si_code == CLD_CONTINUED && told_of_halt((u32)si->si_pid, 0)))) ||
	       once_more(begin, FAILED(EINTR), 0, -1, &left));
	return r;
}

/* System calls that the program makes itself. */

/* A wait on a futex: FUTEX_WAIT has a time from now, the others one of a clock. A wake-up is never lost to one that is
 * made again, as the word has changed then. */
static long futex_wait(syscall_fn real, const long *a, u32 op)
{
	u64 begin = began();
	const struct timespec *tmo = (const struct timespec *)a[3];
	clockid_t clk = op == FUTEX_LOCK_PI || a[1] & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
	struct timespec room;
	i64 limit = -1, left;
	long r;
	if (op != FUTEX_WAIT) {
		do
			r = real(SYS_futex, a[0], a[1], a[2], real_until(clk, tmo, &room), a[4], a[5]);
		while (until_more(begin, FAILED(EINTR), FAILED(ETIMEDOUT), clk, tmo));
		return r;
	}
	r = real(SYS_futex, a[0], a[1], a[2], tmo, a[4], a[5]);
	if (likely(!shim_unquiet()) || (tmo && !shim_may_read(tmo, sizeof *tmo)))
		return r;
	if (tmo)
		limit = ns_of(tmo);
	while (once_more(begin, FAILED(EINTR), FAILED(ETIMEDOUT), limit, &left)) {
		room = spec(left);
		r = real(SYS_futex, a[0], a[1], a[2], tmo ? &room : 0, a[4], a[5]);
	}
	return r;
}

static int kernel_clock_errno(clockid_t clk, struct timespec *ts)
{
	return (int)shim_asked(sys(SYS_clock_gettime, clk, ts));
}

long shim_virtual_syscall(syscall_fn real, long n, const long *a)
{
	u32 op = (u32)a[1] & FUTEX_CMD_MASK;
	if (n == SYS_futex && (op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET || op == FUTEX_LOCK_PI || op == FUTEX_LOCK_PI2 || op == FUTEX_WAIT_REQUEUE_PI))
		return futex_wait(real, a, op);
	if (unlikely(shim_replays)) /* from the trace */
		return real(n, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (unlikely(shim_unquiet())) {
		struct timespec ts;
		switch (n) {
		case SYS_clock_gettime:
			return shim_clock_read(kernel_clock_errno, (clockid_t)a[0], (struct timespec *)a[1]);
		case SYS_gettimeofday:
			if (!shim_may_read((void *)a[0], sizeof(struct timeval)) || a[1])
				break;
			shim_clock_read(kernel_clock_errno, CLOCK_REALTIME, &ts);
			*(struct timeval *)a[0] = (struct timeval){ts.tv_sec, ts.tv_nsec / 1000};
			return 0;
#ifdef SYS_time
		case SYS_time:
			if (a[0] && !shim_may_read((void *)a[0], sizeof(time_t)))
				break;
			shim_clock_read(kernel_clock_errno, CLOCK_REALTIME_COARSE, &ts);
			if (a[0])
				*(time_t *)a[0] = ts.tv_sec;
			return ts.tv_sec;
#endif
		}
	}
	if (n == SYS_nanosleep)
		return ((__typeof__(&v_nanosleep))shim_real(CALL_nanosleep))((const struct timespec *)a[0], (struct timespec *)a[1]);
	if (n == SYS_clock_nanosleep) {
		int r = ((__typeof__(&v_clock_nanosleep))shim_real(CALL_clock_nanosleep))((clockid_t)a[0], (int)a[1], (const struct timespec *)a[2],
											  (struct timespec *)a[3]);
		return r ? finish_errno(r) : 0;
	}
	return real(n, a[0], a[1], a[2], a[3], a[4], a[5]);
}

#define STAND_IN(name)                \
	case CALL_##name:             \
		really_##name = real; \
		return v_##name;

void *shim_virtual(u32 call, void *real)
{
	switch (call) {
		STAND_IN(time)
		STAND_IN(timespec_get)
		STAND_IN(ftime)
		STAND_IN(times)
		STAND_IN(sysinfo)
		STAND_IN(adjtimex)
		STAND_IN(__adjtimex)
		STAND_IN(ntp_adjtime)
		STAND_IN(ntp_gettime)
		STAND_IN(ntp_gettimex)
		STAND_IN(clock_settime)
		STAND_IN(settimeofday)
		STAND_IN(poll)
		STAND_IN(__poll)
		STAND_IN(__poll_chk)
		STAND_IN(ppoll)
		STAND_IN(__ppoll_chk)
		STAND_IN(epoll_wait)
		STAND_IN(epoll_pwait)
		STAND_IN(epoll_pwait2)
		STAND_IN(select)
		STAND_IN(__select)
		STAND_IN(pselect)
		STAND_IN(semop)
		STAND_IN(semtimedop)
		STAND_IN(msgsnd)
		STAND_IN(msgrcv)
		STAND_IN(sigtimedwait)
		STAND_IN(sigwaitinfo)
		STAND_IN(sigwait)
		STAND_IN(pause)
		STAND_IN(sigsuspend)
		STAND_IN(__sigsuspend)
		STAND_IN(__sigpause)
		STAND_IN(__xpg_sigpause)
		STAND_IN(sigpause)
		STAND_IN(nanosleep)
		STAND_IN(__nanosleep)
		STAND_IN(clock_nanosleep)
		STAND_IN(sleep)
		STAND_IN(usleep)
		STAND_IN(thrd_sleep)
		STAND_IN(pthread_mutex_timedlock)
		STAND_IN(pthread_mutex_clocklock)
		STAND_IN(mtx_timedlock)
		STAND_IN(pthread_rwlock_timedrdlock)
		STAND_IN(pthread_rwlock_timedwrlock)
		STAND_IN(pthread_rwlock_clockrdlock)
		STAND_IN(pthread_rwlock_clockwrlock)
		STAND_IN(sem_wait)
		STAND_IN(sem_timedwait)
		STAND_IN(sem_clockwait)
		STAND_IN(pthread_timedjoin_np)
		STAND_IN(pthread_clockjoin_np)
		STAND_IN(mq_timedsend)
		STAND_IN(mq_timedreceive)
		STAND_IN(pthread_cond_timedwait)
		STAND_IN(pthread_cond_clockwait)
		STAND_IN(cnd_timedwait)
		STAND_IN(wait)
		STAND_IN(__wait)
		STAND_IN(waitpid)
		STAND_IN(__waitpid)
		STAND_IN(wait3)
		STAND_IN(wait4)
		STAND_IN(waitid)
	default:
		return shim_timers_virtual(call, real);
	}
}

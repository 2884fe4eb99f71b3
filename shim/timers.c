/* The program's timers in virtual time: while a pause is in force they stand still, each with the time that it has left.
 *
 * Whoever parks first stops the timers of its process, whoever goes on first starts them. A process none of whose
 * threads parks, as they compute or wait, is asked to by SIGCONT: for that a handler of ours is put in place of
 * SIGCONT's default, which does nothing, when the program sets its first timer; a handler of the program's own is used where it
 * has one. A program whose own timers send SIGCONT keeps the default: a handler could be run without an end. Timers of CPU
 * time stand still by themselves.
 *
 * Timers are stopped a moment after virtual time was, and count what they ran meanwhile as not run; one that expires in
 * that moment has expired.
 */
#include "pause.h"
#include "wrap_all.h"
#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#ifndef TFD_IOC_SET_TICKS
#define TFD_IOC_SET_TICKS _IOW('T', 0, u64)
#endif

#define TIMERS 128

static struct {
	u32 pid, used, frozen, n, nfds;
	u32 conts; /* a timer of the program sends SIGCONT */
	struct itimerval real; /* ITIMER_REAL: what was left */
	struct timer {
		timer_t id;
		clockid_t clk;
		struct itimerspec left;
	} timer[TIMERS];
	struct timerfd {
		int fd;
		struct itimerspec left;
	} fd[TIMERS];
} timers;

u32 shim_guarded; /* our handler of SIGCONT has run: calls may have been interrupted by it */

static __typeof__(&timer_settime) really_timer_settime;
static __typeof__(&timer_create) really_timer_create;
static __typeof__(&timer_delete) really_timer_delete;
static __typeof__(&timerfd_settime) really_timerfd_settime;
static __typeof__(&setitimer) really_setitimer;
static __typeof__(&alarm) really_alarm;
static __typeof__(&ualarm) really_ualarm;

static void guard(int sig, siginfo_t *si, void *context)
{
	(void)context;
	shim_guarded = 1;
	if (!shim_hidden_signal(sig, si) && shim_self.thr)
		shim_self.thr->hidden = shim_moment();
}

int shim_timers_guard(const void *handler)
{
	return handler == (const void *)(u64)guard;
}

void shim_timers_guarded(void)
{
	struct sigaction a;
	if (!timers.used || timers.conts || REAL(sigaction)(SIGCONT, 0, &a) != 0 || a.sa_handler != SIG_DFL)
		return;
	shim_zero(&a, sizeof a);
	a.sa_sigaction = guard;
	a.sa_flags = SA_SIGINFO | SA_RESTART;
	REAL(sigaction)(SIGCONT, &a, 0);
}

/* The program sets a timer. A forked child has none, but its parent's timerfds. */
static void use(void)
{
	int err = errno;
	u32 pid = shim_run.pid;
	if (likely(timers.pid == pid && timers.used))
		return;
	if (shim_run.state != RUN_ON || shim_self.off || !shim_wiped->alive || (shim_self.thr && shim_in_vfork(shim_self.thr)))
		return;
	timers.pid = pid;
	timers.n = 0;
	timers.frozen = 0;
	timers.used = 1;
	timers.conts = 0;
	shim_timers_guarded();
	errno = err;
}

static void unguard(void)
{
	struct sigaction a;
	timers.conts = 1;
	if (REAL(sigaction)(SIGCONT, 0, &a) != 0 || !shim_timers_guard((const void *)a.sa_sigaction))
		return;
	shim_zero(&a, sizeof a);
	REAL(sigaction)(SIGCONT, &a, 0);
}

static i64 mono(void)
{
	struct timespec ts = {0, 0};
	sys(SYS_clock_gettime, CLOCK_MONOTONIC, &ts);
	return (i64)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* A timer that has something left gets ns more, or less, but stays one that is to come. */
static void adjust(struct timespec *left, i64 ns)
{
	i64 sum = (i64)left->tv_sec * 1000000000 + left->tv_nsec;
	if (!sum)
		return;
	sum = sum + ns > 0 ? sum + ns : 1;
	left->tv_sec = (time_t)(sum / 1000000000);
	left->tv_nsec = (long)(sum % 1000000000);
}

static void adjust_all(i64 ns)
{
	struct timespec ts = {timers.real.it_value.tv_sec, timers.real.it_value.tv_usec * 1000};
	u32 i;
	adjust(&ts, ns);
	timers.real.it_value.tv_sec = ts.tv_sec;
	timers.real.it_value.tv_usec = (ts.tv_nsec + 999) / 1000;
	if (timers.real.it_value.tv_usec == 1000000) {
		timers.real.it_value.tv_sec++;
		timers.real.it_value.tv_usec = 0;
	}
	for (i = 0; i < timers.n; i++)
		adjust(&timers.timer[i].left.it_value, ns);
	for (i = 0; i < timers.nfds; i++)
		adjust(&timers.fd[i].left.it_value, ns);
}

static int none(const struct itimerspec *t)
{
	return !t->it_value.tv_sec && !t->it_value.tv_nsec;
}

/* A number that the kernel tells of a timerfd. */
static u64 fd_info(int fd, const char *field)
{
	char at[64], b[512];
	struct text t;
	long f, n, i;
	shim_text(&t, at, sizeof at);
	shim_put(&t, "/proc/self/fdinfo/");
	shim_putd(&t, fd);
	f = sys(SYS_openat, -100, at, 02000000 /* O_RDONLY | O_CLOEXEC */, 0);
	if (f < 0)
		return 0;
	n = sys(SYS_read, f, b, sizeof b - 1);
	sys(SYS_close, f);
	b[n > 0 ? n : 0] = 0;
	for (i = 0; i < n; i++)
		if (shim_starts(b + i, field))
			return shim_parse(b + i + shim_len(field), 0);
	return 0;
}

/* Sets a timerfd, which forgets the expirations that nobody has read: these are put back. A kernel that cannot do that
 * keeps such a timerfd as it is. */
static long fd_set_again(int fd, const struct itimerspec *set, struct itimerspec *old)
{
	struct pollfd p = {fd, POLLIN, 0};
	struct timespec now = {0, 0};
	u64 ticks = sys(SYS_ppoll, &p, 1, &now, 0, 8) > 0 ? fd_info(fd, "\nticks: ") : 0;
	long r;
	if (ticks && sys(SYS_ioctl, fd, TFD_IOC_SET_TICKS, &ticks) != 0)
		return -ENOTTY;
	r = sys(SYS_timerfd_settime, fd, 0, set, old);
	if (r == 0 && ticks)
		sys(SYS_ioctl, fd, TFD_IOC_SET_TICKS, &ticks);
	return r;
}

/* Virtual time has stopped a moment before. What the program may have changed meanwhile is the kernel's to know: a timer that is no longer there is an error. */
static void freeze(void)
{
	static const struct itimerval off;
	static const struct itimerspec stop;
	u32 i;
	if (sys(SYS_setitimer, ITIMER_REAL, &off, &timers.real) != 0)
		shim_zero(&timers.real, sizeof timers.real);
	for (i = 0; i < timers.n; i++)
		if (shim_clock_index(timers.timer[i].clk) < 0 || really_timer_settime(timers.timer[i].id, 0, &stop, &timers.timer[i].left) != 0)
			shim_zero(&timers.timer[i].left, sizeof stop);
	for (i = 0; i < timers.nfds; i++) {
		long r;
		shim_zero(&timers.fd[i].left, sizeof stop);
		r = fd_set_again(timers.fd[i].fd, &stop, &timers.fd[i].left);
		if (r == -EINVAL || r == -EBADF)
			timers.fd[i--] = timers.fd[--timers.nfds]; /* it is something else by now */
	}
	if (shim_ctl.clocks[PROPHET_ClockMonotonic].stop)
		adjust_all(mono() - (i64)shim_ctl.clocks[PROPHET_ClockMonotonic].stop);
}

/* And it goes on since a moment. */
static void thaw(void)
{
	const struct vclock *v = &shim_ctl.clocks[PROPHET_ClockMonotonic];
	u32 i;
	if (v->stop)
		adjust_all((i64)(v->stop - v->was) - (mono() - (i64)v->offset));
	if (timers.real.it_value.tv_sec || timers.real.it_value.tv_usec)
		sys(SYS_setitimer, ITIMER_REAL, &timers.real, 0);
	for (i = 0; i < timers.n; i++)
		if (!none(&timers.timer[i].left))
			really_timer_settime(timers.timer[i].id, 0, &timers.timer[i].left, 0);
	for (i = 0; i < timers.nfds; i++)
		if (!none(&timers.fd[i].left))
			fd_set_again(timers.fd[i].fd, &timers.fd[i].left, 0);
}

static int ours(void)
{
	return timers.used && timers.pid == (u32)sys(SYS_getpid) && shim_wiped && shim_wiped->alive;
}

void shim_timers_freeze(void)
{
	int err = errno;
	if (likely(!timers.used) || !ours())
		return;
	shim_lock(&shim_wiped->timers);
	if (!timers.frozen && shim_paused()) {
		freeze();
		timers.frozen = 1;
	}
	shim_unlock(&shim_wiped->timers);
	errno = err;
}

void shim_timers_thaw(void)
{
	int err = errno;
	if (likely(!timers.used) || !timers.frozen || !ours())
		return;
	shim_lock(&shim_wiped->timers);
	if (timers.frozen && !shim_paused()) {
		timers.frozen = 0;
		thaw();
	}
	shim_unlock(&shim_wiped->timers);
	errno = err;
}

/* A program that was executed has its predecessor's alarm. */
void shim_timers_boot(void)
{
	struct itimerval left;
	if (sys(SYS_getitimer, ITIMER_REAL, &left) == 0 && (left.it_value.tv_sec || left.it_value.tv_usec))
		use();
}

static int v_setitimer(__itimer_which_t which, const struct itimerval *set, struct itimerval *old)
{
	if (which == ITIMER_REAL && set)
		use();
	return really_setitimer(which, set, old);
}

static unsigned v_alarm(unsigned seconds)
{
	if (seconds)
		use();
	return really_alarm(seconds);
}

static useconds_t v_ualarm(useconds_t us, useconds_t interval)
{
	use();
	return really_ualarm(us, interval);
}

#define FIRES (1u << 16)

/* Threads that timers start (SIGEV_THREAD) begin here, so that they are known whatever they call, and of which timer each is. */
static struct fires {
	void (*fn)(union sigval);
	union sigval v;
} * fires;
static u32 nfires, fires_pid; /* fires_pid: a forked child has none of its parent's timers */

static void fired(union sigval v)
{
	struct fires *f = v.sival_ptr;
	shim_thread_fired((u32)(f - fires) + 1, f->fn, f->v);
}

/* Timers beyond the table's room start threads that are found at their first call. */
struct sigevent *shim_timer_threads(struct sigevent *sev, struct sigevent *room)
{
	long p;
	u32 n;
	if (!sev || shim_run.state != RUN_ON || shim_self.off || !shim_may_read(sev, sizeof *sev) || sev->sigev_notify != SIGEV_THREAD)
		return sev;
	if (!fires) {
		struct fires *none = 0;
		p = sys(SYS_mmap, 0, FIRES * sizeof *fires, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p < 0 && p > -4096)
			return sev;
		if (!__atomic_compare_exchange_n(&fires, &none, (struct fires *)p, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			sys(SYS_munmap, p, FIRES * sizeof *fires);
	}
	if (fires_pid != shim_run.pid) {
		fires_pid = shim_run.pid;
		nfires = 0;
	}
	n = __atomic_fetch_add(&nfires, 1, __ATOMIC_RELAXED);
	if (n >= FIRES)
		return sev;
	fires[n].fn = sev->sigev_notify_function;
	fires[n].v = sev->sigev_value;
	if (fires[n].fn == fired)
		fires[n] = *(struct fires *)sev->sigev_value.sival_ptr; /* a control block that is used again */
	*room = *sev;
	room->sigev_notify_function = fired;
	room->sigev_value.sival_ptr = &fires[n];
	return room;
}

void shim_timer_not_made(const struct sigevent *sev, const struct sigevent *room)
{
	if (sev == room)
		__atomic_sub_fetch(&nfires, 1, __ATOMIC_RELAXED);
}

void shim_timer_restore(struct sigevent *sev)
{
	if (sev->sigev_notify == SIGEV_THREAD && sev->sigev_notify_function == fired) {
		struct fires *f = sev->sigev_value.sival_ptr;
		sev->sigev_notify_function = f->fn;
		sev->sigev_value = f->v;
	}
}

int shim_timer_fire(u32 nth)
{
	if (!fires || nth > __atomic_load_n(&nfires, __ATOMIC_RELAXED))
		return 0;
	shim_thread_fired(nth, fires[nth - 1].fn, fires[nth - 1].v);
	return 1;
}

static int v_timer_create(clockid_t clk, struct sigevent *sev, timer_t *id)
{
	struct sigevent room, *mine = shim_timer_threads(sev, &room);
	int r = really_timer_create(clk, mine, id);
	if (r != 0)
		shim_timer_not_made(mine, &room);
	if (r == 0) {
		shim_real(CALL_timer_settime); /* the handler of SIGCONT needs it */
		use();
		if (sev && (sev->sigev_notify == SIGEV_SIGNAL || sev->sigev_notify == SIGEV_THREAD_ID) && sev->sigev_signo == SIGCONT)
			unguard();
		shim_lock(&shim_wiped->timers);
		if (timers.n < TIMERS) {
			timers.timer[timers.n].id = *id;
			timers.timer[timers.n].clk = clk;
			shim_zero(&timers.timer[timers.n].left, sizeof timers.timer[0].left);
			timers.n++;
		}
		shim_unlock(&shim_wiped->timers);
	}
	return r;
}

static struct timer *timer_of(timer_t id)
{
	u32 i;
	for (i = 0; i < timers.n; i++)
		if (timers.timer[i].id == id)
			return &timers.timer[i];
	return 0;
}

static int v_timer_delete(timer_t id)
{
	struct timer *t;
	shim_lock(&shim_wiped->timers);
	t = timer_of(id);
	if (t)
		*t = timers.timer[--timers.n];
	shim_unlock(&shim_wiped->timers);
	return really_timer_delete(id);
}

/* A time of virtual time, as the kernel's clock will show it then. */
static const struct itimerspec *real_set(clockid_t clk, const struct itimerspec *set, struct itimerspec *room)
{
	u64 off = shim_clock_offset(clk), ns;
	if (!off || !set || !shim_may_read(set, sizeof *set) || none(set) || set->it_value.tv_sec < 0 || set->it_value.tv_sec > 1ll << 33 ||
	    (u64)set->it_value.tv_nsec > 999999999)
		return set;
	*room = *set;
	ns = (u64)set->it_value.tv_sec * 1000000000u + (u64)set->it_value.tv_nsec + off;
	room->it_value.tv_sec = (time_t)(ns / 1000000000u);
	room->it_value.tv_nsec = (long)(ns % 1000000000u);
	return room;
}

static int v_timer_settime(timer_t id, int flags, const struct itimerspec *set, struct itimerspec *old)
{
	struct itimerspec room;
	const struct timer *t;
	if (unlikely(shim_ctl.pause) && flags & TIMER_ABSTIME && (t = timer_of(id)))
		set = real_set(t->clk, set, &room);
	return really_timer_settime(id, flags, set, old);
}

static int v_timerfd_settime(int fd, int flags, const struct itimerspec *set, struct itimerspec *old)
{
	struct itimerspec room;
	u32 i;
	int r;
	use();
	if (unlikely(shim_ctl.pause) && flags & TFD_TIMER_ABSTIME)
		set = real_set((clockid_t)fd_info(fd, "\nclockid: "), set, &room);
	r = really_timerfd_settime(fd, flags, set, old);
	if (r != 0 || !timers.used)
		return r;
	shim_lock(&shim_wiped->timers);
	for (i = 0; i < timers.nfds && timers.fd[i].fd != fd; i++)
		;
	if (i < TIMERS) {
		timers.fd[i].fd = fd;
		if (i == timers.nfds)
			timers.nfds++;
	}
	shim_unlock(&shim_wiped->timers);
	return r;
}

#define STAND_IN(name)                \
	case CALL_##name:             \
		really_##name = real; \
		return v_##name;

void *shim_timers_virtual(u32 call, void *real)
{
	switch (call) {
		STAND_IN(setitimer)
		STAND_IN(alarm)
		STAND_IN(ualarm)
		STAND_IN(timer_create)
		STAND_IN(timer_settime)
		STAND_IN(timer_delete)
		STAND_IN(timerfd_settime)
	default:
		return real;
	}
}

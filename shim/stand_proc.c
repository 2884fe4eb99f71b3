/* Stand-ins for processes: those that the run made are made again, under the ids that the program saw then (family.h).
 * Who waits for one gets what was recorded once that very child has really come to the same end. Nothing is sent by
 * kill: members of the run have what reached them in their own streams, and one that a signal ended ends by it when it
 * has done all that it did then (family.c). Only a child that records nothing is really sent what it was sent. Nor is
 * anything stopped: who was stopped goes on where it was let go on.
 */
#include "family.h"
#include "channel.h"
#include "steps_proc.h"
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pty.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/prctl.h>

extern pid_t __fork(void);
extern int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);

static void doze(struct thr *t, u64 object, u32 *round)
{
	struct timespec ts = {0, *round < 6 ? 20000 << *round : 1000000};
	if (__atomic_load_n(&shim_index->diverged, __ATOMIC_ACQUIRE))
		shim_re_stop(t, PROPHET_TurnStopped);
	t->re->th->object = object;
	t->re->th->turn = 0;
	__atomic_store_n(&t->re->th->state, PROPHET_TurnWaits, __ATOMIC_RELEASE);
	sys(SYS_nanosleep, &ts, 0);
	__atomic_store_n(&t->re->th->state, PROPHET_TurnRuns, __ATOMIC_RELEASE);
	++*round;
}

/* Children */

#define FORK(name)                                                      \
	static pid_t re_##name(void)                                    \
	{                                                               \
		struct expect *x = shim_re_of(CALL_##name);             \
		i64 was = x ? x->ret : 0, r;                            \
		int wanted;                                             \
		if (!x)                                                 \
			return TRUE(name)();                            \
		if (was < 0)                                            \
			return (pid_t)shim_re_ret(x);                   \
		wanted = shim_family_want(was);                         \
		r = TRUE(name)();                                       \
		return r ? (pid_t)shim_family_born(wanted, was, r) : 0; \
	}                                                               \
	STANDIN(name, re_##name)
FORK(fork)
FORK(__fork)
FORK(_Fork)

/* In the parent, when the child no longer needs its stack: what it is told. The child's first record was who it is. */
HIDDEN long shim_re_vforked(long now)
{
	struct thr *t = shim_self.thr;
	struct expect *x;
	i64 was = 0;
	if (now < 0) {
		errno = (int)-now;
		return -1;
	}
	if (!t || !t->re)
		return now;
	x = shim_expect(&t->re->ex);
	if (x->kind == EXPECT_FORK) { /* it did nothing that is seen */
		was = (i64)x->f2;
		shim_expect_drop(&t->re->ex);
	} else {
		was = (i64)t->re->vforked;
	}
	t->re->vforked = 0;
	if (was > 0 && was != now)
		__atomic_add_fetch(&shim_index->pids, 1, __ATOMIC_RELAXED);
	if (was > 0)
		shim_id_is(PROPHET_IDTask, (u64)was, (u64)now);
	return was > 0 ? was : now;
}

static int re_forkpty(int *master, char *name, const struct termios *mode, const struct winsize *size)
{
	struct expect *x = shim_re_of(CALL_forkpty);
	i64 was = x ? x->ret : 0, r;
	int wanted;
	if (!x)
		return TRUE(forkpty)(master, name, mode, size);
	if (was < 0)
		return (int)shim_re_ret(x);
	wanted = shim_family_want(was);
	r = TRUE(forkpty)(master, name, mode, size);
	return r ? (int)shim_family_born(wanted, was, r) : 0;
}
STANDIN(forkpty, re_forkpty)

/* What the kernel would write of the new id is written before it runs: the child of another memory has a copy. */
typedef int (*clone_fn)(int (*)(void *), void *, int, void *, ...);

static int clones(struct expect *x, clone_fn real, int (*fn)(void *), void *stack, int flags, void *arg, va_list ap)
{
	pid_t *parent_tid = va_arg(ap, pid_t *), *child_tid, before = 0;
	void *tls = va_arg(ap, void *);
	i64 was = x ? x->ret : 0, r;
	int own, wanted;
	child_tid = va_arg(ap, pid_t *);
	if (!x)
		return real(fn, stack, flags, arg, parent_tid, tls, child_tid);
	if (was < 0)
		return (int)shim_re_ret(x);
	own = flags & CLONE_CHILD_SETTID && !(flags & CLONE_VM);
	if (own)
		before = *child_tid;
	if (flags & CLONE_CHILD_SETTID)
		*child_tid = (pid_t)was;
	if (flags & CLONE_PARENT_SETTID)
		*parent_tid = (pid_t)was;
	wanted = shim_family_want(was);
	r = real(fn, stack, flags & ~(CLONE_CHILD_SETTID | CLONE_PARENT_SETTID), arg, parent_tid, tls, child_tid);
	if (own)
		*child_tid = before;
	return (int)shim_family_born(wanted, was, r);
}

#define CLONE(name)                                                                         \
	static int re_##name(int (*fn)(void *), void *stack, int flags, void *arg, ...)     \
	{                                                                                   \
		va_list ap;                                                                 \
		int r;                                                                      \
		va_start(ap, arg);                                                          \
		r = clones(shim_re_of(CALL_##name), TRUE(name), fn, stack, flags, arg, ap); \
		va_end(ap);                                                                 \
		return r;                                                                   \
	}                                                                                   \
	STANDIN(name, re_##name)
CLONE(clone)
CLONE(__clone)

#define SPAWN(name)                                                                                                                                   \
	static int re_##name(pid_t *pid, const char *path, const posix_spawn_file_actions_t *acts, const posix_spawnattr_t *attr, char *const argv[], \
			     char *const envp[])                                                                                                      \
	{                                                                                                                                             \
		struct expect *x = shim_re_of(CALL_##name);                                                                                           \
		pid_t mine = 0;                                                                                                                       \
		int r, wanted;                                                                                                                        \
		if (!x)                                                                                                                               \
			return TRUE(name)(pid, path, acts, attr, argv, envp);                                                                         \
		if (x->ret)                                                                                                                           \
			return (int)x->ret;                                                                                                           \
		wanted = shim_family_want((i64)x->f1);                                                                                                \
		r = TRUE(name)(&mine, path, acts, attr, argv, envp);                                                                                  \
		*pid = (pid_t)shim_family_born(wanted, (i64)x->f1, r == 0 ? mine : -1);                                                               \
		return r;                                                                                                                             \
	}                                                                                                                                             \
	STANDIN(name, re_##name)
SPAWN(posix_spawn)
SPAWN(posix_spawnp)

int shim_re_makes(const struct thr *t)
{
	const struct replaythread *th = shim_index_threads();
	const struct replayproc *p = shim_index_procs();
	u32 i;
	for (i = 1; i < shim_index->threads; i++)
		if (th[i].uid && th[i].parent == t->uid && th[i].nth == t->nthread + 1 && th[i].how == PROPHET_ThreadCreated &&
		    !__atomic_load_n(&th[i].now, __ATOMIC_ACQUIRE))
			return 1;
	for (i = 0; i < shim_index->procs; i++)
		if (p[i].parent == t->proc && p[i].uid == t->uid && p[i].nth == shim_self.nfork + 1 && p[i].how != PROPHET_ProcRoot &&
		    !__atomic_load_n(&p[i].claimed, __ATOMIC_ACQUIRE))
			return 1;
	return 0;
}

/* A child, or a program that one became, of which the trace has nothing: it was ended before it did what is seen, or what it said of itself was lost
 * with it. It waits for whoever knows which (await_end), and otherwise goes on by itself. */
void shim_re_unknown(struct thr *t)
{
	struct timespec ts = {0, 1000000};
	u64 me = (u64)sys(SYS_getpid);
	u32 i;
	if (t->how != PROPHET_ThreadForked && t->how != PROPHET_ThreadMain)
		shim_re_differs(t, 0, PROPHET_DiffersThread, 0, t->parent, t->nth, "");
	shim_id_is(PROPHET_IDIdle, me, 1);
	for (i = 0; i < 1000 && shim_id_now(PROPHET_IDIdle, me) == 1; i++)
		sys(SYS_nanosleep, &ts, 0);
	t->re = 0;
	shim_re_unguards(); /* nothing tells which signals come to it: they do what they do */
}

static void idle(u64 now, int sig)
{
	if (shim_id_now(PROPHET_IDIdle, now) != 1)
		return;
	shim_id_is(PROPHET_IDIdle, now, 2);
	if (sig)
		sys(SYS_kill, now, sig);
}

/* Waiting */

#define ENDS(code) ((code) == CLD_EXITED || (code) == CLD_KILLED || (code) == CLD_DUMPED)

/* Until the child with that recorded id has come to its end. status is what was told of it, or -1; what it is now comes back. */
static int await_end(const struct expect *x, u32 was, int status, int keep)
{
	struct thr *t = shim_self.thr;
	const struct replayproc *p = shim_family_proc(was);
	int signaled = status >= 0 && WIFSIGNALED(status), real, r;
	u32 round = 0, sent = 0;
	siginfo_t si;
	u64 now;
	while ((now = shim_id_now(PROPHET_IDTask, was)) == ~0ull) {
		if (!p || shim_re_detached())
			return status; /* nobody ever said who it was */
		doze(t, was, &round);
	}
	for (round = 0;;) {
		int poll = signaled || !p || p->death;
		si.si_pid = 0;
		t->re->th->object = was;
		__atomic_store_n(&t->re->th->state, PROPHET_TurnWaits, __ATOMIC_RELEASE);
		r = (int)sys(SYS_waitid, P_PID, now, &si, WEXITED | __WALL | (poll ? WNOHANG : 0) | (keep ? WNOWAIT : 0), 0);
		__atomic_store_n(&t->re->th->state, PROPHET_TurnRuns, __ATOMIC_RELEASE);
		if (r == -EINTR)
			continue;
		if (r < 0 || si.si_pid)
			break;
		if (!p || signaled)
			idle(now, signaled ? WTERMSIG(status) : 0);
		if (p && p->death) {
			shim_family_end(p);
		} else if (!p && signaled && round > 100 && !sent) {
			sent = 1; /* it records nothing, so nobody knows what it still does */
			sys(SYS_kill, now, WTERMSIG(status));
		}
		doze(t, was, &round);
	}
	if (!keep)
		shim_id_gone(PROPHET_IDTask, was, now);
	if (r < 0 || status < 0 || (p && p->death && !signaled)) /* the last: the status 0 is told, or was not asked for */
		return status;
	real = si.si_code == CLD_EXITED ? (si.si_status & 255) << 8 : si.si_status & 127;
	if (real != (status & ~0x80))
		shim_re_differs(t, x, PROPHET_DiffersResult, x->call, (u64)status, (u64)real, "");
	return real == (status & ~0x80) ? status : real;
}

static pid_t waited(const struct expect *x, int *st, u64 status, int options)
{
	if (x->ret > 0) {
		if (!st && options & (WUNTRACED | WCONTINUED)) { /* which of them it was is not told */
			siginfo_t si;
			sys(SYS_waitid, P_PID, shim_task_now(x->ret), &si, WEXITED | WNOHANG | __WALL, 0);
		} else if (!st || WIFEXITED((int)status) || WIFSIGNALED((int)status)) {
			int now = await_end(x, (u32)x->ret, st ? (int)status : -1, 0);
			status = st ? (u64)now : status;
		}
		if (st)
			*st = (int)status;
	}
	return (pid_t)shim_re_ret(x);
}

static void usage(const struct expect *x, struct rusage *u)
{
	const u8 *p = x->input, *end = p + x->input_len;
	u64 user, system;
	if (x->ret <= 0 || !u || !x->input_len)
		return;
	shim_zero(u, sizeof *u);
	user = shim_get_v(&p, end);
	system = shim_get_v(&p, end);
	u->ru_utime.tv_sec = (time_t)(user / 1000000000u);
	u->ru_utime.tv_usec = (suseconds_t)(user % 1000000000u / 1000u);
	u->ru_stime.tv_sec = (time_t)(system / 1000000000u);
	u->ru_stime.tv_usec = (suseconds_t)(system % 1000000000u / 1000u);
	u->ru_maxrss = (long)shim_get_v(&p, end);
	u->ru_minflt = (long)shim_get_v(&p, end);
	u->ru_majflt = (long)shim_get_v(&p, end);
	u->ru_inblock = (long)shim_get_v(&p, end);
	u->ru_oublock = (long)shim_get_v(&p, end);
	u->ru_nvcsw = (long)shim_get_v(&p, end);
	u->ru_nivcsw = (long)shim_get_v(&p, end);
}

#define WAIT(name, params, args, status, options, more)     \
	static pid_t re_##name params                       \
	{                                                   \
		struct expect *x = shim_re_of(CALL_##name); \
		if (!x)                                     \
			return TRUE(name) args;             \
		more;                                       \
		return waited(x, st, status, options);      \
	}                                                   \
	STANDIN(name, re_##name)
WAIT(wait, (int *st), (st), x->f1, 0, )
WAIT(__wait, (int *st), (st), x->f1, 0, )
WAIT(waitpid, (pid_t pid, int *st, int options), (pid, st, options), x->f3, options, )
WAIT(__waitpid, (pid_t pid, int *st, int options), (pid, st, options), x->f3, options, )
WAIT(wait3, (int *st, int options, struct rusage *u), (st, options, u), x->f2, options, usage(x, u))
WAIT(wait4, (pid_t pid, int *st, int options, struct rusage *u), (pid, st, options, u), x->f3, options, usage(x, u))

static int re_waitid(idtype_t kind, id_t id, siginfo_t *si, int options)
{
	struct expect *x = shim_re_of(CALL_waitid);
	siginfo_t was;
	u32 child;
	if (!x)
		return TRUE(waitid)(kind, id, si, options);
	if (x->ret < 0)
		return (int)shim_re_ret(x);
	shim_zero(&was, sizeof was);
	shim_feed_siginfo(x, &was);
	child = x->input_len ? (u32)was.si_pid : kind == P_PID ? id : 0;
	if (child && (!x->input_len || ENDS(was.si_code)))
		await_end(x, child, !x->input_len ? -1 : was.si_code == CLD_EXITED ? (was.si_status & 255) << 8 : was.si_status & 127, options & WNOWAIT);
	if (si) {
		si->si_signo = was.si_signo;
		si->si_errno = 0;
		si->si_code = was.si_code;
		si->si_pid = was.si_pid;
		si->si_uid = was.si_uid;
		si->si_status = was.si_status;
	}
	return 0;
}
STANDIN(waitid, re_waitid)

/* Sending */

static void sent(const struct expect *x, i64 pid, int sig)
{
	u64 now;
	if (x->ret < 0 || pid <= 0 || !sig || sig == SIGSTOP || sig == SIGTSTP || shim_family_proc((u32)pid))
		return;
	now = shim_id_now(PROPHET_IDTask, (u64)pid);
	if (now != ~0ull)
		sys(SYS_kill, now, sig);
}

static int re_kill(pid_t pid, int sig)
{
	struct expect *x = shim_re_of(CALL_kill);
	if (!x)
		return TRUE(kill)(pid, sig);
	sent(x, pid, sig);
	return (int)shim_re_ret(x);
}
STANDIN(kill, re_kill)

static int re_sigqueue(pid_t pid, int sig, const union sigval value)
{
	struct expect *x = shim_re_of(CALL_sigqueue);
	if (!x)
		return TRUE(sigqueue)(pid, sig, value);
	sent(x, pid, sig);
	return (int)shim_re_ret(x);
}
STANDIN(sigqueue, re_sigqueue)

/* For a process outside the run something stands in that can be waited for in vain. */
static long pidfd(const struct expect *x, pid_t pid, unsigned flags)
{
	if (x->ret < 0)
		return x->ret;
	return shim_id_now(PROPHET_IDTask, (u64)pid) == ~0ull ? sys(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)
							      : sys(SYS_pidfd_open, shim_task_now(pid), flags);
}

static int re_pidfd_open(pid_t pid, unsigned flags)
{
	struct expect *x = shim_re_of(CALL_pidfd_open);
	long fd;
	if (!x)
		return TRUE(pidfd_open)(pid, flags);
	fd = pidfd(x, pid, flags);
	if (fd >= 0)
		return (int)fd;
	errno = (int)-fd;
	return -1;
}
STANDIN(pidfd_open, re_pidfd_open)

/* Sessions and groups: really made, as terminals go by them. */
static pid_t re_setsid(void)
{
	struct expect *x = shim_re_of(CALL_setsid);
	pid_t r;
	if (x && x->ret < 0)
		return (pid_t)shim_re_ret(x);
	r = TRUE(setsid)();
	return x ? (pid_t)x->ret : r;
}
STANDIN(setsid, re_setsid)

#define SETPGID(name)                                                              \
	static int re_##name(pid_t pid, pid_t pgid)                                \
	{                                                                          \
		struct expect *x = shim_re_of(CALL_##name);                        \
		if (!x)                                                            \
			return TRUE(name)(pid, pgid);                              \
		if (x->ret == 0)                                                   \
			sys(SYS_setpgid, shim_task_now(pid), shim_task_now(pgid)); \
		return (int)shim_re_ret(x);                                        \
	}                                                                          \
	STANDIN(name, re_##name)
SETPGID(setpgid)
SETPGID(__setpgid)

/* exec: the program that comes asks for everything itself. 0: it is to be really done. */
int shim_re_exec(struct thr *t, u32 call)
{
	struct expect *x;
	if (!t || !t->re)
		return 0;
	while ((x = shim_expect(&t->re->ex))->kind == EXPECT_EXIT)
		shim_expect_drop(&t->re->ex); /* which each try has */
	if (x->kind == EXPECT_EVENT && x->call == call && x->ret < 0) {
		errno = (int)-x->ret;
		return -1;
	}
	if (!(t->vfork && shim_in_vfork(t)))
		shim_re_others(t);
	return 0;
}

/* A filter would see what a re-execution asks the kernel for; a parent's death comes earlier or later. Neither is set:
 * what the kernel refused then is refused. */
static int re_prctl(int option, ...)
{
	struct expect *x = shim_re_of(CALL_prctl);
	unsigned long a, b, c, d;
	va_list ap;
	static int death;
	va_start(ap, option);
	a = va_arg(ap, unsigned long);
	b = va_arg(ap, unsigned long);
	c = va_arg(ap, unsigned long);
	d = va_arg(ap, unsigned long);
	va_end(ap);
	if (!x)
		return TRUE(prctl)(option, a, b, c, d);
	if (x->ret < 0)
		return (int)shim_re_ret(x);
	switch (option) {
	case PR_SET_SECCOMP:
		break;
	case PR_SET_PDEATHSIG:
		death = (int)a;
		break;
	case PR_GET_PDEATHSIG:
		*(int *)a = death;
		break;
	default:
		TRUE(prctl)(option, a, b, c, d);
	}
	return (int)x->ret;
}
STANDIN(prctl, re_prctl)

/* What a system call by number gave. Memory that has it already may be read-only: the kernel does not mind, of times. */
static void give(const struct expect *x, const struct iovec *v)
{
	const u8 *from = x->data;
	u64 left = from ? x->data_len : 0, i;
	for (; left; v++) {
		u64 n = v->iov_len < left ? v->iov_len : left;
		for (i = 0; i < n && ((const u8 *)v->iov_base)[i] == from[i]; i++)
			;
		if (i < n)
			shim_copy(v->iov_base, from, n);
		from += n;
		left -= n;
	}
}

static int selects(long n)
{
#ifdef SYS_select
	if (n == SYS_select)
		return 1;
#endif
	return n == SYS_pselect6;
}

/* What was readable is, or was, as by the functions of their names (stand_ready.c). */
static void were_ready(long n, const long *a)
{
	const struct pollfd *p = (const struct pollfd *)a[0];
	const u64 *set = (const u64 *)a[1];
	i64 i;
	if (n == SYS_ppoll)
		for (i = 0; p && i < (u32)a[1]; i++)
			if (p[i].revents & (POLLIN | POLLHUP) && shim_channel_inside(p[i].fd))
				shim_channel_was_ready(p[i].fd);
	if (!selects(n))
		return;
	for (i = 0; set && i < (int)a[0]; i++)
		if (set[i / 64] >> (i % 64) & 1 && shim_channel_inside((int)i))
			shim_channel_was_ready((int)i);
}

/* System calls by number: what is told, sent and made as by the functions of their names. */
static long re_syscall(long n, ...)
{
	struct expect *x = shim_re_of(CALL_syscall);
	long (*real)(long, ...) = (long (*)(long, ...))shim_true(CALL_syscall);
	long a[6], r, was;
	va_list ap;
	struct iovec v[SYSCALL_GIVES];
	u64 len;
	u32 i;
	va_start(ap, n);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (!x)
		return real(n, a[0], a[1], a[2], a[3], a[4], a[5]);
	len = shim_syscall_gives(n, a, x->ret, v);
	if (len && !x->data && x->ret >= 0 && n != SYS_setitimer && n != SYS_rt_sigtimedwait && n != SYS_wait4 && n != SYS_waitid)
		real(n, a[0], a[1], a[2], a[3], a[4], a[5]); /* not recorded: it has what is so now */
	if (shim_syscall_asks(n) && x->ret >= 0 && (!len || shim_index->moved))
		return real(n, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (x->data && x->data_len <= len) {
		give(x, v);
		if (x->ret > 0)
			were_ready(n, a);
	}
	if (n == SYS_getcpu && a[1])
		real(n, 0, a[1], 0); /* the node is not recorded */
	if ((x->ret < 0 && n != SYS_futex) || shim_syscall_tells(n) ||
	    shim_syscall_asks(n)) /* it did nothing, or was interrupted by a signal, which has been handled */
		return shim_re_ret(x);
	switch (n) {
#ifdef SYS_fork
	case SYS_fork:
#endif
	case SYS_clone:
	case SYS_clone3:
		i = (u32)shim_family_want(x->ret);
		was = x->ret;
		r = real(n, a[0], a[1], a[2], a[3], a[4], a[5]);
		return r ? (long)shim_family_born((int)i, was, r) : 0;
	case SYS_getpid:
	case SYS_gettid:
	case SYS_getppid:
#ifdef SYS_getpgrp
	case SYS_getpgrp:
#endif
	case SYS_getpgid:
	case SYS_getsid:
	case SYS_getuid:
	case SYS_geteuid:
	case SYS_getgid:
	case SYS_getegid:
	case SYS_tkill:
	case SYS_tgkill:
	case SYS_rt_sigqueueinfo:
	case SYS_rt_tgsigqueueinfo:
	case SYS_pidfd_send_signal:
	case SYS_sched_getscheduler:
	case SYS_getpriority:
		return shim_re_ret(x);
	case SYS_seccomp:
		return a[0] > SECCOMP_SET_MODE_FILTER ? real(n, a[0], a[1], a[2]) : shim_re_ret(x);
	case SYS_futex:
		return shim_re_futex(x, a);
	case SYS_kill:
		sent(x, a[0], (int)a[1]);
		return shim_re_ret(x);
	case SYS_wait4:
		usage(x, (struct rusage *)a[3]);
		if (x->ret > 0 && a[1]) { /* its status is not told */
			r = real(n, shim_task_now(x->ret), a[1], a[2] & ~WNOHANG, 0);
			return r < 0 ? r : x->ret;
		}
		return waited(x, 0, 0, (int)a[2]);
	case SYS_waitid:
		return real(n, a[0], a[0] == P_PID ? shim_task_now((int)a[1]) : a[1], a[2], a[3], 0);
	case SYS_getrandom:
	case SYS_rt_sigpending:
		return shim_re_ret(x);
	case SYS_rt_sigtimedwait:
		if (len && !x->data) {
			shim_zero(v->iov_base, len);
			((siginfo_t *)v->iov_base)->si_signo = (int)x->ret;
		}
		return shim_re_ret(x);
	case SYS_pidfd_open:
		r = pidfd(x, (pid_t)a[0], (unsigned)a[1]);
		if (r >= 0)
			return r;
		errno = (int)-r;
		return -1;
	case SYS_setpgid:
		return real(n, shim_task_now((int)a[0]), shim_task_now((int)a[1]));
	case SYS_mmap:
	case SYS_mremap:
	case SYS_brk:
		r = real(n, a[0], a[1], a[2], a[3], a[4], a[5]);
		if (r != -1 && x->ret > 0)
			x->ret = r; /* an address */
		return r;
	default:
		return real(n, a[0], a[1], a[2], a[3], a[4], a[5]);
	}
}
STANDIN(syscall, re_syscall)

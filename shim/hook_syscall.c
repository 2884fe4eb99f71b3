/* syscall(): what a function with a row does with the same arguments is that row's event (number.h). All else is an event with the
 * number, the first two arguments and the result. What goes that way past the other wrappers is told as not covered (TagUnseen),
 * once a number; futexes are objects of their own, each told once, as what is done to them without the kernel cannot be seen.
 *
 * Numbers differ between machines, so what is recorded is amd64's number where that system call exists there, and
 * 10000 + the machine's own where not.
 *
 * Calls that change what we stand on have their own way: exec goes through our execve, which repairs the environment;
 * exit writes the rings out before; fork-like ones are counted before, as the child is told from its parent by
 * memory that fork wipes. What shares the stack or brings another one (vfork, clone with CLONE_VM) cannot pass through
 * a C function: syscall_$ARCH.S jumps to the real function for them, after asking shim_syscall_jump.
 */
#include "handler.h"
#include "number.h"
#include "replay.h"
#include "steps_sync.h"
#include "sandbox.h"
#include <linux/futex.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define FOREIGN 10000

static u32 canonical(long n)
{
#if SHIM_SYSCALLS_CANONICAL
	return (u32)n;
#else
	static const u16 pairs[][2] = {
#define SYSCALL(name, number) {SYS_##name, number},
#include "syscalls.h"
#undef SYSCALL
	};
	u32 i;
	for (i = 0; i < sizeof pairs / sizeof *pairs; i++)
		if (pairs[i][0] == n)
			return pairs[i][1];
	return FOREIGN + (u32)n;
#endif
}

/* How many of the first two arguments there are, by amd64's number: the others are what the registers held.
 * None:
 * sched_yield pause getpid fork vfork getuid getgid geteuid getegid getppid getpgrp setsid munlockall vhangup sync
 * gettid restart_syscall inotify_init
 * One:
 * close brk pipe dup alarm exit uname shmdt fsync fdatasync chdir fchdir rmdir unlink umask sysinfo times setuid
 * setgid getpgid setfsuid setfsgid getsid personality sched_getscheduler sched_get_priority_max
 * sched_get_priority_min mlockall adjtimex chroot acct swapoff time io_destroy epoll_create set_tid_address
 * timer_getoverrun timer_delete exit_group mq_unlink unshare eventfd epoll_create1 inotify_init1 syncfs userfaultfd
 */
static u32 arguments(u32 c)
{
	static const u64 none[] = {0x600008401000000, 0x1d94000000000, 0x400000403000000, 0x2000000008000000, 0x0, 0x0};
	static const u64 one[] = {0x9000002100401008, 0x1e00061880930c08, 0x10a808e0080, 0x2008604208200, 0x4004810010000, 0x8};
	u64 bit = 1ull << (c & 63);
	if (c >= 64 * sizeof none / sizeof *none)
		return 2;
	return none[c >> 6] & bit ? 0 : one[c >> 6] & bit ? 1 : 2;
}

/* A bit a number: told already. */
static u64 told[1024 / 64];

static void unseen(struct thr *t, u32 what, u64 arg)
{
	u8 b[32], *p = put_v(b, PROPHET_TagUnseen);
	p = put_v(p, what);
	p = put_v(p, arg);
	p = put_v(p, 0);
	shim_record(t, b, (u32)(p - b));
}

/* System calls that do nothing but tell the time, how much was used of what, or wait for it; and those on keys, which the kernel
 * keeps for longer than a run, under numbers that it makes up: what a re-execution has of them is what the run was told. */
int shim_syscall_tells(long n)
{
	switch (n) {
#ifdef SYS_time
	case SYS_time:
#endif
	case SYS_clock_gettime:
	case SYS_clock_getres:
	case SYS_gettimeofday:
	case SYS_getcpu:
	case SYS_times:
	case SYS_getrusage:
	case SYS_sysinfo:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
#ifdef SYS_alarm
	case SYS_alarm:
#endif
	case SYS_setitimer:
	case SYS_getitimer:
	case SYS_add_key:
	case SYS_request_key:
	case SYS_keyctl:
		return 1;
	default:
		return 0;
	}
}

/* System calls that change nothing, and with what they give have told all. A trace that was made of what a target did does not have
 * that (shim_re_moves): there they are made. */
int shim_syscall_asks(long n)
{
	switch (n) {
#ifdef SYS_stat
	case SYS_stat:
	case SYS_lstat:
#endif
	case SYS_fstat:
	case SYS_newfstatat:
	case SYS_statx:
	case SYS_statfs:
	case SYS_fstatfs:
	case SYS_uname:
	case SYS_sched_getaffinity:
	case SYS_timer_gettime:
	case SYS_timerfd_gettime:
#ifdef SYS_select
	case SYS_select:
#endif
	case SYS_ppoll:
	case SYS_pselect6:
		return 1;
	default:
		return 0;
	}
}

/* Sets, if any, of n descriptors. */
static u64 set_bytes(long set, long n)
{
	return set && n > 0 ? ((u64)n + 63) / 64 * 8 : 0;
}

/* What readiness was, and what was left of the time. A signal that came instead leaves sets as they were asked. */
static u64 gives_ready(long n, const long *a, i64 r, struct iovec *v)
{
	int sets = n != SYS_ppoll;
	u32 i, last = sets ? 3 : 1;
	if (r < 0 && r != -EINTR)
		return 0;
	if (!sets)
		v[0] = (struct iovec){(void *)a[0], a[0] ? (u64)(u32)a[1] * sizeof(struct pollfd) : 0};
	for (i = 0; sets && r >= 0 && i < 3; i++)
		v[i] = (struct iovec){(void *)a[i + 1], set_bytes(a[i + 1], (int)a[0])};
	i = sets ? 4 : 2;
	v[last] = (struct iovec){(void *)a[i], a[i] ? 16 : 0}; /* a timespec or a timeval */
	return v[0].iov_len + v[1].iov_len + v[2].iov_len + v[3].iov_len;
}

/* Where a system call with that result has put something, and how much in all. */
u64 shim_syscall_gives(long n, const long *a, i64 r, struct iovec v[SYSCALL_GIVES])
{
	u64 len = 0;
	i32 at = 0;
	shim_zero(v, SYSCALL_GIVES * sizeof *v);
	switch (n) {
	case SYS_getrandom:
		len = r > 0 ? (u64)r : 0;
		break;
	case SYS_rt_sigpending:
		len = r == 0 ? (u64)a[1] : 0;
		break;
	case SYS_rt_sigtimedwait:
		at = 1;
		len = r > 0 ? sizeof(siginfo_t) : 0;
		break;
#ifdef SYS_time
	case SYS_time:
		len = r >= 0 ? sizeof(time_t) : 0;
		break;
#endif
	case SYS_clock_gettime:
	case SYS_clock_getres:
		at = 1;
		len = r == 0 ? sizeof(struct timespec) : 0;
		break;
	case SYS_gettimeofday:
		len = r == 0 ? sizeof(struct timeval) : 0;
		break;
	case SYS_getcpu:
		len = r == 0 ? sizeof(unsigned) : 0;
		break;
	case SYS_times:
		len = r >= 0 ? sizeof(struct tms) : 0;
		break;
	case SYS_getrusage:
		at = 1;
		len = r == 0 ? sizeof(struct rusage) : 0;
		break;
	case SYS_sysinfo:
		len = r == 0 ? sizeof(struct sysinfo) : 0;
		break;
	case SYS_nanosleep:
		at = 1;
		len = r == -EINTR ? sizeof(struct timespec) : 0;
		break;
	case SYS_clock_nanosleep:
		at = 3;
		len = r == -EINTR && !(a[1] & TIMER_ABSTIME) ? sizeof(struct timespec) : 0;
		break;
	case SYS_setitimer:
		at = 2;
		len = r == 0 ? sizeof(struct itimerval) : 0;
		break;
	case SYS_getitimer:
		at = 1;
		len = r == 0 ? sizeof(struct itimerval) : 0;
		break;
	case SYS_wait4:
		at = 3;
		len = r > 0 ? sizeof(struct rusage) : 0;
		break;
	case SYS_waitid:
		at = 4;
		len = r == 0 ? sizeof(struct rusage) : 0;
		break;
	case SYS_keyctl:
		at = 2;
		if (r > 0 && (a[0] == KEYCTL_DESCRIBE || a[0] == KEYCTL_READ || a[0] == KEYCTL_GET_SECURITY))
			len = (u64)r < (u64)a[3] ? (u64)r : (u64)a[3];
		break;
#ifdef SYS_stat
	case SYS_stat:
	case SYS_lstat:
#endif
	case SYS_fstat:
		at = 1;
		len = r == 0 ? sizeof(struct stat) : 0;
		break;
	case SYS_newfstatat:
		at = 2;
		len = r == 0 ? sizeof(struct stat) : 0;
		break;
	case SYS_statx:
		at = 4;
		len = r == 0 ? sizeof(struct statx) : 0;
		break;
	case SYS_statfs:
	case SYS_fstatfs:
		at = 1;
		len = r == 0 ? sizeof(struct statfs) : 0;
		break;
	case SYS_uname:
		len = r == 0 ? sizeof(struct utsname) : 0;
		break;
	case SYS_sched_getaffinity:
		at = 2;
		len = r > 0 ? (u64)r : 0;
		break;
#ifdef SYS_select
	case SYS_select:
#endif
	case SYS_ppoll:
	case SYS_pselect6:
		return gives_ready(n, a, r, v);
	case SYS_timer_gettime:
	case SYS_timerfd_gettime:
		at = 1;
		len = r == 0 ? sizeof(struct itimerspec) : 0;
		break;
	}
	v->iov_base = (void *)a[at];
	v->iov_len = a[at] ? len : 0;
	return v->iov_len;
}

/* System calls that give the program nothing but a number, or what is kept of them: with the event all is told. */
static int harmless(long n)
{
	switch (n) {
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
	case SYS_sched_yield:
	case SYS_membarrier:
	case SYS_tgkill:
	case SYS_tkill:
	case SYS_getrandom:
	case SYS_futex: /* told otherwise */
	case SYS_exit:
	case SYS_exit_group:
		return 1;
	default:
		return shim_syscall_tells(n);
	}
}

static void tell(struct thr *t, long n, i64 ret)
{
	u32 c = canonical(n);
	u64 bit = 1ull << (c & 63);
	if (harmless(n) || (shim_syscall_asks(n) && shim_ctl.inputs) || c >= 1024 || ret == -ENOSYS || told[c >> 6] & bit ||
	    __atomic_fetch_or(&told[c >> 6], bit, __ATOMIC_RELAXED) & bit)
		return;
	unseen(t, n == SYS_io_uring_setup ? PROPHET_UnseenUring : PROPHET_UnseenSyscall, c);
}

static u64 futex(struct thr *t, const void *addr)
{
	struct object_entry *o = shim_object(t, PROPHET_ObjFutex, addr);
	if (unlikely(!__atomic_load_n(&o->readers, __ATOMIC_RELAXED)) && !__atomic_exchange_n(&o->readers, 1, __ATOMIC_RELAXED))
		unseen(t, PROPHET_UnseenFutex, o->id);
	return o->id;
}

static int fork_like(long n, const long *a)
{
#ifdef SYS_fork
	if (n == SYS_fork)
		return 1;
#endif
	if (n == SYS_clone)
		return !(a[0] & CLONE_VM);
	return n == SYS_clone3 && shim_readable((const void *)a[0], 8) && !(*(const u64 *)a[0] & CLONE_VM);
}

/* For the assembly: the function to jump to, or NULL when the number may pass through shim_syscall. */
HIDDEN void *shim_syscall_jump(long n, long a, long b)
{
	struct thr *t = shim_self.thr;
	long args[2] = {a, b};
	if (fork_like(n, args))
		return 0;
	shim_child_next();
	if (t && t->begun && t->vfork == VFORK_NONE) {
		/* The child may run on our state, and with vfork on our stack. */
		t->vfork = n == SYS_clone && !(a & CLONE_VFORK) ? VFORK_SHARED : VFORK_BEGUN;
		t->gate = 0;
	}
	return shim_replays ? shim_true(CALL_syscall) : shim_real(CALL_syscall); /* not through a C function */
}

/* v stays until shim_done. */
static void after(struct ev *e, long n, const long *a, long r, struct iovec *v)
{
	u64 len = shim_syscall_gives(n, a, e->ret, v);
	if (len && shim_ctl.inputs)
		shim_data_iov_slow(e, PROPHET_InputsFull, v, SYSCALL_GIVES, len);
	switch (n) {
	case SYS_futex:
		e->obj = futex(e->t, (const void *)a[0]);
		break;
	case SYS_close:
		if (r == 0)
			shim_fd_gone((int)a[0]);
		break;
	case SYS_mmap:
		shim_note_mmap(r == -1 ? MAP_FAILED : (const void *)r, (size_t)a[1], (int)a[2], (int)a[3], (int)a[4], (u64)a[5]);
		break;
	case SYS_munmap:
		if (r == 0)
			shim_object_unmapped((const void *)a[0], (u64)a[1]);
		break;
	}
	tell(e->t, n, e->ret);
}

static int may_block(long n, const long *a)
{
	u32 op = (u32)a[1] & FUTEX_CMD_MASK;
	if (n != SYS_futex)
		return !harmless(n);
	return op != FUTEX_WAKE && op != FUTEX_WAKE_OP && op != FUTEX_REQUEUE && op != FUTEX_CMP_REQUEUE && op != FUTEX_UNLOCK_PI;
}

static void ends(long n, const long *a)
{
	struct thr *t = shim_self.thr;
	if (n == SYS_exit_group || shim_run.threads < 2) {
		shim_process_over(PROPHET_ExitQuick, a[0] & 255);
		return;
	}
	if (t && t->tid == shim_run.pid)
		shim_run.left_status = (i32)(a[0] & 255);
	shim_run.left = 1;
	shim_thread_ending(t);
}

static long forks(syscall_fn real, struct ev *e, int on, long n, const long *a)
{
	long r;
	shim_child_next();
	r = real(n, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (r == 0) {
		shim_child();
		return 0; /* our memory is gone, e says nothing here */
	}
	if (r < 0)
		shim_self.nfork--;
	if (!on)
		return r;
	shim_end(e, WRAP_BLOCK);
	e->ret = shim_ret_errno(r);
	shim_done(e);
	if (r > 0)
		shim_fork_record(e->t, shim_self.nfork, (u64)r, PROPHET_ProcForked);
	return r;
}

/* syscall() itself, but for what may not pass a C function. Like it, takes six arguments whatever the number. */
HIDDEN long shim_syscall(void *pc, long n, const long *a)
{
	syscall_fn real = (syscall_fn)shim_real(CALL_syscall);
	struct iovec given[SYSCALL_GIVES];
	struct ev e;
	long r;
	int on;
	if (n == SYS_execve)
		return execve((const char *)a[0], (char *const *)a[1], (char *const *)a[2]);
	if (n == SYS_execveat)
		return execveat((int)a[0], (const char *)a[1], (char *const *)a[2], (char *const *)a[3], (int)a[4]);
	if (n == SYS_seccomp && (a[0] == SECCOMP_SET_MODE_STRICT || a[0] == SECCOMP_SET_MODE_FILTER))
		shim_sandbox(a[0] == SECCOMP_SET_MODE_STRICT ? 0 : (const void *)a[2]);
	else if (n == SYS_prctl)
		shim_sandbox_prctl((int)a[0], a[1], (const void *)a[2]);
	if (shim_number(pc, n, a, &r))
		return r;
	on = shim_begin(&e, CALL_syscall, CLASS_sync, pc);
	if (on) {
		u32 c = canonical(n), k = arguments(c);
		e.f1 = c;
		e.f2 = k > 0 ? (u64)a[0] : 0;
		e.f3 = k > 1 ? (u64)a[1] : 0;
	}
	if (n == SYS_exit || n == SYS_exit_group) {
		if (on) {
			shim_end(&e, WRAP_ONCE);
			shim_done(&e);
		}
		ends(n, a);
	} else if (fork_like(n, a)) {
		return forks(real, &e, on, n, a);
	}
	if (unlikely(n == SYS_rt_sigaction)) {
		struct kernel_action mine;
		r = real(n, a[0], a[1] ? (long)shim_handler_given((int)a[0], (const struct kernel_action *)a[1], &mine) : 0, a[2], a[3], a[4], a[5]);
		if (r == 0 && a[2])
			shim_handler_asked((int)a[0], (struct kernel_action *)a[2]);
	} else {
		r = shim_virtual_syscall(real, n, a);
	}
	if (!on)
		return r;
	shim_end(&e, may_block(n, a));
	e.ret = shim_ret_errno(r);
	after(&e, n, a, r, given);
	shim_done(&e);
	return r;
}

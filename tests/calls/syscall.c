/* syscall(): cheap numbers, six arguments, futexes, and the numbers that are not like others. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int word, shared;

static void *waiter(void *arg)
{
	while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == 0)
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
	return 0;
}

static void *ender(void *arg)
{
	syscall(SYS_exit, 0);
	return arg;
}

static void say(const char *what, long r)
{
	printf("%s %ld %s\n", what, r, r < 0 ? strerror(errno) : "");
	fflush(stdout);
}

static volatile int handled;

static void handler(int sig)
{
	handled++;
}

/* What the kernel says of handlers that the C library installed. */
static void handlers(void)
{
	struct {
		void (*fn)(int);
		unsigned long flags, rest[2];
	} was = {0, 0, {0, 0}};
	struct sigaction a = {.sa_handler = handler};
	sigaction(SIGTERM, &a, 0);
	say("rt_sigaction", syscall(SYS_rt_sigaction, SIGTERM, 0, &was, 8));
	printf("handler %d %d\n", was.fn == handler, !(was.flags & SA_SIGINFO));
	a.sa_flags = SA_SIGINFO | SA_NODEFER;
	sigaction(SIGTERM, &a, 0);
	say("rt_sigaction", syscall(SYS_rt_sigaction, SIGTERM, 0, &was, 8));
	printf("handler %d %d\n", was.fn == handler, (was.flags & SA_SIGINFO) && (was.flags & SA_NODEFER));
	say("rt_sigaction", syscall(SYS_rt_sigaction, SIGTERM, 0, (void *)8, 8));
	say("rt_sigaction", syscall(SYS_rt_sigaction, 99, 0, &was, 8));
}

/* Waits by number for a signal that is blocked until then, or let through by the call. */
static void waits(void)
{
	unsigned long usr1 = 1ul << (SIGUSR1 - 1), none = 0;
	struct timespec until = {10, 0};
	struct {
		unsigned long *set, size;
	} sixth = {&none, 8};
	struct epoll_event ready;
	siginfo_t si;
	int i, ep = epoll_create1(0), parent = getpid();
	struct sigaction a = {.sa_handler = handler};
	sigaction(SIGUSR1, &a, 0);
	say("rt_sigprocmask", syscall(SYS_rt_sigprocmask, SIG_BLOCK, &usr1, 0, 8));
	for (i = 0; i < 6; i++) {
		long r = 0, pid = fork();
		if (!pid) {
			kill(parent, SIGUSR1);
			_exit(0);
		}
		if (i == 0)
			r = syscall(SYS_rt_sigsuspend, &none, 8);
		else if (i == 1)
			r = syscall(SYS_ppoll, 0, 0, &until, &none, 8);
		else if (i == 2)
			r = syscall(SYS_pselect6, 0, 0, 0, 0, &until, &sixth);
		else if (i == 3)
			r = syscall(SYS_epoll_pwait, ep, &ready, 1, 10000, &none, 8);
		else if (i == 4)
			r = syscall(SYS_rt_sigtimedwait, &usr1, &si, 0, 8);
		waitpid(pid, 0, 0);
		printf("%d %d ", i, handled);
		say("wait", r);
		if (i == 4)
			printf("came %d %d %d\n", si.si_signo == SIGUSR1, si.si_code == SI_USER, si.si_pid == pid);
	}
	say("rt_sigpending", syscall(SYS_rt_sigpending, &none, 8));
	printf("pending %d %d\n", none == usr1, handled);
	say("rt_sigprocmask", syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &usr1, 0, 8));
	printf("handled %d\n", handled);
	close(ep);
}

static void child(const char *what, long pid)
{
	int st = 0;
	if (pid == 0) {
		syscall(SYS_exit_group, 3);
		abort();
	}
	printf("%s %d %d\n", what, pid > 0 && waitpid(pid, &st, 0) == pid, WEXITSTATUS(st));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct timespec soon = {0, 10000000};
	struct clone_args ca = {.exit_signal = SIGCHLD};
	unsigned char r[16];
	pthread_t th;
	void *p;
	long pid;
	int st;
	printf("pid %d tid %d\n", syscall(SYS_getpid) == getpid(), syscall(SYS_gettid) == getpid());
	say("bad number", syscall(99999));
	say("bad pointer", syscall(SYS_read, 0, (void *)1, 0xffffffff00000000));
	p = (void *)syscall(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	printf("six arguments %d\n", p != MAP_FAILED && (*(char *)p = 1));
	say("munmap", syscall(SYS_munmap, p, 4096));
	say("getrandom", syscall(SYS_getrandom, r, sizeof r, 0));
	say("write", syscall(SYS_write, 1, "raw\n", 4));
	handlers();
	waits();
	pthread_create(&th, 0, waiter, 0);
	usleep(5000);
	__atomic_store_n(&word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
	pthread_join(th, 0);
	say("changed", syscall(SYS_futex, &word, FUTEX_WAIT, 0, 0, 0, 0));
	say("timed", syscall(SYS_futex, &word, FUTEX_WAIT, 1, &soon, 0, 0));
	say("bad futex", syscall(SYS_futex, (void *)8, FUTEX_WAIT, 1, 0, 0, 0));
	pthread_create(&th, 0, ender, 0);
	pthread_join(th, 0);
	fflush(stdout);
#ifdef SYS_fork
	child("fork", syscall(SYS_fork));
#else
	child("fork", syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
#endif
	child("clone", syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
	pid = syscall(SYS_clone3, &ca, sizeof ca);
	if (pid < 0)
		printf("clone3 1 3\n"); /* an older kernel, or not allowed */
	else
		child("clone3", pid);
	say("clone3 bad", syscall(SYS_clone3, (void *)8, sizeof ca) < 0 ? 0 : 1);
	say("clone bad", syscall(SYS_clone, CLONE_THREAD, 0, 0, 0, 0));
	say("exec bad", syscall(SYS_execve, "/nowhere", argv, 0));
	pid = fork();
	if (!pid) {
		char *args[] = {"/bin/echo", "executed", 0}, *env[] = {0};
		syscall(SYS_execve, args[0], args, env);
		_exit(1);
	}
	waitpid(pid, &st, 0);
	printf("exec %d\n", st);
	fflush(stdout);
	syscall(SYS_exit_group, 0);
	return 1;
}

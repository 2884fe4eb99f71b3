// Handlers as the kernel would call them: arguments, masks, flags, what is told about the one before.
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

extern int __sigaction(int sig, const struct sigaction *act, struct sigaction *old);
static volatile int hits, nested, code, pid_ok, blocked, context_ok;
static sigjmp_buf out;
static int pipes[2];

static void simple(int sig)
{
	hits++;
}

static void other(int sig)
{
	hits += 100;
}

static void full(int sig, siginfo_t *si, void *context)
{
	sigset_t now;
	hits++;
	code = si->si_code;
	pid_ok = si->si_pid == getpid();
	sigprocmask(SIG_BLOCK, 0, &now);
	blocked = sigismember(&now, sig) * 10 + sigismember(&now, SIGUSR2);
	context_ok = ((ucontext_t *)context)->uc_flags != 12345;
}

static void again(int sig)
{
	if (++nested < 12)
		raise(sig);
}

static void jumps(int sig)
{
	siglongjmp(out, 1);
}

static void fault(int sig, siginfo_t *si, void *context)
{
	hits = si->si_addr == (void *)16;
	siglongjmp(out, 1);
}

static void forks(int sig)
{
	if (fork() == 0)
		return; /* the child goes on where we were interrupted */
	wait(0);
}

int main(void)
{
	struct sigaction a, old;
	struct itimerval timer = {{0, 0}, {0, 5000}};
	char b;
	int i, r, jumped = 0, me = getpid();
	setvbuf(stdout, 0, _IONBF, 0);
	memset(&a, 0, sizeof a);
	a.sa_handler = simple;
	printf("set %d\n", sigaction(SIGUSR1, &a, &old));
	printf("was default %d\n", old.sa_handler == SIG_DFL);
	raise(SIGUSR1);
	printf("hits %d\n", hits);
	sigaction(SIGUSR1, 0, &old);
	printf("is mine %d flags %d\n", old.sa_handler == simple, (old.sa_flags & SA_SIGINFO) != 0);
	a.sa_sigaction = full;
	a.sa_flags = SA_SIGINFO;
	sigaddset(&a.sa_mask, SIGUSR2);
	sigaction(SIGUSR1, &a, &old);
	printf("before %d\n", old.sa_handler == simple);
	kill(getpid(), SIGUSR1);
	printf("hits %d code %d pid %d blocked %d\n", hits, code == SI_USER, pid_ok, blocked);
	__sigaction(SIGUSR1, 0, &old);
	printf("is mine %d flags %d mask %d\n", old.sa_sigaction == full, (old.sa_flags & SA_SIGINFO) != 0, sigismember(&old.sa_mask, SIGUSR2));
	for (i = 0; i < 50; i++) { /* more changes than trampolines */
		memset(&a, 0, sizeof a);
		a.sa_handler = i % 2 ? simple : other;
		sigaction(SIGUSR1, &a, &old);
		if (i && old.sa_handler != (i % 2 ? other : simple))
			printf("lost %d\n", i);
	}
	a.sa_handler = SIG_IGN;
	sigaction(SIGUSR1, &a, &old);
	raise(SIGUSR1);
	a.sa_handler = SIG_DFL;
	sigaction(SIGUSR1, &a, &old);
	printf("ignored %d\n", old.sa_handler == SIG_IGN);
	a.sa_handler = simple;
	a.sa_flags = SA_RESETHAND;
	sigaction(SIGUSR1, &a, 0);
	hits = 0;
	raise(SIGUSR1);
	sigaction(SIGUSR1, 0, &old);
	printf("reset %d %d flags %d\n", hits, old.sa_handler == SIG_DFL, (old.sa_flags & (int)(SA_RESETHAND | SA_SIGINFO | SA_RESTART)) == (int)SA_RESETHAND);
	a.sa_handler = again;
	a.sa_flags = SA_NODEFER;
	sigaction(SIGUSR1, &a, 0);
	raise(SIGUSR1);
	printf("nested %d\n", nested);
	a.sa_handler = simple;
	a.sa_flags = 0;
	sigaction(SIGALRM, &a, 0);
	pipe(pipes);
	setitimer(ITIMER_REAL, &timer, 0);
	r = read(pipes[0], &b, 1);
	printf("interrupted %d %d\n", r, errno == EINTR);
	a.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &a, 0);
	if (fork() == 0) {
		usleep(30000);
		write(pipes[1], "x", 1);
		_exit(0);
	}
	setitimer(ITIMER_REAL, &timer, 0);
	r = read(pipes[0], &b, 1);
	printf("restarted %d\n", r);
	wait(0);
	a.sa_handler = jumps;
	sigaction(SIGALRM, &a, 0);
	for (i = 0; i < 20; i++) {
		if (sigsetjmp(out, 1)) {
			jumped++;
			continue;
		}
		timer.it_value.tv_usec = 500;
		setitimer(ITIMER_REAL, &timer, 0);
		read(pipes[0], &b, 1);
	}
	printf("jumped %d\n", jumped);
	a.sa_sigaction = fault;
	a.sa_flags = SA_SIGINFO;
	sigaction(SIGSEGV, &a, 0);
	for (i = 0; i < 3; i++)
		if (!sigsetjmp(out, 1))
			*(volatile int *)16 = 0;
	printf("fault %d\n", hits);
	a.sa_handler = forks;
	a.sa_flags = 0;
	sigaction(SIGUSR2, &a, 0);
	raise(SIGUSR2);
	if (getpid() != me)
		_exit(0);
	puts("forked");
	printf("invalid %d", sigaction(SIGKILL, &a, 0));
	printf(" %d", errno == EINVAL);
	printf(" %d", sigaction(0, &a, 0));
	printf(" %d\n", sigaction(65, 0, &old));
	errno = 77;
	raise(SIGALRM == 0 ? 1 : 0);
	a.sa_handler = simple;
	sigaction(SIGUSR1, &a, 0);
	errno = 77;
	raise(SIGUSR1);
	printf("errno %d\n", errno);
	return 0;
}

// Waiting for signals, with and without handlers.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

extern int __sigsuspend(const sigset_t *), __sigpause(int, int), __xpg_sigpause(int);
extern int bsd_sigpause(int) __asm__("sigpause");
static volatile int hits;

static void handler(int sig)
{
	hits++;
}

static void soon(void)
{
	struct itimerval t = {{0, 0}, {0, 3000}};
	setitimer(ITIMER_REAL, &t, 0);
}

int main(void)
{
	struct timespec none = {0, 0}, ms = {0, 2000000};
	union sigval v = {.sival_int = 42};
	sigset_t set, empty;
	siginfo_t si;
	int sig = 0, ends[2];
	sigemptyset(&empty);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, 0);
	raise(SIGUSR1);
	printf("sigwait %d", sigwait(&set, &sig));
	printf(" %d\n", sig == SIGUSR1);
	printf("sigqueue %d\n", sigqueue(getpid(), SIGRTMIN, v));
	printf("sigwaitinfo %d", sigwaitinfo(&set, &si) == SIGRTMIN);
	printf(" %d %d\n", si.si_code == SI_QUEUE, si.si_value.sival_int);
	printf("timed %d %d\n", sigtimedwait(&set, &si, &none), errno == EAGAIN);
	printf("timed %d %d\n", sigtimedwait(&set, 0, &ms), errno == EAGAIN);
	raise(SIGUSR1);
	printf("timed %d\n", sigtimedwait(&set, 0, &ms) == SIGUSR1);
	raise(SIGUSR1);
	printf("for ever %d\n", sigtimedwait(&set, &si, 0) == SIGUSR1);
	raise(SIGUSR1);
	printf("null %d\n", sigwaitinfo(&set, 0) == SIGUSR1);
	signal(SIGALRM, handler);
	soon();
	printf("pause %d %d", pause(), errno == EINTR);
	printf(" %d\n", hits);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_BLOCK, &set, 0);
	soon();
	printf("sigsuspend %d %d", sigsuspend(&empty), errno == EINTR);
	printf(" %d\n", hits);
	soon();
	printf("__sigsuspend %d", __sigsuspend(&empty));
	printf(" %d\n", hits);
	soon();
	printf("sigpause %d", bsd_sigpause(0));
	printf(" %d\n", hits);
	soon();
	printf("__sigpause %d", __sigpause(SIGALRM, 1));
	printf(" %d\n", hits);
	soon();
	printf("__xpg_sigpause %d", __xpg_sigpause(SIGALRM));
	printf(" %d\n", hits);
	soon();
	printf("interrupted %d", sigwaitinfo(&set, &si) == SIGALRM);
	printf(" %d\n", hits);
	pipe(ends);
	sigaddset(&set, SIGRTMIN + 1);
	sigprocmask(SIG_BLOCK, &set, 0);
	fcntl(ends[0], F_SETOWN, getpid());
	fcntl(ends[0], F_SETSIG, SIGRTMIN + 1);
	fcntl(ends[0], F_SETFL, O_ASYNC);
	write(ends[1], "x", 1);
	printf("readable %d", sigwaitinfo(&set, &si) == SIGRTMIN + 1);
	printf(" %d %d %d\n", si.si_code == POLL_IN, si.si_fd == ends[0], si.si_band != 0);
	printf("EFAULT %d %d\n", sigsuspend((sigset_t *)8), errno == EFAULT);
	printf("gone %d %d\n", sigqueue(0x3fffffff, SIGUSR1, v), errno == ESRCH);
	return 0;
}

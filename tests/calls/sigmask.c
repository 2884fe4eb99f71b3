// Masks.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

extern int sigblock(int), sigsetmask(int);
static volatile int hits;

static void handler(int sig)
{
	hits++;
}

int main(void)
{
	sigset_t set, old;
	signal(SIGUSR1, handler);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	printf("block %d\n", sigprocmask(SIG_BLOCK, &set, &old));
	printf("old %d\n", sigismember(&old, SIGUSR1));
	raise(SIGUSR1);
	printf("hits %d\n", hits);
	printf("pending %d", sigpending(&old));
	printf(" %d\n", sigismember(&old, SIGUSR1));
	printf("unblock %d", sigprocmask(SIG_UNBLOCK, &set, 0));
	printf(" hits %d\n", hits);
	printf("thread %d", pthread_sigmask(SIG_SETMASK, &set, &old));
	printf(" %d\n", sigismember(&old, SIGUSR1));
	sigprocmask(SIG_BLOCK, 0, &old);
	printf("asked %d\n", sigismember(&old, SIGUSR1));
	printf("invalid %d %d %d\n", sigprocmask(99, &set, 0), errno == EINVAL, pthread_sigmask(99, &set, 0) == EINVAL);
	printf("EFAULT %d %d\n", sigpending((sigset_t *)8), errno == EFAULT);
	printf("sigsetmask %d\n", sigsetmask(0) == 1 << (SIGUSR1 - 1));
	printf("sigblock %d\n", sigblock(1 << (SIGUSR1 - 1)));
	sigprocmask(SIG_BLOCK, 0, &old);
	printf("asked %d\n", sigismember(&old, SIGUSR1));
	return 0;
}

// cflags: -O2 -pthread
// A thread waits for a signal that it gets from the first one when that has computed, and a child for one of its parent's: sooner where
// they compute for less.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long sink;
static sigset_t set;

static void burn(unsigned n)
{
	unsigned long x = n;
	for (unsigned k = 0; k < n; k++)
		x = x * 6364136223846793005ul + 1;
	sink = x;
}

static void *told(void *arg)
{
	int sig;
	(void)arg;
	sigwait(&set, &sig);
	return NULL;
}

int main(void)
{
	pthread_t th;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pid_t pid = fork();
	if (!pid) {
		sigwaitinfo(&set, NULL);
		_exit(0);
	}
	pthread_create(&th, NULL, told, NULL);
	burn(300000000);
	pthread_kill(th, SIGUSR1);
	kill(pid, SIGUSR2);
	pthread_join(th, NULL);
	waitpid(pid, NULL, 0);
	puts("done");
	return 0;
}

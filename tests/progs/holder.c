// A child computes for ever without a call, and is killed; its parent waits for it, and other threads go on.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int *ready;

int main(void)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	int s, i;
	pid_t pid, killer;
	ready = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid = fork();
	if (!pid) {
		pthread_mutex_lock(&m);
		*ready = 1;
		for (;;)
			;
	}
	killer = fork();
	if (!killer) {
		while (!*ready)
			usleep(1000);
		usleep(50000);
		kill(pid, SIGKILL);
		_exit(0);
	}
	waitpid(pid, &s, 0);
	printf("child %d\n", WTERMSIG(s));
	waitpid(killer, &s, 0);
	for (i = 0; i < 1000; i++) {
		pthread_mutex_lock(&m);
		pthread_mutex_unlock(&m);
	}
	printf("went on\n");
	return 0;
}

/* A child is killed whose slot lies between those of its parent, which ends last and has to save what the child left: it
 * got one of a thread that had ended, and a thread with a later one is still there. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 100 };
static pthread_barrier_t all;

static void *meet(void *a)
{
	pthread_barrier_wait(&all);
	while (a)
		pause();
	return 0;
}

int main(void)
{
	pthread_t t[N];
	int ready[2], st, i;
	char c = 0;
	pid_t kid;
	pthread_barrier_init(&all, 0, N);
	for (i = 0; i < N; i++)
		pthread_create(&t[i], 0, meet, i == N - 1 ? t : 0);
	for (i = 0; i < N - 1; i++)
		pthread_join(t[i], 0);
	pipe(ready);
	kid = fork();
	if (!kid) {
		write(ready[1], &c, 1);
		for (;;)
			; /* what it recorded stays where it is */
	}
	read(ready[0], &c, 1);
	kill(kid, SIGKILL);
	waitpid(kid, &st, 0);
	printf("%d\n", WTERMSIG(st));
	return 0;
}

// Threads that compute for long before their first call; with an argument, those of another program.
#define _GNU_SOURCE
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *p)
{
	for (volatile long i = 0; i < 40000000; i++)
		;
	pthread_mutex_lock(&m);
	pthread_mutex_unlock(&m);
	return p;
}

int main(int argc, char **argv)
{
	pthread_t t[2];
	pid_t child;
	if (argc > 1) {
		char *again[] = {argv[0], NULL};
		return posix_spawn(&child, argv[0], NULL, NULL, again, environ) || waitpid(child, NULL, 0) < 0;
	}
	work(NULL);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&t[i], NULL, work, NULL))
			return 1;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	return 0;
}

/* "busy": computes, and locks and unlocks now and then, for 0.7 s of CPU time, so that it is as busy on a busy machine. "wait": two threads that wait for each other 5 ms at a time. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static volatile long sink;

static void *waits(void *arg)
{
	int i;
	for (i = 0; i < 20; i++) {
		pthread_barrier_wait(&both);
		if (arg)
			usleep(1000);
		pthread_mutex_lock(&lock);
		if (!arg)
			usleep(6000);
		pthread_mutex_unlock(&lock);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;
	if (argc > 1 && !strcmp(argv[1], "busy")) {
		struct timespec a, b;
		long i;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
		do {
			for (i = 0; i < 20000; i++)
				sink += i;
			pthread_mutex_lock(&lock);
			pthread_mutex_unlock(&lock);
			clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
		} while (b.tv_sec * 1000 + b.tv_nsec / 1000000 < a.tv_sec * 1000 + a.tv_nsec / 1000000 + 700);
		return 0;
	}
	pthread_barrier_init(&both, 0, 2);
	pthread_create(&t, 0, waits, &both);
	waits(0);
	pthread_join(t, 0);
	puts("done");
	return 0;
}

/* Threads that take turns at a mutex, and make a mark half-way: again THREADS ROUNDS. To be re-executed, and stopped in between.
 * What it prints depends on the order. */
#include <prophet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static unsigned long turns, hash;
static int rounds;

static void *work(void *arg)
{
	long self = (long)arg;
	struct timespec ts;
	for (int i = 0; i < rounds; i++) {
		pthread_mutex_lock(&m);
		turns++;
		hash = (hash ^ (unsigned long)self) * 1099511628211ul;
		pthread_mutex_unlock(&m);
		clock_gettime(CLOCK_MONOTONIC, &ts);
		if (i % 16 == 15)
			nanosleep(&(struct timespec){0, 1000}, 0);
		if (self == 1 && i == rounds / 2)
			prophet_mark("half-way");
	}
	return 0;
}

int main(int argc, char **argv)
{
	int n = atoi(argv[1]);
	pthread_t t[64];
	rounds = atoi(argv[argc - 1]);
	for (long i = 0; i < n; i++)
		pthread_create(&t[i], 0, work, (void *)(i + 1));
	for (int i = 0; i < n; i++)
		pthread_join(t[i], 0);
	printf("%lu turns, %lx\n", turns, hash);
	return 3;
}

/* Threads that take turns at a mutex, and make a mark half-way: again THREADS ROUNDS. To be re-executed, and stopped in between.
 * What it prints depends on the order, but for the number of turns, and how often a clock went back. */
#include <prophet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static unsigned long turns, hash, back;
static int rounds;

static int before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

static void *work(void *arg)
{
	long self = (long)arg;
	struct timespec ts, real, was = {0, 0}, real_was = {0, 0};
	for (int i = 0; i < rounds; i++) {
		pthread_mutex_lock(&m);
		turns++;
		hash = (hash ^ (unsigned long)self) * 1099511628211ul;
		pthread_mutex_unlock(&m);
		clock_gettime(CLOCK_MONOTONIC, &ts);
		clock_gettime(CLOCK_REALTIME, &real);
		if (before(&ts, &was) || before(&real, &real_was))
			__atomic_add_fetch(&back, 1, __ATOMIC_RELAXED);
		was = ts;
		real_was = real;
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
	printf("%lu turns, %lu back, %lx\n", turns, back, hash);
	return 3;
}

/* Locks and unlocks N times from under 25 callers; prints nanoseconds of CPU time per lock and unlock, and seconds. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((noinline)) static void loop(long n)
{
	while (n-- > 0) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
}

__attribute__((noinline)) static void deep(int depth, long n)
{
	if (depth)
		deep(depth - 1, n);
	else
		loop(n);
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000000;
	double from;
	deep(22, n / 10);
	from = seconds();
	deep(22, n);
	from = seconds() - from;
	printf("%.3f %.6f\n", from * 1e9 / (double)n / 2, from);
	return 0;
}

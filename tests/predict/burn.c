/* Threads that do nothing but compute, for so many ms of CPU time each; the first one waits for them. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static double most;

static void *burn(void *p)
{
	struct timespec t;
	do {
		for (volatile int i = 0; i < 2000000; i++)
			;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	} while ((double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6 < most);
	return p;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 2;
	pthread_t th[64];
	most = argc > 2 ? atof(argv[2]) : 100;
	for (int i = 0; i < n && i < 64; i++)
		pthread_create(&th[i], NULL, burn, NULL);
	for (int i = 0; i < n && i < 64; i++)
		pthread_join(th[i], NULL);
	return 0;
}

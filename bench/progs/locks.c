// So many threads share one lock for so many turns in all: locks THREADS TURNS. What the lock guards is printed.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long turns, each;

static void *take(void *unused)
{
	for (long i = 0; i < each; i++) {
		pthread_mutex_lock(&m);
		turns++;
		pthread_mutex_unlock(&m);
	}
	return unused;
}

int main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[1]) : 0;
	pthread_t th[64];
	if (n < 1 || n > 64)
		return 2;
	each = atol(argv[2]) / n;
	if (n == 1)
		take(0);
	else {
		for (int i = 0; i < n; i++)
			pthread_create(&th[i], 0, take, 0);
		for (int i = 0; i < n; i++)
			pthread_join(th[i], 0);
	}
	printf("%ld\n", turns);
	return 0;
}

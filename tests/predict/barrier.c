// cflags: -O2
// Threads in lock-step: a barrier made of a mutex and a condition, whose last to come changes from round to round.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int threads, rounds, count, generation;
static volatile unsigned long sink;

static void meet(void)
{
	pthread_mutex_lock(&m);
	int was = generation;
	if (++count == threads) {
		count = 0;
		generation++;
		pthread_cond_broadcast(&c);
	} else {
		while (was == generation)
			pthread_cond_wait(&c, &m);
	}
	pthread_mutex_unlock(&m);
}

static void *work(void *p)
{
	unsigned seed = (unsigned)(long)p + 1;
	for (int i = 0; i < rounds; i++) {
		seed = seed * 1103515245 + 12345;
		unsigned long x = seed;
		for (unsigned k = 0; k < 20000 + (seed >> 16) % 40000; k++)
			x = x * 6364136223846793005ul + 1;
		sink = x;
		meet();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[64];
	threads = argc > 1 ? atoi(argv[1]) : 4;
	rounds = argc > 2 ? atoi(argv[2]) : 200;
	for (long i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	puts("done");
}

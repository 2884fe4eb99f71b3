// cflags: -O2
// Threads in lock-step by a pthread barrier; each round one of them does what only one has to.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_barrier_t barrier;
static int rounds;
static volatile unsigned long sink;

static void burn(unsigned n)
{
	unsigned long x = n;
	for (unsigned k = 0; k < n; k++)
		x = x * 6364136223846793005ul + 1;
	sink = x;
}

static void *work(void *p)
{
	unsigned seed = (unsigned)(long)p + 1;
	for (int i = 0; i < rounds; i++) {
		seed = seed * 1103515245 + 12345;
		burn(20000 + (seed >> 16) % 40000);
		if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
			burn(5000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[64];
	int threads = argc > 1 ? atoi(argv[1]) : 4;
	rounds = argc > 2 ? atoi(argv[2]) : 200;
	pthread_barrier_init(&barrier, NULL, (unsigned)threads);
	for (long i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	puts("done");
}

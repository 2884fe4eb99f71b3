// cflags: -O2
// Threads that want one mutex most of the time, and pthread barriers between rounds.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static int each;
static volatile unsigned long sink, guarded;

static unsigned long burn(unsigned n)
{
	unsigned long x = n;
	for (unsigned k = 0; k < n; k++)
		x = x * 6364136223846793005ul + 1;
	return x;
}

static void *work(void *p)
{
	for (int i = 0; i < each; i++) {
		sink = burn(500 + (unsigned)(i * 7919 + (long)p * 31) % 3000);
		pthread_mutex_lock(&m);
		guarded += burn(2000);
		pthread_mutex_unlock(&m);
		if (i % 64 == 63)
			pthread_barrier_wait(&barrier);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[64];
	int threads = argc > 1 ? atoi(argv[1]) : 4;
	each = argc > 2 ? atoi(argv[2]) : 2000;
	pthread_barrier_init(&barrier, NULL, (unsigned)threads);
	for (long i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	puts("done");
}

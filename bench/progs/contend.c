// Bound by one lock: threads that hold it about as long as they do without it.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int each;
static unsigned long shared;
static volatile unsigned long sink;

static unsigned long burn(unsigned n)
{
	unsigned long x = n;
	for (unsigned k = 0; k < n; k++)
		x = x * 6364136223846793005ul + 1;
	return x;
}

static void *work(void *p)
{
	unsigned seed = (unsigned)(long)p + 1;
	for (int i = 0; i < each; i++) {
		seed = seed * 1103515245 + 12345;
		sink = burn(2000 + (seed >> 16) % 4000);
		pthread_mutex_lock(&m);
		shared += burn(2000 + (seed >> 20) % 4000);
		pthread_mutex_unlock(&m);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[64];
	int threads = argc > 1 ? atoi(argv[1]) : 4;
	each = argc > 2 ? atoi(argv[2]) : 10000;
	for (long i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	printf("%lu\n", shared);
}

// cflags: -O2
// A queue with room for eight: half of the threads put, half take; who waits, and how often, is another matter each time.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER, room = PTHREAD_COND_INITIALIZER;
static int items, each;
static unsigned grain = 20000;
static volatile unsigned long sink;

static void burn(unsigned n)
{
	unsigned long x = n;
	for (unsigned k = 0; k < n; k++)
		x = x * 6364136223846793005ul + 1;
	sink = x;
}

static void *put(void *p)
{
	for (int i = 0; i < each; i++) {
		burn(grain + (unsigned)(i * 7919 + (long)p * 31) % (grain * 3 / 2));
		pthread_mutex_lock(&m);
		while (items == 8)
			pthread_cond_wait(&room, &m);
		items++;
		pthread_cond_signal(&some);
		pthread_mutex_unlock(&m);
	}
	return NULL;
}

static void *take(void *p)
{
	for (int i = 0; i < each; i++) {
		pthread_mutex_lock(&m);
		while (!items)
			pthread_cond_wait(&some, &m);
		items--;
		pthread_cond_signal(&room);
		pthread_mutex_unlock(&m);
		burn(grain + (unsigned)(i * 104729 + (long)p * 17) % (grain * 3 / 2));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[64];
	int threads = argc > 1 ? atoi(argv[1]) : 4;
	each = argc > 2 ? atoi(argv[2]) : 300;
	grain = argc > 3 ? (unsigned)atoi(argv[3]) : grain;
	for (long i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, i % 2 ? take : put, (void *)i);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	puts("done");
}

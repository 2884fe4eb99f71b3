// cflags: -O2
// Threads and the one that makes them take buffers from one pool, so any of them may get the next one; who has made them waits for their ends, in
// the order in which they come to them.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t pool = PTHREAD_MUTEX_INITIALIZER, work = PTHREAD_MUTEX_INITIALIZER, ends = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER, some = PTHREAD_COND_INITIALIZER, ended = PTHREAD_COND_INITIALIZER;
static int buffers = 1, items, over, over_ends, done[16];
static volatile unsigned long sink;

static void burn(unsigned n)
{
	unsigned long x = n;
	for (unsigned k = 0; k < n; k++)
		x = x * 6364136223846793005ul + 1;
	sink = x;
}

static void get(void)
{
	pthread_mutex_lock(&pool);
	while (!buffers)
		pthread_cond_wait(&freed, &pool);
	buffers--;
	pthread_mutex_unlock(&pool);
}

static void put(void)
{
	pthread_mutex_lock(&pool);
	buffers++;
	pthread_cond_signal(&freed);
	pthread_mutex_unlock(&pool);
}

static void *worker(void *p)
{
	for (unsigned n = 0;; n++) {
		pthread_mutex_lock(&work);
		while (!items && !over)
			pthread_cond_wait(&some, &work);
		if (!items) {
			pthread_mutex_unlock(&work);
			break;
		}
		items--;
		pthread_mutex_unlock(&work);
		burn(20000 + (n * 7919 + (unsigned)(long)p * 10007) % 60000);
		get();
		burn(20000 + (n * 104729 + (unsigned)(long)p * 5003) % 60000);
		put();
	}
	pthread_mutex_lock(&ends);
	done[(long)p] = 1;
	over_ends++;
	pthread_cond_broadcast(&ended);
	pthread_mutex_unlock(&ends);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[16];
	int threads = argc > 1 ? atoi(argv[1]) : 3, each = argc > 2 ? atoi(argv[2]) : 100;
	for (long i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, worker, (void *)i);
	for (int i = 0; i < each; i++) {
		get();
		burn(10000 + (unsigned)i * 7919 % 30000);
		put();
		pthread_mutex_lock(&work);
		items++;
		pthread_cond_signal(&some);
		pthread_mutex_unlock(&work);
	}
	pthread_mutex_lock(&work);
	over = 1;
	pthread_cond_broadcast(&some);
	pthread_mutex_unlock(&work);
	for (int n = 0; n < threads; n++) {
		int i = 0;
		pthread_mutex_lock(&ends);
		while (!over_ends)
			pthread_cond_wait(&ended, &ends);
		over_ends--;
		while (done[i] != 1)
			i++;
		done[i] = 2;
		pthread_mutex_unlock(&ends);
		pthread_join(t[i], NULL);
	}
	puts("done");
}

// A ring whose producer waits for no room: it overwrites what nobody has taken. Guarded: yes, re-executes under order alone.
// Fails: exit status 1, "overrun".
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

enum { size = 8, items = 64 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static sem_t full;
static int ring[size], in, out, bad;

static void *produce(void *a)
{
	for (int i = 0; i < items; i++) {
		pthread_mutex_lock(&m);
		ring[in++ % size] = i;
		pthread_mutex_unlock(&m);
		sem_post(&full);
		if (i % 4 == 3)
			usleep(100);
	}
	return 0;
}

static void *consume(void *a)
{
	for (int i = 0; i < items; i++) {
		sem_wait(&full);
		pthread_mutex_lock(&m);
		int v = ring[out++ % size];
		pthread_mutex_unlock(&m);
		if (v != i)
			bad++;
	}
	return 0;
}

int main(void)
{
	sem_init(&full, 0, 0);
	pthread_t t[2];
	pthread_create(&t[0], 0, produce, 0);
	pthread_create(&t[1], 0, consume, 0);
	pthread_join(t[0], 0);
	pthread_join(t[1], 0);
	if (bad) {
		printf("overrun %d\n", bad);
		return 1;
	}
	return 0;
}

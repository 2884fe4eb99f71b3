/* Waits for a condition are cancelled while others hold the mutex, which must be locked again before anything else. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER, waits = PTHREAD_COND_INITIALIZER;
static int waiting, cleaned;

static void cleanup(void *unused)
{
	(void)unused;
	cleaned++;
	pthread_mutex_unlock(&m);
}

static void *wait_for_ever(void *unused)
{
	pthread_mutex_lock(&m);
	pthread_cleanup_push(cleanup, unused);
	waiting = 1;
	pthread_cond_signal(&waits);
	for (;;)
		pthread_cond_wait(&never, &m);
	pthread_cleanup_pop(0);
	return 0;
}

int main(void)
{
	int i, k;
	for (i = 0; i < 20; i++) {
		pthread_t t;
		void *r;
		waiting = 0;
		pthread_create(&t, 0, wait_for_ever, 0);
		pthread_mutex_lock(&m);
		while (!waiting)
			pthread_cond_wait(&waits, &m);
		pthread_cancel(t);
		for (k = 0; k < 3; k++)
			usleep(500);
		pthread_mutex_unlock(&m);
		pthread_join(t, &r);
		if (r != PTHREAD_CANCELED)
			puts("not cancelled");
	}
	printf("%d cleaned up\n", cleaned);
	return 0;
}

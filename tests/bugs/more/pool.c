// The end comes while workers still have jobs; they are never joined. Guarded: yes, re-executes under order alone. Fails:
// exit status 1.
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int jobs, done;

static void *w(void *a)
{
	for (;;) {
		pthread_mutex_lock(&m);
		while (!jobs)
			pthread_cond_wait(&c, &m);
		jobs--;
		pthread_mutex_unlock(&m);
		sched_yield();
		pthread_mutex_lock(&m);
		done++;
		pthread_mutex_unlock(&m);
	}
}

int main(void)
{
	pthread_t t;
	for (int i = 0; i < 4; i++)
		pthread_create(&t, 0, w, 0);
	for (int i = 0; i < 20; i++) {
		pthread_mutex_lock(&m);
		jobs++;
		pthread_cond_signal(&c);
		pthread_mutex_unlock(&m);
	}
	for (int i = 0; i < 3; i++)
		sched_yield();
	pthread_mutex_lock(&m);
	int d = done;
	pthread_mutex_unlock(&m);
	printf("%d\n", d);
	return d != 20;
}

// Lost wake-up: a wait without a predicate, so a signal that comes before it is lost. Guarded: yes, re-executes under
// order alone. Fails: exit status 1, "nobody woke it", as the wait gives up after 40 ms.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;

static void *sleeper(void *a)
{
	struct timespec until;
	int r;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 40000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_mutex_lock(&m);
	r = pthread_cond_timedwait(&c, &m, &until);
	pthread_mutex_unlock(&m);
	return (void *)(long)(r == ETIMEDOUT);
}

int main(void)
{
	pthread_t t;
	void *failed;
	pthread_create(&t, 0, sleeper, 0);
	usleep(3000); /* it waits by now */
	pthread_mutex_lock(&m);
	pthread_cond_signal(&c);
	pthread_mutex_unlock(&m);
	pthread_join(t, &failed);
	if (failed)
		printf("nobody woke it\n");
	return failed != 0;
}

// A request that is given up after a time, and answered all the same, as the answering thread looks too early whether it
// is still wanted. Guarded: yes, re-executes under order alone. Fails: exit status 1, "answered into nothing".
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int given_up, answered;

static void *answer(void *a)
{
	int wanted;
	pthread_mutex_lock(&m);
	wanted = !given_up;
	pthread_mutex_unlock(&m);
	if (wanted) {
		pthread_mutex_lock(&m);
		answered = 1;
		pthread_cond_signal(&c);
		pthread_mutex_unlock(&m);
	}
	return 0;
}

int main(void)
{
	struct timespec until;
	pthread_t t;
	int failed;
	pthread_create(&t, 0, answer, 0);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 300000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_mutex_lock(&m);
	while (!answered && !given_up)
		given_up = pthread_cond_timedwait(&c, &m, &until) != 0;
	given_up = !answered;
	pthread_mutex_unlock(&m);
	pthread_join(t, 0);
	failed = given_up && answered;
	if (failed)
		printf("answered into nothing\n");
	return failed;
}

// A thread that is cancelled while it has a lock. Guarded: yes, re-executes under order alone. Fails: exit status 1, "held".
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include <errno.h>
#include <time.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *a)
{
	for (;;) {
		usleep(50);
		pthread_mutex_lock(&m);
		write(2, "", 0);
		pthread_mutex_unlock(&m);
		pthread_testcancel();
	}
}

int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, work, 0);
	usleep(300);
	pthread_cancel(t);
	pthread_join(t, 0);
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 1;
	if (pthread_mutex_timedlock(&m, &until) == ETIMEDOUT) {
		puts("held");
		return 1;
	}
	return 0;
}

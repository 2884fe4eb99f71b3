// A missing join: the result is fetched when it should be there by now. Guarded: yes, re-executes under order alone.
// Fails: exit status 1, "no result".
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int result;

static void *work(void *a)
{
	int i;
	for (i = 1; i <= 10; i++) {
		pthread_mutex_lock(&m);
		result = i;
		pthread_mutex_unlock(&m);
	}
	return 0;
}

int main(void)
{
	pthread_t t;
	int r;
	pthread_create(&t, 0, work, 0);
	usleep(3000);
	pthread_mutex_lock(&m);
	r = result;
	pthread_mutex_unlock(&m);
	if (r != 10)
		printf("no result\n");
	return r != 10;
}

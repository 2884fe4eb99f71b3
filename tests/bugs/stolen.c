// A wait under `if` instead of `while`: who was woken for an item finds that another took it. Guarded: yes, re-executes
// under order alone. Fails: killed by SIGABRT.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int items;

static void *take(void *a)
{
	pthread_mutex_lock(&m);
	if (!items)
		pthread_cond_wait(&c, &m);
	if (items-- <= 0) {
		fprintf(stderr, "nothing there\n");
		abort();
	}
	pthread_mutex_unlock(&m);
	return 0;
}

static void *give(void *a)
{
	int i;
	for (i = 0; i < 2; i++) {
		pthread_mutex_lock(&m);
		items++;
		pthread_cond_broadcast(&c);
		pthread_mutex_unlock(&m);
	}
	return 0;
}

int main(void)
{
	pthread_t t[3];
	int i;
	pthread_create(&t[0], 0, give, 0);
	for (i = 1; i < 3; i++)
		pthread_create(&t[i], 0, take, 0);
	for (i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	return 0;
}

// Threads that end in every way: return, exit, cancelled in and between calls, with destructors that lock and write.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static int destroyed, cleaned;
static int pipes[2];

static void destroy(void *v)
{
	pthread_mutex_lock(&m);
	destroyed++;
	pthread_mutex_unlock(&m);
	if ((long)v > 1)
		pthread_setspecific(key, (void *)((long)v - 1));
}
static void clean(void *v)
{
	pthread_mutex_lock(&m);
	cleaned++;
	pthread_mutex_unlock(&m);
}

static void *returns(void *a)
{
	pthread_setspecific(key, (void *)3);
	return a;
}
static void *exits(void *a)
{
	pthread_setspecific(key, (void *)1);
	pthread_cleanup_push(clean, 0);
	pthread_exit(a);
	pthread_cleanup_pop(0);
}
static void *reads(void *a)
{
	char c;
	pthread_setspecific(key, (void *)1);
	pthread_cleanup_push(clean, 0);
	read(pipes[0], &c, 1);
	pthread_cleanup_pop(0);
	return 0;
}
static void *spins(void *a)
{
	int old;
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
	for (;;)
		;
}
static void *deferred(void *a)
{
	pthread_cleanup_push(clean, 0);
	for (;;) {
		pthread_mutex_lock(&m);
		pthread_mutex_unlock(&m);
		pthread_testcancel();
	}
	pthread_cleanup_pop(0);
}
static void *sleeps(void *a)
{
	pthread_cleanup_push(clean, 0);
	sleep(1000);
	pthread_cleanup_pop(0);
	return 0;
}
static void *writes(void *a)
{
	char b[4096] = {0};
	int full[2];
	pipe(full);
	pthread_cleanup_push(clean, 0);
	for (;;)
		write(full[1], b, sizeof b);
	pthread_cleanup_pop(0);
}

static void *last(void *main)
{
	void *r;
	pthread_join(*(pthread_t *)main, &r);
	printf("main returned %ld, destroyed %d, cleaned %d\n", (long)r, destroyed, cleaned);
	exit(5);
}

int main(void)
{
	static pthread_t self;
	pthread_t t;
	void *(*cancelled[])(void *) = {reads, spins, deferred, sleeps, writes};
	void *r;
	int i, k;
	pthread_key_create(&key, destroy);
	pipe(pipes);
	for (k = 0; k < 50; k++) {
		pthread_create(&t, 0, returns, (void *)7);
		pthread_join(t, &r);
		if (r != (void *)7)
			printf("returned %p\n", r);
		pthread_create(&t, 0, exits, (void *)8);
		pthread_join(t, &r);
		if (r != (void *)8)
			printf("exited %p\n", r);
		for (i = 0; i < 5; i++) {
			pthread_create(&t, 0, cancelled[i], 0);
			if (k % 2)
				usleep(200);
			pthread_cancel(t);
			pthread_join(t, &r);
			if (r != PTHREAD_CANCELED)
				printf("%d was not cancelled: %p\n", i, r);
		}
	}
	pthread_mutex_lock(&m);
	pthread_mutex_unlock(&m);
	if (!cleaned)
		printf("nothing was cleaned\n");
	cleaned = 0; /* how often depends on where cancellation hit */
	destroyed = 0;
	self = pthread_self();
	pthread_create(&t, 0, last, &self);
	pthread_setspecific(key, (void *)2);
	pthread_exit((void *)9);
}

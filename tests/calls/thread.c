// Threads begin, end and are awaited in every way; names and values stay the program's.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_key_t key;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int destroyed, cleaned;

static void destroy(void *p)
{
	pthread_mutex_lock(&m); /* a lock after the routine is over */
	destroyed += (int)(long)p;
	pthread_mutex_unlock(&m);
}

static void clean(void *p)
{
	pthread_mutex_lock(&m);
	cleaned += (int)(long)p;
	pthread_mutex_unlock(&m);
}

static void *plain(void *p)
{
	pthread_setspecific(key, (void *)1);
	return (char *)p + 1;
}

static void *exits(void *p)
{
	pthread_setspecific(key, (void *)10);
	pthread_cleanup_push(clean, (void *)1);
	pthread_exit((char *)p + 2);
	pthread_cleanup_pop(0);
	return 0;
}

static void *waits(void *p)
{
	pthread_setspecific(key, (void *)100);
	pthread_cleanup_push(clean, (void *)10);
	for (;;)
		pause();
	pthread_cleanup_pop(0);
	return p;
}

static void *cancels_itself(void *p)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
	pthread_cancel(pthread_self());
	for (;;)
		pause();
	return p;
}

static sem_t asked;

/* Cancelled where it asks for the second time: what would come then is not done. */
static void *asks(void *lock)
{
	pthread_testcancel();
	sem_post(&asked);
	pthread_cleanup_push(clean, (void *)1000);
	pthread_mutex_lock(lock);
	pthread_mutex_unlock(lock);
	pthread_testcancel();
	puts("was not cancelled");
	pthread_cleanup_pop(0);
	return 0;
}

static pthread_mutex_t awake = PTHREAD_MUTEX_INITIALIZER;

/* Until it may be joined; a nap alone was over too soon where the machine had others to run. */
static void *naps(void *p)
{
	pthread_mutex_lock(&awake);
	pthread_mutex_unlock(&awake);
	usleep(30000);
	return p;
}

static void *nested(void *p)
{
	pthread_t t;
	void *r;
	pthread_create(&t, 0, plain, p);
	pthread_join(t, &r);
	return r;
}

static struct timespec soon(clockid_t c, long ms)
{
	struct timespec t;
	clock_gettime(c, &t);
	t.tv_nsec += ms * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

int main(void)
{
	pthread_t t, many[64];
	pthread_attr_t a;
	struct timespec ts;
	void *r;
	int i, n;
	pthread_key_create(&key, destroy);
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 1ul << 46);
	printf("first %d\n", pthread_create(&t, &a, plain, 0) == EAGAIN); /* from here on the C library locks its streams */
	printf("create %d\n", pthread_create(&t, 0, plain, (void *)41));
	printf("join %d", pthread_join(t, &r));
	printf(" %ld\n", (long)r);
	pthread_create(&t, 0, exits, (void *)40);
	printf("join %d", pthread_join(t, &r));
	printf(" %ld cleaned %d destroyed %d\n", (long)r, cleaned, destroyed);
	pthread_create(&t, 0, waits, 0);
	usleep(10000);
	printf("cancel %d", pthread_cancel(t));
	printf(" join %d", pthread_join(t, &r));
	printf(" %d cleaned %d destroyed %d\n", r == PTHREAD_CANCELED, cleaned, destroyed);
	pthread_mutex_lock(&awake);
	sem_init(&asked, 0, 0);
	pthread_create(&t, 0, asks, &awake);
	sem_wait(&asked);
	pthread_cancel(t);
	pthread_mutex_unlock(&awake);
	printf("asks %d", pthread_join(t, &r));
	printf(" %d cleaned %d\n", r == PTHREAD_CANCELED, cleaned);
	pthread_create(&t, 0, cancels_itself, 0);
	pthread_join(t, &r);
	printf("self %d\n", r == PTHREAD_CANCELED);
	pthread_create(&t, 0, nested, (void *)1);
	pthread_join(t, &r);
	printf("nested %ld\n", (long)r);
	pthread_mutex_lock(&awake);
	pthread_create(&t, 0, naps, (void *)7);
	printf("try %d\n", pthread_tryjoin_np(t, &r) == EBUSY);
	ts = soon(CLOCK_REALTIME, 1);
	printf("timed %d\n", pthread_timedjoin_np(t, &r, &ts) == ETIMEDOUT);
	ts = soon(CLOCK_MONOTONIC, 1);
	printf("clock %d\n", pthread_clockjoin_np(t, &r, CLOCK_MONOTONIC, &ts) == ETIMEDOUT);
	pthread_mutex_unlock(&awake);
	ts = soon(CLOCK_REALTIME, 5000);
	printf("timed %d", pthread_timedjoin_np(t, &r, &ts));
	printf(" %ld\n", (long)r);
	pthread_create(&t, 0, plain, 0);
	while ((i = pthread_tryjoin_np(t, &r)) == EBUSY)
		usleep(1000);
	printf("try %d\n", i);
	pthread_create(&t, 0, plain, 0);
	ts = soon(CLOCK_MONOTONIC, 5000);
	printf("clock %d\n", pthread_clockjoin_np(t, 0, CLOCK_MONOTONIC, &ts));
	pthread_create(&t, 0, naps, 0);
	printf("detach %d\n", pthread_detach(t));
	pthread_attr_init(&a);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&a, 16384);
	printf("small %d\n", pthread_create(&t, &a, plain, 0));
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_JOINABLE);
	printf("small %d\n", pthread_create(&t, &a, exits, (void *)5));
	pthread_join(t, &r);
	printf("%ld\n", (long)r);
	pthread_attr_setstacksize(&a, 1ul << 46); /* cannot be had */
	printf("huge %d\n", pthread_create(&t, &a, plain, 0) == EAGAIN);
	printf("self join %d\n", pthread_join(pthread_self(), 0) == EDEADLK);
	for (n = 0; n < 20; n++) { /* rings are used again */
		for (i = 0; i < 64; i++)
			if (pthread_create(&many[i], 0, i % 2 ? plain : exits, (void *)(long)i))
				printf("failed\n");
		for (i = 0; i < 64; i++) {
			pthread_join(many[i], &r);
			if ((long)r != i + 1 + !(i % 2))
				printf("wrong %d %ld\n", i, (long)r);
		}
	}
	pthread_create(&t, 0, naps, 0);
	puts("main exits");
	fflush(stdout);
	pthread_exit(0); /* the process ends with its last thread, with 0 */
}

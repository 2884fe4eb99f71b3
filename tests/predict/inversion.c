// cflags: -O2
// Two locks, taken in one order and then in the other. One thread sleeps meanwhile, so that it never meets the other here; where
// computing takes 40 times as long it does, and then both wait for ever.
#include <pthread.h>
#include <time.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;

static void compute(long ms)
{
	struct timespec t;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < ms);
}

static void *first(void *p)
{
	compute(10);
	pthread_mutex_lock(&a);
	compute(50);
	pthread_mutex_lock(&b);
	pthread_mutex_unlock(&b);
	pthread_mutex_unlock(&a);
	return p;
}

static void *second(void *p)
{
	nanosleep(&(struct timespec){1, 0}, NULL);
	pthread_mutex_lock(&b);
	compute(30);
	pthread_mutex_lock(&a);
	pthread_mutex_unlock(&a);
	pthread_mutex_unlock(&b);
	return p;
}

int main(void)
{
	pthread_t t[2];
	pthread_create(&t[0], NULL, first, NULL);
	pthread_create(&t[1], NULL, second, NULL);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
}

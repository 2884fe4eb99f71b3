/* A mutex that cannot be destroyed, as another thread has it. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t b;

static void *holder(void *arg)
{
	pthread_mutex_lock(&m);
	pthread_barrier_wait(&b);
	pthread_barrier_wait(&b);
	pthread_mutex_unlock(&m);
	return arg;
}

int main(void)
{
	pthread_t t;
	pthread_barrier_init(&b, 0, 2);
	pthread_create(&t, 0, holder, 0);
	pthread_barrier_wait(&b);
	printf("%d\n", pthread_mutex_destroy(&m));
	pthread_barrier_wait(&b);
	pthread_join(t, 0);
	printf("%d\n", pthread_mutex_destroy(&m));
	return 0;
}

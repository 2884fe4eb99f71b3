// Threads that compute for long before their first call.
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *p)
{
	for (volatile long i = 0; i < 40000000; i++)
		;
	pthread_mutex_lock(&m);
	pthread_mutex_unlock(&m);
	return p;
}

int main(void)
{
	pthread_t t[2];
	for (int i = 0; i < 2; i++)
		if (pthread_create(&t[i], NULL, work, NULL))
			return 1;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	return 0;
}

// Three locks taken in a ring. Guarded: yes, re-executes under order alone. Fails: deadlock, to be ended by a timeout.
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t m[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

static void *f(void *a)
{
	long i = (long)a;
	pthread_mutex_lock(&m[i]);
	usleep(50);
	pthread_mutex_lock(&m[(i + 1) % 3]);
	pthread_mutex_unlock(&m[(i + 1) % 3]);
	pthread_mutex_unlock(&m[i]);
	return 0;
}

int main(void)
{
	pthread_t t[3];
	for (long i = 0; i < 3; i++)
		pthread_create(&t[i], 0, f, (void *)i);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	return 0;
}

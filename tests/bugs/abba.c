// Two locks taken in opposite orders. Guarded: yes, re-executes under order alone. Fails: deadlock, to be ended by a
// timeout.
#include <pthread.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int moved;

static void move(pthread_mutex_t *from, pthread_mutex_t *to)
{
	pthread_mutex_lock(from);
	pthread_mutex_lock(to);
	moved++;
	pthread_mutex_unlock(to);
	pthread_mutex_unlock(from);
}

static void *back(void *x)
{
	move(&b, &a);
	return 0;
}

static void *forth(void *x)
{
	move(&a, &b);
	return 0;
}

int main(void)
{
	pthread_t t[2];
	pthread_create(&t[0], 0, forth, 0);
	pthread_create(&t[1], 0, back, 0);
	pthread_join(t[0], 0);
	pthread_join(t[1], 0);
	return moved != 2;
}

/* Mutexes of every plain kind: lock, unlock, failed and good tries, wrong uses. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t still = PTHREAD_MUTEX_INITIALIZER;
static long shared;

static void *worker(void *arg)
{
	for (int i = 0; i < 10000; i++) {
		pthread_mutex_lock(&still);
		shared++;
		pthread_mutex_unlock(&still);
	}
	return arg;
}

static void *tries(void *m)
{
	return (void *)(long)pthread_mutex_trylock(m);
}

int main(void)
{
	static const int kinds[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
	pthread_t th[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&th[i], 0, worker, 0);
	for (int i = 0; i < 4; i++)
		pthread_join(th[i], 0);
	printf("shared %ld\n", shared);
	for (int k = 0; k < 4; k++) {
		pthread_mutexattr_t a;
		pthread_mutex_t m;
		void *r;
		pthread_mutexattr_init(&a);
		pthread_mutexattr_settype(&a, kinds[k]);
		pthread_mutex_init(&m, &a);
		printf("kind %d lock %d", k, pthread_mutex_lock(&m));
		pthread_create(&th[0], 0, tries, &m);
		pthread_join(th[0], &r);
		printf(" other's try %s", (long)r == EBUSY ? "busy" : "odd");
		if (kinds[k] != PTHREAD_MUTEX_NORMAL && kinds[k] != PTHREAD_MUTEX_ADAPTIVE_NP) {
			int again = pthread_mutex_lock(&m);
			printf(" again %s", again == 0 ? "0" : again == EDEADLK ? "deadlock" : "odd");
			if (again == 0)
				pthread_mutex_unlock(&m);
		}
		printf(" unlock %d\n", pthread_mutex_unlock(&m));
		if (kinds[k] == PTHREAD_MUTEX_ERRORCHECK)
			printf("not mine %s\n", pthread_mutex_unlock(&m) == EPERM ? "refused" : "odd");
		printf("try %d\n", pthread_mutex_trylock(&m));
		pthread_mutex_unlock(&m);
		printf("destroy %d\n", pthread_mutex_destroy(&m));
	}
	return 0;
}

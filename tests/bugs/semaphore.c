// A semaphore that is posted once too often, where a try for a place failed: one more than there are places is in.
// Guarded: yes, re-executes under order alone. Fails: exit status 1, "too many inside".
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static sem_t places;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int inside, most;

static void *visit(void *a)
{
	int i;
	for (i = 0; i < 3; i++) {
		if (sem_trywait(&places) == 0) {
			pthread_mutex_lock(&m);
			if (++inside > most)
				most = inside;
			pthread_mutex_unlock(&m);
			pthread_mutex_lock(&m);
			inside--;
			pthread_mutex_unlock(&m);
		}
		sem_post(&places);
	}
	return 0;
}

int main(void)
{
	pthread_t t[3];
	int i;
	sem_init(&places, 0, 1);
	for (i = 0; i < 3; i++)
		pthread_create(&t[i], 0, visit, 0);
	for (i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	if (most > 1)
		printf("too many inside\n");
	return most > 1;
}

// A read lock is given up for a write lock, and what was seen under the first is believed under the second. Guarded: yes,
// re-executes under order alone. Fails: exit status 1, "filled twice".
#include <pthread.h>
#include <stdio.h>

static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
static int filled;

static void *fill(void *a)
{
	int empty;
	pthread_rwlock_rdlock(&l);
	empty = !filled;
	pthread_rwlock_unlock(&l);
	if (empty) {
		pthread_rwlock_wrlock(&l);
		filled++;
		pthread_rwlock_unlock(&l);
	}
	return 0;
}

int main(void)
{
	pthread_t t[2];
	int i;
	for (i = 0; i < 2; i++)
		pthread_create(&t[i], 0, fill, 0);
	for (i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	if (filled > 1)
		printf("filled twice\n");
	return filled > 1;
}

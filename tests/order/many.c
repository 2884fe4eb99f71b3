/* Very many objects at once, and very many one after another: each has an order of its own. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define MANY 100000

int main(void)
{
	pthread_rwlock_t *l = calloc(MANY, sizeof *l);
	pthread_cond_t *c = calloc(MANY, sizeof *c);
	long sum = 0;
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < MANY; i++) {
			sum += pthread_rwlock_wrlock(&l[i]);
			sum += pthread_rwlock_unlock(&l[i]);
			sum += pthread_cond_signal(&c[i]);
		}
	for (int i = 0; i < MANY; i++) {
		sum += pthread_rwlock_destroy(&l[i]);
		sum += pthread_cond_destroy(&c[i]);
	}
	for (int i = 0; i < MANY; i++) { /* the places of those are free */
		pthread_rwlock_t *one = malloc(sizeof *one + i % 4096 * 16);
		pthread_rwlock_init(one, 0);
		sum += pthread_rwlock_rdlock(one);
		sum += pthread_rwlock_unlock(one);
		sum += pthread_rwlock_destroy(one);
		free(one);
	}
	printf("%ld\n", sum);
	return 0;
}

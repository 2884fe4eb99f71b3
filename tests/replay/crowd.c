/* Very many threads, some or all of them alive at once, which all take one lock and wait for one condition.
 *
 * crowd ALL ALIVE
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static long sum, come, opened;

static void *body(void *arg)
{
	pthread_mutex_lock(&m);
	sum = sum * 31 + (long)arg;
	come++;
	while (!opened)
		pthread_cond_wait(&c, &m);
	pthread_mutex_unlock(&m);
	return 0;
}

int main(int argc, char **argv)
{
	int all = argc > 2 ? atoi(argv[1]) : 0, alive = argc > 2 ? atoi(argv[2]) : 1, i, n, made = 0;
	pthread_t *th = calloc((size_t)alive, sizeof *th);
	pthread_attr_t a;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 65536);
	for (n = 0; n < all; n += alive) {
		opened = 0;
		for (i = 0; i < alive; i++)
			made += pthread_create(&th[i], &a, body, (void *)(long)(n + i)) == 0;
		pthread_mutex_lock(&m);
		opened = 1;
		pthread_cond_broadcast(&c);
		pthread_mutex_unlock(&m);
		for (i = 0; i < alive; i++)
			pthread_join(th[i], 0);
	}
	printf("%d made, %ld came, %lx\n", made, come, (unsigned long)sum);
	return 0;
}

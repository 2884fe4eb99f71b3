/* What a test rig records: threads take turns at a lock as they come, and print in which order.
 *
 *	race THREADS TURNS [fail]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long order = 5381;
static int turns;

static void *work(void *arg)
{
	int i;
	for (i = 0; i < turns; i++) {
		pthread_mutex_lock(&lock);
		order = order * 33 + (unsigned long)arg;
		pthread_mutex_unlock(&lock);
		if (i % 16 == 0)
			usleep(1);
	}
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t t[64];
	int i, n = argc > 1 ? atoi(argv[1]) : 4;
	turns = argc > 2 ? atoi(argv[2]) : 100;
	for (i = 0; i < n && i < 64; i++)
		pthread_create(&t[i], 0, work, (void *)(unsigned long)(i + 1));
	for (i = 0; i < n && i < 64; i++)
		pthread_join(t[i], 0);
	printf("%lx\n", order);
	return argc > 3 ? 3 : 0;
}

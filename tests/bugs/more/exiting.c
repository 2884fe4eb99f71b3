// What atexit takes down is used by a thread that nobody waits for. Guarded: yes, re-executes under order alone. Fails: killed by
// SIGSEGV.
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int *table;

static void down(void)
{
	pthread_mutex_lock(&m);
	free(table);
	table = 0;
	pthread_mutex_unlock(&m);
	usleep(2000);
}

static void *work(void *a)
{
	for (int i = 0;; i++) {
		pthread_mutex_lock(&m);
		table[i & 15]++;
		pthread_mutex_unlock(&m);
		if (i == 40)
			return 0;
	}
}

int main(void)
{
	table = calloc(16, sizeof *table);
	atexit(down);
	pthread_t t;
	pthread_create(&t, 0, work, 0);
	usleep(300);
	exit(0);
}

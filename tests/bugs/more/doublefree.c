// Two threads free the same memory. Guarded: no, needs --serial. Fails: killed by SIGABRT.
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include <time.h>

static char *volatile p;

static void *drop(void *a)
{
	struct timespec t;
	char *q = p;
	if (q) {
		clock_gettime(CLOCK_REALTIME, &t);
		free(q);
		p = 0;
	}
	return 0;
}

int main(void)
{
	pthread_t t[2];
	p = malloc(100);
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], 0, drop, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	return 0;
}

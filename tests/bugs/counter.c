// A counter that nobody guards; a call lies between reading and writing it. Guarded: no, needs --serial. Fails: exit
// status 1, "lost count".
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static volatile int count;
static struct timespec last;

static void *work(void *a)
{
	int i, x;
	for (i = 0; i < 4; i++) {
		x = count;
		clock_gettime(CLOCK_MONOTONIC, &last);
		count = x + 1;
	}
	return 0;
}

int main(void)
{
	pthread_t t[2];
	int i;
	for (i = 0; i < 2; i++)
		pthread_create(&t[i], 0, work, 0);
	for (i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	if (count != 8)
		printf("lost count\n");
	return count != 8;
}

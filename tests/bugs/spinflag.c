// A flag that a thread spins on, raised before what it announces is there. Guarded: no, needs --serial, where the
// spinning thread is pre-empted. Fails: exit status 1, "came too early".
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static volatile int flag, data;

static void *await(void *a)
{
	while (!flag)
		;
	return (void *)(long)(data == 0);
}

int main(void)
{
	struct timespec now;
	pthread_t t;
	void *failed;
	pthread_create(&t, 0, await, 0);
	flag = 1;
	clock_gettime(CLOCK_MONOTONIC, &now);
	data = 1;
	pthread_join(t, &failed);
	if (failed)
		printf("came too early\n");
	return failed != 0;
}

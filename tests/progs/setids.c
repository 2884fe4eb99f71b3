// Threads change the user while others are created: the C library has each thread take part, and waits for it.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define THREADS 10

static int failed;

static void *changes(void *p)
{
	if (setuid(getuid()) != 0)
		__atomic_add_fetch(&failed, 1, __ATOMIC_RELAXED);
	return p;
}

int main(void)
{
	pthread_t t[THREADS];
	int i, k;
	alarm(60); /* a deadlock is a failure, too */
	for (i = 0; i < 300; i++) {
		for (k = 0; k < THREADS; k++)
			pthread_create(&t[k], 0, changes, 0);
		for (k = 0; k < THREADS; k++)
			pthread_join(t[k], 0);
	}
	printf("failed %d\n", failed);
	return 0;
}

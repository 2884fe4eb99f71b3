// Threads that are given the address of what the loop counts with. Guarded: no, needs --serial. Fails: exit status 1, "twice".
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int seen[8];

static void *work(void *a)
{
	int i = *(int *)a;
	pthread_mutex_lock(&m);
	seen[i & 7]++;
	pthread_mutex_unlock(&m);
	return 0;
}

int main(void)
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], 0, work, &i);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], 0);
	for (int i = 0; i < 4; i++)
		if (seen[i] != 1) {
			printf("twice %d %d %d %d %d\n", seen[0], seen[1], seen[2], seen[3], seen[4]);
			return 1;
		}
	return 0;
}

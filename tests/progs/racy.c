// Threads of several processes add to one number without any lock; under the serial level none of it is lost, as they
// only change turns at calls. argv: processes, threads, rounds.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile long *shared;
static long rounds;

static void *run(void *a)
{
	pthread_mutex_t mine = PTHREAD_MUTEX_INITIALIZER;
	volatile int k;
	long i, x;
	pthread_mutex_lock(&mine);
	for (i = 0; i < rounds; i++) {
		x = *shared;
		for (k = 0; k < 300; k++)
			;
		*shared = x + 1;
		if (i % 64 == 0)
			usleep(1);
		else {
			pthread_mutex_unlock(&mine);
			pthread_mutex_lock(&mine);
		}
	}
	pthread_mutex_unlock(&mine);
	return 0;
}

int main(int argc, char **argv)
{
	int procs = atoi(argv[1]), threads = atoi(argv[2]), i, k;
	pthread_t t[64];
	rounds = atol(argv[3]);
	shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < procs; i++)
		if (!fork()) {
			for (k = 0; k < threads; k++)
				pthread_create(&t[k], 0, run, 0);
			for (k = 0; k < threads; k++)
				pthread_join(t[k], 0);
			_exit(0);
		}
	while (wait(0) > 0)
		;
	printf("%s\n", *shared == (long)procs * threads * rounds ? "none lost" : "some lost");
	return 0;
}

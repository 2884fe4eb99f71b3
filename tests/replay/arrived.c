// Signals come to a thread that waits at a barrier: their handler lets the one come there for which it waits.
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define ROUNDS 4
#define SIGNALS 3

static pthread_barrier_t barrier;
static sem_t ready, handled;

static void handler(int sig)
{
	(void)sig;
	sem_post(&handled);
}

static void *waits(void *first)
{
	int i;
	for (i = 0; i < ROUNDS; i++) {
		sem_post(&ready);
		*(int *)first += pthread_barrier_wait(&barrier) != 0;
	}
	return 0;
}

int main(void)
{
	struct timespec ms = {0, 2000000};
	struct sigaction a;
	pthread_t t;
	int i, k, first = 0, mine = 0;
	memset(&a, 0, sizeof a);
	a.sa_handler = handler;
	sigaction(SIGUSR1, &a, 0);
	sem_init(&ready, 0, 0);
	sem_init(&handled, 0, 0);
	pthread_barrier_init(&barrier, 0, 2);
	pthread_create(&t, 0, waits, &first);
	for (i = 0; i < ROUNDS; i++) {
		while (sem_wait(&ready))
			;
		nanosleep(&ms, 0);
		for (k = 0; k < SIGNALS; k++) {
			pthread_kill(t, SIGUSR1);
			while (sem_wait(&handled))
				;
		}
		mine += pthread_barrier_wait(&barrier) != 0;
	}
	pthread_join(t, 0);
	pthread_barrier_destroy(&barrier);
	printf("%d of %d\n", first + mine, ROUNDS);
	return 0;
}

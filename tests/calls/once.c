/* pthread_once: who runs it, who waits, a routine that is cancelled, one inside another. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static sem_t begun;
static pthread_once_t once = PTHREAD_ONCE_INIT, outer = PTHREAD_ONCE_INIT, inner = PTHREAD_ONCE_INIT, hard = PTHREAD_ONCE_INIT;
static pthread_barrier_t b;
static int runs, early, hard_runs, order[4], at;

static void slow(void)
{
	usleep(20000);
	runs++;
}

static void *worker(void *arg)
{
	pthread_barrier_wait(&b);
	pthread_once(&once, slow);
	if (runs != 1)
		__atomic_add_fetch(&early, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 1000; i++)
		pthread_once(&once, slow);
	return 0;
}

static void in(void)
{
	order[at++] = 2;
}

static void out(void)
{
	order[at++] = 1;
	pthread_once(&inner, in);
	order[at++] = 3;
}

static void try_hard(void)
{
	if (hard_runs++ == 0) {
		sem_post(&begun);
		for (;;)
			pause();
	}
}

static void *cancelled(void *arg)
{
	pthread_once(&hard, try_hard);
	return 0;
}

static void nothing(void)
{
	at++;
}

int main(void)
{
	pthread_t th[16];
	void *r;
	pthread_barrier_init(&b, 0, 16);
	for (int i = 0; i < 16; i++)
		pthread_create(&th[i], 0, worker, 0);
	for (int i = 0; i < 16; i++)
		pthread_join(th[i], 0);
	printf("runs %d early %d\n", runs, early);
	pthread_once(&outer, out);
	printf("order %d%d%d\n", order[0], order[1], order[2]);
	pthread_create(&th[0], 0, cancelled, 0);
	sem_wait(&begun);
	pthread_cancel(th[0]);
	pthread_join(th[0], &r);
	printf("cancelled %d\n", r == PTHREAD_CANCELED);
	pthread_once(&hard, try_hard);
	printf("runs after that %d\n", hard_runs);
	/* The same address again: another control. */
	at = 0;
	for (int i = 0; i < 3; i++) {
		pthread_once_t *o = malloc(sizeof *o);
		*o = PTHREAD_ONCE_INIT;
		pthread_once(o, nothing);
		free(o);
	}
	printf("others %d\n", at);
	return 0;
}

/* Two signals, each sent again as the one before was handled. Whoever includes this says when it is over. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static sem_t handled[2];
static volatile int over;
static int came;

static void handler(int sig)
{
	__atomic_add_fetch(&came, 1, __ATOMIC_RELAXED);
	sem_post(&handled[sig == SIGUSR2]);
}

static void *sends(void *which)
{
	while (!over) {
		sem_wait(&handled[which != 0]);
		kill(getpid(), which ? SIGUSR2 : SIGUSR1);
	}
	return 0;
}

static void *ends(void *none)
{
	return none;
}

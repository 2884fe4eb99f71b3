/* Signals that come at the end of calls whose routines made calls, or that made a thread, which sends them. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define TIMES 200

static volatile int handled;
static int over;
static pthread_once_t onces[TIMES];
static pthread_rwlock_t lock;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_t caller;

static void handler(int sig)
{
	handled++;
}

static void once(void)
{
	pthread_rwlock_init(&lock, 0);
}

static void *sends(void *arg)
{
	int end, sent = 0;
	do {
		pthread_kill(caller, SIGUSR1);
		pthread_mutex_lock(&m);
		end = over;
		pthread_mutex_unlock(&m);
	} while (!end && ++sent < 1000);
	return arg;
}

int main(void)
{
	struct sigaction a = {.sa_handler = handler};
	pthread_t t;
	int i;
	caller = pthread_self();
	sigaction(SIGUSR1, &a, 0);
	pthread_create(&t, 0, sends, 0);
	for (i = 0; i < TIMES; i++) {
		sched_yield();
		pthread_once(&onces[i], once);
		dprintf(1, "%d\n", handled);
	}
	pthread_mutex_lock(&m);
	over = 1;
	pthread_mutex_unlock(&m);
	pthread_join(t, 0);
	return 0;
}

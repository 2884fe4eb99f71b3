/* Two threads send the process a signal each, again and again, whenever the one before was handled; a third one handles both, in and between
 * its calls. It comes to an end if none is lost. Usage: volley ROUNDS. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static sem_t handled[2];
static volatile int over;
static int rounds;

static void handler(int sig)
{
	sem_post(&handled[sig == SIGUSR2]);
}

static void *sends(void *which)
{
	int sig = which ? SIGUSR2 : SIGUSR1, i;
	for (i = 0; i < rounds; i++) {
		sem_wait(&handled[sig == SIGUSR2]);
		kill(getpid(), sig);
	}
	return 0;
}

static void *handles(void *mask)
{
	static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_sigmask(SIG_UNBLOCK, mask, 0);
	while (!over) {
		pthread_mutex_lock(&m);
		pthread_mutex_unlock(&m);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct sigaction a = {.sa_handler = handler};
	pthread_t t[3];
	sigset_t both;
	int i;
	rounds = argc > 1 ? atoi(argv[1]) : 1000;
	sigemptyset(&both);
	sigaddset(&both, SIGUSR1);
	sigaddset(&both, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &both, 0);
	sigaction(SIGUSR1, &a, 0);
	sigaction(SIGUSR2, &a, 0);
	for (i = 0; i < 2; i++)
		sem_init(&handled[i], 0, 1);
	pthread_create(&t[2], 0, handles, &both);
	pthread_create(&t[0], 0, sends, 0);
	pthread_create(&t[1], 0, sends, &both);
	pthread_join(t[0], 0);
	pthread_join(t[1], 0);
	over = 1;
	pthread_join(t[2], 0);
	return printf("%d rounds\n", rounds) < 0;
}

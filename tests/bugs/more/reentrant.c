// A signal handler takes a lock that the thread that it interrupts may have. Guarded: yes, re-executes under order alone. Fails: deadlock,
// to be ended by a timeout.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int n;
static pthread_t first;

static void handler(int sig)
{
	pthread_mutex_lock(&m);
	n++;
	pthread_mutex_unlock(&m);
}

static void *sends(void *a)
{
	for (int i = 0; i < 12; i++) {
		for (int k = 0; k < 40; k++)
			getppid();
		pthread_kill(first, SIGUSR1);
	}
	return 0;
}

int main(void)
{
	struct sigaction sa = {.sa_handler = handler};
	pthread_t t;
	first = pthread_self();
	sigaction(SIGUSR1, &sa, 0);
	pthread_create(&t, 0, sends, 0);
	for (int i = 0; i < 60; i++) {
		for (int k = 0; k < 10; k++)
			getppid();
		pthread_mutex_lock(&m);
		n++;
		pthread_mutex_unlock(&m);
	}
	pthread_join(t, 0);
	return 0;
}

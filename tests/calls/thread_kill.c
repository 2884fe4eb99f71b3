// Signals to threads.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile int got, value;
static pthread_t who;

static void handler(int sig, siginfo_t *si, void *context)
{
	got = sig;
	value = si->si_code == SI_QUEUE ? si->si_value.sival_int : -1;
	who = pthread_self();
}

static void *thread(void *p)
{
	while (!got)
		usleep(1000);
	return (void *)(long)pthread_equal(who, pthread_self());
}

int main(void)
{
	struct sigaction a = {0};
	pthread_t t;
	void *r;
	union sigval v = {.sival_int = 77};
	a.sa_sigaction = handler;
	a.sa_flags = SA_SIGINFO;
	sigaction(SIGUSR1, &a, 0);
	sigaction(SIGRTMIN + 1, &a, 0);
	pthread_create(&t, 0, thread, 0);
	printf("exists %d\n", pthread_kill(t, 0));
	printf("kill %d\n", pthread_kill(t, SIGUSR1));
	pthread_join(t, &r);
	printf("got %d there %ld value %d\n", got == SIGUSR1, (long)r, value);
	printf("invalid %d\n", pthread_kill(pthread_self(), 12345) == EINVAL);
	got = 0;
	pthread_create(&t, 0, thread, 0);
	printf("queue %d\n", pthread_sigqueue(t, SIGRTMIN + 1, v));
	pthread_join(t, &r);
	printf("got %d there %ld value %d\n", got == SIGRTMIN + 1, (long)r, value);
	got = 0;
	pthread_kill(pthread_self(), SIGUSR1);
	printf("self %d\n", got == SIGUSR1);
	return 0;
}

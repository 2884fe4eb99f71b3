// Signals that come as a lock is given back, or a semaphore posted: their handler takes what the call has freed, and nothing says
// that the call was under way.
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static sem_t s;
static pthread_t first;
static volatile int over;
static int locked, taken, posted;

static void handler(int sig)
{
	if (pthread_mutex_trylock(&m) == 0) {
		locked++;
		pthread_mutex_unlock(&m);
	}
	if (sem_trywait(&s) == 0)
		taken++;
}

static void *sends(void *a)
{
	for (int i = 0; i < 500; i++) {
		pthread_kill(first, SIGUSR1);
		for (int k = 0; k < 3000; k++)
			__asm__ volatile("" ::: "memory");
	}
	pthread_mutex_lock(&m);
	over = 1;
	pthread_mutex_unlock(&m);
	return 0;
}

int main(void)
{
	struct sigaction sa = {.sa_handler = handler};
	pthread_t t;
	int done = 0;
	first = pthread_self();
	sem_init(&s, 0, 0);
	sigaction(SIGUSR1, &sa, 0);
	pthread_create(&t, 0, sends, 0);
	while (!done) {
		pthread_mutex_lock(&m);
		done = over;
		pthread_mutex_unlock(&m);
		sem_post(&s);
		posted++;
	}
	pthread_join(t, 0);
	printf("locked %d, taken %d of %d\n", locked, taken, posted);
	return 0;
}

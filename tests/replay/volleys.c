/* A signal comes again and again, each as the one before was handled: as threads begin and end, as they are made, inside of waits, and
 * as the handler of another is about to return. How often is counted, and told. */
#include "storm.h"
#include <time.h>

static int waits;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;

static void *waiting(void *none)
{
	struct timespec ts;
	int i;
	for (i = 0; i < 50; i++) {
		clock_gettime(CLOCK_REALTIME, &ts);
		if ((ts.tv_nsec += 200000) >= 1000000000) {
			ts.tv_nsec -= 1000000000;
			ts.tv_sec++;
		}
		pthread_mutex_lock(&m);
		waits += pthread_cond_timedwait(&c, &m, &ts) != 0;
		pthread_mutex_unlock(&m);
	}
	return none;
}

int main(void)
{
	struct sigaction a = {.sa_handler = handler};
	pthread_t sender[2], t;
	sigset_t both;
	int i;
	sigemptyset(&both);
	sigaddset(&both, SIGUSR1);
	sigaddset(&both, SIGUSR2);
	sigaction(SIGUSR1, &a, 0);
	sigaction(SIGUSR2, &a, 0);
	pthread_sigmask(SIG_BLOCK, &both, 0);
	for (i = 0; i < 2; i++) {
		sem_init(&handled[i], 0, 1);
		pthread_create(&sender[i], 0, sends, i ? &a : 0);
	}
	for (i = 0; i < 50; i++) {
		pthread_sigmask(SIG_UNBLOCK, &both, 0);
		pthread_create(&t, 0, i % 25 ? ends : waiting, 0);
		pthread_sigmask(SIG_BLOCK, &both, 0);
		pthread_join(t, 0);
	}
	over = 1;
	for (i = 0; i < 2; i++) {
		sem_post(&handled[i]);
		pthread_join(sender[i], 0);
	}
	printf("%d signals, %d waits\n", came, waits);
	return 0;
}

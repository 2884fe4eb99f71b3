// Signals come at threads that hand locks, posts and bytes to one another: what a call had done before one came is not
// kept from the others until its handler is through.
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define N 3
#define ROUNDS 300

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t next = PTHREAD_COND_INITIALIZER;
static pthread_t threads[N];
static sem_t full;
static int bytes[2], told[2];
static unsigned long sum, turn;

static void handler(int sig)
{
	char c = (char)sig;
	if (write(told[1], &c, 1) != 1)
		_exit(1);
}

static void *work(void *arg)
{
	unsigned long me = (unsigned long)arg, i;
	char c;
	for (i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		while (i % 8 == 0 && turn != me)
			pthread_cond_wait(&next, &lock);
		if (i % 8 == 0) {
			turn = (me + 1) % N;
			pthread_cond_broadcast(&next);
		}
		sum = sum * 31 + me;
		pthread_mutex_unlock(&lock);
		if (i % 4 == me)
			pthread_kill(threads[(me + 1) % N], SIGUSR1);
		c = (char)me;
		if (write(bytes[1], &c, 1) != 1)
			_exit(1);
		sem_post(&full);
		while (sem_wait(&full) != 0)
			;
		while (read(bytes[0], &c, 1) != 1)
			;
	}
	return 0;
}

int main(void)
{
	struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
	unsigned long i;
	if (pipe(bytes) || pipe(told) || sem_init(&full, 0, 0) || sigaction(SIGUSR1, &a, 0))
		return 1;
	pthread_mutex_lock(&lock); /* until all are known */
	for (i = 0; i < N; i++)
		pthread_create(&threads[i], 0, work, (void *)i);
	pthread_mutex_unlock(&lock);
	for (i = 0; i < N; i++)
		pthread_join(threads[i], 0);
	printf("%lu\n", sum);
	return 0;
}

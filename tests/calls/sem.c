/* Unnamed semaphores: all waits, limits, interruptions, cancellation, overflow, other processes, 2 and 16 threads. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static sem_t a, b, mutex;
static long n;

static struct timespec in(int clk, long ms)
{
	struct timespec t;
	clock_gettime(clk, &t);
	t.tv_nsec += ms * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static void say(const char *what, int r)
{
	printf("%s %d %s\n", what, r, r ? strerror(errno) : "");
}

static void *pong(void *arg)
{
	for (int i = 0; i < 2000; i++) {
		sem_wait(&a);
		sem_post(&b);
	}
	return 0;
}

static void *worker(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		if (i % 3 == 0)
			while (sem_trywait(&mutex))
				;
		else
			sem_wait(&mutex);
		n++;
		sem_post(&mutex);
	}
	return 0;
}

static void *cancelled(void *arg)
{
	sem_post(&b);
	sem_wait(&a);
	return 0;
}

static void on_alarm(int s)
{
}

static void posts(int s)
{
	sem_post(&a);
}

int main(void)
{
	pthread_t th[16];
	struct timespec t, bad = {0, -1};
	struct sigaction sa = {.sa_handler = on_alarm};
	struct itimerval it = {{0, 20000}, {0, 20000}}, off = {{0, 0}, {0, 0}};
	sem_t *s = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	long *count = (long *)(s + 1);
	void *r;
	int v;
	say("init", sem_init(&a, 0, 0));
	say("init", sem_init(&b, 0, 0));
	say("too large", sem_init(&mutex, 0, 1u << 31));
	say("init", sem_init(&mutex, 0, 1));
	pthread_create(&th[0], 0, pong, 0);
	for (int i = 0; i < 2000; i++) {
		sem_post(&a);
		sem_wait(&b);
	}
	pthread_join(th[0], 0);
	for (int i = 0; i < 16; i++)
		pthread_create(&th[i], 0, worker, 0);
	for (int i = 0; i < 16; i++)
		pthread_join(th[i], 0);
	printf("sum %ld\n", n);
	say("empty", sem_trywait(&a));
	t = in(CLOCK_REALTIME, 20);
	say("timed", sem_timedwait(&a, &t));
	t = in(CLOCK_MONOTONIC, 20);
	say("clock", sem_clockwait(&a, CLOCK_MONOTONIC, &t));
	say("bad limit", sem_timedwait(&a, &bad));
	say("bad clock", sem_clockwait(&a, 77, &t));
	sem_post(&a);
	say("full timed", sem_timedwait(&a, &t));
	sem_post(&a);
	say("full clock", sem_clockwait(&a, CLOCK_MONOTONIC, &t));
	sigaction(SIGALRM, &sa, 0);
	setitimer(ITIMER_REAL, &it, 0);
	say("interrupted", sem_wait(&a));
	sa.sa_handler = posts; /* a handler may post */
	sa.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &sa, 0);
	say("posted by a handler", sem_wait(&a));
	setitimer(ITIMER_REAL, &off, 0);
	while (sem_trywait(&a) == 0)
		;
	pthread_create(&th[0], 0, cancelled, 0);
	sem_wait(&b);
	pthread_cancel(th[0]);
	pthread_join(th[0], &r);
	printf("cancelled %d\n", r == PTHREAD_CANCELED);
	say("value", sem_getvalue(&a, &v));
	printf("%d\n", v);
	sem_destroy(&b);
	sem_init(&b, 0, 0x7fffffff);
	say("overflow", sem_post(&b));
	say("destroy", sem_destroy(&a));
	sem_init(s, 1, 1);
	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			for (int k = 0; k < 500; k++) {
				sem_wait(s);
				++*count;
				sem_post(s);
			}
			_exit(0);
		}
	while (wait(0) > 0)
		;
	printf("processes %ld\n", *count);
	sem_destroy(s);
	return 0;
}

// Timers that start threads: what these do no lock orders, but they do it while main sleeps, or when it no longer waits.
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile int ticks, silent;
static sem_t told;

static void tick(union sigval v)
{
	char line[64];
	snprintf(line, sizeof line, "timer %d, tick %d\n", v.sival_int, ++ticks);
	write(1, line, strlen(line));
}

static void quiet(union sigval v)
{
	silent += v.sival_int; /* and calls nothing */
}

static void tell(union sigval v)
{
	(void)v;
	sem_post(&told);
	pthread_exit(0);
}

static timer_t made(void (*fn)(union sigval), int v)
{
	struct sigevent e = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = fn, .sigev_value.sival_int = v};
	timer_t t;
	if (timer_create(CLOCK_MONOTONIC, &e, &t) != 0)
		abort();
	return t;
}

static void set(timer_t t, long first, long then)
{
	struct itimerspec i = {{0, then}, {0, first}};
	if (timer_settime(t, 0, &i, 0) != 0)
		abort();
}

static void *other(void *p)
{
	timer_t t = made(tick, 7);
	set(t, 2000000, 0);
	usleep(40000);
	timer_delete(t);
	return p;
}

int main(void)
{
	int round;
	pthread_t th;
	timer_t never = made(tick, 9), t;
	sem_init(&told, 0, 0);
	set(never, 900000000, 0);
	for (round = 0; round < 3; round++) {
		t = made(tick, round);
		set(t, 20000000, 20000000);
		usleep(70000);
		set(t, 0, 0);
		usleep(30000);
		printf("round %d: %d\n", round, ticks);
		fflush(stdout);
		timer_delete(t);
	}
	t = made(quiet, 100);
	set(t, 20000000, 20000000);
	usleep(50000);
	timer_delete(t);
	usleep(20000);
	printf("silent %d\n", silent);
	t = made(tell, 0);
	set(t, 1000000, 0);
	while (sem_wait(&told) != 0)
		;
	pthread_create(&th, 0, other, 0);
	pthread_join(th, 0);
	printf("%d in all\n", ticks);
	fflush(stdout);
	set(t, 5000000, 0);
	set(made(tick, 5), 5000000, 0);
	usleep(40000);
	return ticks & 63;
}

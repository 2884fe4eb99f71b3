/* Sleeping: whole, interrupted, cancelled, refused. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

extern int __nanosleep(const struct timespec *, struct timespec *);

static void show(const char *what, long r)
{
	int e = errno;
	printf("%s %ld %d\n", what, r, r < 0 ? e : 0);
}

static void nop(int s)
{
	(void)s;
}

static void soon(void)
{
	struct itimerval it = {{0, 0}, {0, 20000}};
	setitimer(ITIMER_REAL, &it, 0);
}

static void *waits(void *p)
{
	struct timespec ts = {100, 0};
	switch ((long)p) {
	case 0:
		sleep(100);
		break;
	case 1:
		usleep(100000000);
		break;
	case 2:
		nanosleep(&ts, 0);
		break;
	case 3:
		clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, 0);
		break;
	}
	return 0;
}

int main(void)
{
	struct timespec ts = {0, 1000000}, left = {0, 0};
	struct sigaction sa = {.sa_handler = nop};
	long i;
	sigaction(SIGALRM, &sa, 0);
	show("sleep", sleep(0));
	show("usleep", usleep(1000));
	show("nanosleep", nanosleep(&ts, 0));
	show("__nanosleep", __nanosleep(&ts, &left));
	show("clock_nanosleep", clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &left));
	soon();
	show("sleep interrupted", sleep(100) > 90);
	ts.tv_sec = 100;
	soon();
	show("nanosleep interrupted", nanosleep(&ts, &left));
	printf("%d\n", left.tv_sec >= 99);
	soon();
	show("nanosleep interrupted", nanosleep(&ts, 0));
	left.tv_sec = 0;
	soon();
	show("clock_nanosleep interrupted", clock_nanosleep(CLOCK_REALTIME, 0, &ts, &left));
	printf("%d\n", left.tv_sec >= 99);
	ts.tv_nsec = -1;
	show("bad", nanosleep(&ts, 0));
	show("clock bad", clock_nanosleep(77, 0, &ts, 0));
	show("nowhere", nanosleep((void *)8, 0));
	show("clock nowhere", clock_nanosleep(CLOCK_MONOTONIC, 0, (void *)8, 0));
	ts.tv_nsec = 0;
	ts.tv_sec = 1;
	show("absolute, past", clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, (void *)8));
	for (i = 0; i < 4; i++) {
		pthread_t t;
		void *got;
		pthread_create(&t, 0, waits, (void *)i);
		usleep(10000);
		pthread_cancel(t);
		pthread_join(t, &got);
		printf("cancelled %ld %d\n", i, got == PTHREAD_CANCELED);
	}
	return 0;
}

/* Timers: set, read, expired, by signal and by thread. */
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static void show(const char *what, long r)
{
	int e = errno;
	printf("%s %ld %d\n", what, r, r < 0 ? e : 0);
}

static volatile int alarms;
static sem_t called;

static void count(int s)
{
	(void)s;
	alarms++;
}

static void notify(union sigval v)
{
	if (v.sival_int == 42)
		sem_post(&called);
}

int main(void)
{
	struct sigaction sa = {.sa_handler = count};
	struct itimerval it = {{0, 0}, {500, 0}}, old;
	struct itimerspec its = {{0, 0}, {0, 1000000}}, was;
	struct sigevent sev = {.sigev_notify = SIGEV_NONE};
	timer_t a, b, c;
	sigset_t none;
	sigemptyset(&none);
	sigaction(SIGALRM, &sa, 0);
	show("alarm", alarm(100));
	show("alarm off", alarm(0));
	show("ualarm", ualarm(1000, 0));
	while (!alarms)
		usleep(1000);
	printf("alarms %d\n", alarms);
	show("setitimer", setitimer(ITIMER_REAL, &it, &old));
	show("getitimer", getitimer(ITIMER_REAL, &old));
	printf("%d\n", old.it_value.tv_sec >= 499);
	memset(&it, 0, sizeof it);
	show("setitimer off", setitimer(ITIMER_REAL, &it, &old));
	show("bad", setitimer(77, &it, 0));
	show("nowhere", getitimer(ITIMER_REAL, (void *)8));
	show("create", timer_create(CLOCK_MONOTONIC, &sev, &a));
	show("settime", timer_settime(a, 0, &its, 0));
	usleep(5000);
	show("gettime", timer_gettime(a, &was));
	printf("%ld %ld\n", (long)was.it_value.tv_sec, was.it_value.tv_nsec);
	show("overrun", timer_getoverrun(a));
	show("create default", timer_create(CLOCK_REALTIME, 0, &b));
	its.it_value.tv_sec = 100;
	show("settime", timer_settime(b, 0, &its, &was));
	show("delete", timer_delete(b));
	sem_init(&called, 0, 0);
	sev.sigev_notify = SIGEV_THREAD;
	sev.sigev_notify_function = notify;
	sev.sigev_value.sival_int = 42;
	show("create thread", timer_create(CLOCK_MONOTONIC, &sev, &c));
	its.it_value.tv_sec = 0;
	show("settime", timer_settime(c, 0, &its, 0));
	while (sem_wait(&called))
		;
	puts("called");
	show("delete", timer_delete(c));
	show("delete", timer_delete(a));
	show("create bad", timer_create(77, &sev, &a));
	return 0;
}

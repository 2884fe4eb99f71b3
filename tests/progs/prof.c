/* What programs do with SIGPROF; each must behave as without stacks by CPU time. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int got, sink;

static void handler(int sig)
{
	got += sig == SIGPROF;
}

static void burn(int ms)
{
	struct timespec a, b;
	int i;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	do {
		for (i = 0; i < 10000; i++)
			sink += i;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	} while ((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < ms);
}

static int odd_calls(int ms)
{
	struct timespec a, b, nap = {0, 10000};
	int odd = 0;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	do {
		odd += poll(0, 0, 0) != 0;
		odd += nanosleep(&nap, 0) != 0;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	} while ((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < ms);
	return odd;
}

static void *thread(void *arg)
{
	burn(60);
	return arg;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	struct itimerval it = {{0, 10000}, {0, 10000}};
	struct sigaction sa;
	sigset_t set;
	pthread_t t;
	int sig = 0;
	burn(30);
	if (!strcmp(mode, "handler")) {
		signal(SIGPROF, handler);
		burn(60);
		printf("before the timer: %d\n", got);
		setitimer(ITIMER_PROF, &it, 0);
		burn(100);
		memset(&it, 0, sizeof it);
		setitimer(ITIMER_PROF, &it, 0);
		printf("%s\n", got > 2 && got < 40 ? "as many as set" : "other");
	} else if (!strcmp(mode, "timer")) {
		setitimer(ITIMER_PROF, &it, 0); /* ends the process */
		burn(1000);
	} else if (!strcmp(mode, "raise")) {
		raise(SIGPROF);
		puts("still here");
	} else if (!strcmp(mode, "ignore")) {
		signal(SIGPROF, SIG_IGN);
		raise(SIGPROF);
		burn(60);
		puts("still here");
	} else if (!strcmp(mode, "default")) {
		memset(&sa, 0, sizeof sa);
		sigaction(SIGPROF, 0, &sa);
		printf("%d", sa.sa_handler == SIG_DFL);
		memset(&sa, 0, sizeof sa);
		sigaction(SIGPROF, &sa, &sa);
		printf("%d", sa.sa_handler == SIG_DFL);
		printf("%d\n", signal(SIGPROF, SIG_DFL) == SIG_DFL);
		burn(60);
	} else if (!strcmp(mode, "wait")) {
		sigfillset(&set);
		pthread_sigmask(SIG_SETMASK, &set, 0);
		pthread_create(&t, 0, thread, 0);
		burn(60);
		pthread_kill(pthread_self(), SIGUSR1);
		sigwait(&set, &sig);
		printf("%d\n", sig == SIGUSR1);
		pthread_join(t, 0);
	} else if (!strcmp(mode, "calls")) {
		printf("%d odd\n", odd_calls(150));
	} else if (!strcmp(mode, "exec")) {
		burn(30);
		execlp("sh", "sh", "-c", "kill -s PROF $$; echo not reached", (char *)0);
	} else if (!strcmp(mode, "fork")) {
		if (!fork()) {
			burn(50);
			return 3;
		}
		burn(50);
		pthread_create(&t, 0, thread, 0);
		pthread_join(t, 0);
		puts("forked");
	}
	return 0;
}

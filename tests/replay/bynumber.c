/* What system calls by number say of time and use, and handlers that one installs. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

static volatile int handled;

static void handler(int sig)
{
	handled++;
}

static void say(const char *what, long r, const void *p, unsigned n)
{
	unsigned i;
	printf("%s %ld", what, r);
	for (i = 0; i < n; i++)
		printf(" %02x", ((const unsigned char *)p)[i]);
	printf("\n");
}

int main(void)
{
	struct {
		void (*fn)(int);
		unsigned long flags, rest[2];
	} k, was;
	struct timespec ts = {0, 0};
	struct timeval tv;
	struct rusage u;
	struct sysinfo si;
	struct tms tm;
	struct itimerval it = {{0, 0}, {0, 50000}}, old;
	struct sigaction a = {.sa_handler = handler};
	unsigned cpu;
	int sig;
#ifdef SYS_time
	time_t t;
	say("time", syscall(SYS_time, &t), &t, sizeof t);
	say("time", syscall(SYS_time, 0), 0, 0);
#endif
	say("clock_gettime", syscall(SYS_clock_gettime, CLOCK_REALTIME, &ts), &ts, sizeof ts);
	say("clock_gettime", syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &ts), &ts, sizeof ts);
	say("clock_gettime", syscall(SYS_clock_gettime, 99, &ts), 0, 0);
	say("clock_getres", syscall(SYS_clock_getres, CLOCK_MONOTONIC, &ts), &ts, sizeof ts);
	say("gettimeofday", syscall(SYS_gettimeofday, &tv, 0), &tv, sizeof tv);
	say("getcpu", syscall(SYS_getcpu, &cpu, 0, 0), &cpu, sizeof cpu);
	say("times", syscall(SYS_times, &tm), &tm, sizeof tm);
	say("getrusage", syscall(SYS_getrusage, RUSAGE_SELF, &u), &u, sizeof u);
	say("sysinfo", syscall(SYS_sysinfo, &si), &si, sizeof si);
	ts = (struct timespec){0, 1000000};
	say("nanosleep", syscall(SYS_nanosleep, &ts, 0), 0, 0);
	say("clock_nanosleep", syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ts, 0), 0, 0);

	/* As the C library has them, so that they come back as it does. */
	sigaction(SIGALRM, &a, 0);
	say("rt_sigaction", syscall(SYS_rt_sigaction, SIGALRM, 0, &k, 8), 0, 0);
	for (sig = SIGUSR1; sig <= SIGALRM; sig += SIGALRM - SIGUSR1) {
		say("rt_sigaction", syscall(SYS_rt_sigaction, sig, &k, &was, 8), 0, 0);
		say("rt_sigaction", syscall(SYS_rt_sigaction, sig, 0, &was, 8), 0, 0);
		printf("handler %d %d\n", was.fn == handler, was.flags == k.flags);
	}
	raise(SIGUSR1);
	printf("handled %d\n", handled);
	syscall(SYS_kill, getpid(), SIGUSR1);
	printf("handled %d\n", handled);
	say("setitimer", syscall(SYS_setitimer, ITIMER_REAL, &it, &old), &old, sizeof old);
	pause();
	printf("handled %d\n", handled);
	syscall(SYS_setitimer, ITIMER_REAL, &it, 0);
	ts.tv_sec = 10;
	say("nanosleep", syscall(SYS_nanosleep, &ts, &ts), &ts, sizeof ts);
	sigaction(SIGALRM, 0, &a);
	printf("handled %d, by the same %d\n", handled, a.sa_handler == handler);
	return 0;
}

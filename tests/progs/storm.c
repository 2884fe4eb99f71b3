// A timer at 10 kHz whose handler locks, writes and asks the time, while the main thread does the same. What was done
// is counted and printed at the end on descriptor 3, for the test to compare with the trace.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mine = PTHREAD_MUTEX_INITIALIZER, its = PTHREAD_MUTEX_INITIALIZER;
static volatile long handled, locks, writes, clocks;
static int null;

static void tick(int sig)
{
	int was = errno;
	struct timespec ts;
	handled++;
	pthread_mutex_lock(&its);
	write(null, "abc", 3);
	pthread_mutex_unlock(&its);
	clock_gettime(CLOCK_REALTIME, &ts);
	errno = was;
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = tick, .sa_flags = SA_RESTART};
	struct itimerval every = {{0, 100}, {0, 100}}, stop = {{0, 0}, {0, 0}};
	struct timespec ts;
	char b[256];
	long i, n = argc > 1 ? atol(argv[1]) : 1000000;
	null = open("/dev/null", O_WRONLY);
	sigaction(SIGALRM, &sa, 0);
	setitimer(ITIMER_REAL, &every, 0);
	for (i = 0; i < n; i++) {
		pthread_mutex_lock(&mine);
		locks++;
		if (i % 4 == 0) {
			errno = 1234;
			write(null, "a", 1);
			writes++;
			if (errno != 1234)
				return 9;
		}
		if (i % 4 == 1) {
			clock_gettime(CLOCK_MONOTONIC, &ts);
			clocks++;
		}
		pthread_mutex_unlock(&mine);
	}
	setitimer(ITIMER_REAL, &stop, 0);
	FILE *f = fopen(argv[2], "w");
	fprintf(f, "%ld %ld %ld %ld\n", locks + handled, writes + handled, clocks + handled, handled);
	fclose(f);
	return handled < 10 ? 1 : 0;
}

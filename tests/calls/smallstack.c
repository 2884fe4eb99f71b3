// A handler on an alternate stack that has room for the kernel's frame and half a KiB, called wherever locks and clocks are:
// nothing is written below it.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int hits;

static void handler(int sig)
{
	hits++;
}

int main(void)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	struct sigaction a;
	struct itimerval timer = {{0, 200}, {0, 200}};
	long page = sysconf(_SC_PAGESIZE), whole = 4 * page, size = getauxval(AT_MINSIGSTKSZ) + 512;
	char *base = mmap(0, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t ss = {.ss_sp = base + whole - size, .ss_size = size};
	struct timespec ts;
	memset(&a, 0, sizeof a);
	memset(base, 0x55, whole);
	printf("set %d\n", sigaltstack(&ss, 0));
	a.sa_handler = handler;
	a.sa_flags = SA_ONSTACK;
	sigaction(SIGALRM, &a, 0);
	setitimer(ITIMER_REAL, &timer, 0);
	while (hits < 200) {
		pthread_mutex_lock(&m);
		clock_gettime(CLOCK_MONOTONIC, &ts);
		pthread_mutex_unlock(&m);
	}
	memset(&timer, 0, sizeof timer);
	setitimer(ITIMER_REAL, &timer, 0);
	long below = 0;
	while (below < whole - size && base[below] == 0x55)
		below++;
	printf("below %d\n", below == whole - size);
	return 0;
}

// Handlers on an alternate stack of the smallest size, called while locks and clocks are at work.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int hits, on_stack;
static char *base;
static size_t size;

static void handler(int sig)
{
	struct timespec ts;
	char here;
	clock_gettime(CLOCK_REALTIME, &ts);
	on_stack = &here >= base && &here < base + size;
	hits++;
}

static void overflow(int sig, siginfo_t *si, void *context)
{
	write(1, "overflow\n", 9);
	_exit(0);
}

static int recurse(int n)
{
	volatile char pad[4096];
	pad[0] = n;
	return recurse(n + 1) + pad[0];
}

int main(void)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	struct sigaction a;
	struct itimerval timer = {{0, 200}, {0, 200}};
	stack_t ss, old;
	long page = sysconf(_SC_PAGESIZE), i;
	size = getauxval(AT_MINSIGSTKSZ) + 2048;
	size = (size + page - 1) / page * page;
	base = mmap(0, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(base, page, PROT_NONE); /* below is a fault */
	base += page;
	memset(&ss, 0, sizeof ss);
	ss.ss_sp = base;
	ss.ss_size = size;
	printf("set %d\n", sigaltstack(&ss, 0));
	printf("get %d", sigaltstack(0, &old));
	printf(" %d %d\n", old.ss_sp == base, old.ss_size == size);
	memset(&a, 0, sizeof a);
	a.sa_handler = handler;
	a.sa_flags = SA_ONSTACK;
	sigaction(SIGALRM, &a, 0);
	setitimer(ITIMER_REAL, &timer, 0);
	while (hits < 200) {
		struct timespec ts;
		pthread_mutex_lock(&m);
		clock_gettime(CLOCK_MONOTONIC, &ts);
		pthread_mutex_unlock(&m);
	}
	memset(&timer, 0, sizeof timer);
	setitimer(ITIMER_REAL, &timer, 0);
	printf("on stack %d\n", on_stack);
	ss.ss_size = 10;
	printf("small %d %d\n", sigaltstack(&ss, 0), errno == ENOMEM);
	a.sa_sigaction = overflow;
	a.sa_flags = SA_ONSTACK | SA_SIGINFO;
	sigaction(SIGSEGV, &a, 0);
	fflush(stdout);
	return recurse(0);
}

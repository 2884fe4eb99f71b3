// Threads that call all the time and notice by the CPU's ticks, which no pause hides, when they stood still for more than
// 200 ms. Says at the end when each went on after each time. Arguments: threads, and whether they
// compute. Ends when its standard input does.
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define RESTS 64

static unsigned long long ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	unsigned long long v;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
#endif
}

static atomic_int over, ready;
static unsigned long long gap, ends[64][RESTS];
static int n[64], computes;

static void *run(void *arg)
{
	int me = (int)(long)arg;
	unsigned long long last = ticks(), now;
	ready++;
	while (!over) {
		if (!computes)
			poll(0, 0, 0);
		now = ticks();
		if (now - last > gap && n[me] < RESTS)
			ends[me][n[me]++] = now;
		last = now;
	}
	return arg;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1, i, k;
	pthread_t t[64];
	struct timespec ts = {0, 10000000};
	char c;
	computes = argc > 2;
	for (i = 0, gap = ~0ull; i < 10; i++) { // the fastest: one that the machine held up would make the gap longer than the rests
		unsigned long long begin = ticks(), took;
		nanosleep(&ts, 0);
		took = (ticks() - begin) * 20; // 200 ms: shorter ones are the machine's doing
		gap = took < gap ? took : gap;
	}
	for (i = 0; i < threads; i++)
		pthread_create(&t[i], 0, run, (void *)(long)i);
	while (ready < threads)
		poll(0, 0, 1);
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	over = 1;
	for (i = 0; i < threads; i++)
		pthread_join(t[i], 0);
	for (i = 0; i < threads; i++)
		for (k = 0; k < n[i]; k++)
			printf("%llu\n", ends[i][k]);
	return 0;
}

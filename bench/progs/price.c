/* What one intercepted call costs: the same loops, to be run bare and under the library, alternately.
 *
 * Prints one line a loop: its name and nanoseconds per call (the least of REPS rounds, as everything that disturbs
 * only adds). The clock is asked by a raw system call, so that the measurement itself is not intercepted.
 *
 *	price [CALLS [REPS [LOOP [CPU]]]]
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline uint64_t ticks(void)
{
#ifdef __x86_64__
	uint32_t lo, hi;
	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
#else
	uint64_t v;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
#endif
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int null_fd, zero_fd;
static volatile uint64_t sink;

static void loop_stamp(long n)
{
	while (n-- > 0)
		sink += ticks();
}

static void loop_mutex(long n) /* n events: lock and unlock */
{
	for (n /= 2; n > 0; n--) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
}

static void loop_clock(long n)
{
	struct timespec t;
	while (n-- > 0)
		clock_gettime(CLOCK_MONOTONIC, &t);
}

static void loop_write(long n)
{
	while (n-- > 0)
		if (write(null_fd, "x", 1) != 1)
			abort();
}

static void loop_read(long n)
{
	char c;
	while (n-- > 0)
		if (read(zero_fd, &c, 1) != 1)
			abort();
}

static const struct loop {
	const char *name;
	void (*run)(long);
	long share; /* calls a round: total divided by this */
} loops[] = {{"stamp", loop_stamp, 1}, {"mutex", loop_mutex, 1}, {"clock", loop_clock, 4}, {"write", loop_write, 16}, {"read", loop_read, 16}};

int main(int argc, char **argv)
{
	long total = argc > 1 ? atol(argv[1]) : 4000000, reps = argc > 2 ? atol(argv[2]) : 8;
	const char *only = argc > 3 ? argv[3] : "";
	if (argc > 4) {
		cpu_set_t one;
		CPU_ZERO(&one);
		CPU_SET(atoi(argv[4]), &one);
		sched_setaffinity(0, sizeof one, &one);
	}
	null_fd = open("/dev/null", O_WRONLY);
	zero_fd = open("/dev/zero", O_RDONLY);
	for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
		long n = total / loops[i].share;
		double best = 1e18;
		if (*only && strcmp(only, loops[i].name))
			continue;
		for (long r = 0; r < reps; r++) {
			double a = now(), t;
			loops[i].run(n);
			t = (now() - a) / (double)n;
			if (t < best)
				best = t;
		}
		printf("%s %.2f\n", loops[i].name, best);
	}
	return 0;
}

// Reads all clocks again and again, in processes and threads that share what was read last: a clock never goes back, and
// all tell the same time. Arguments: processes, threads of each, and with a third "compute" before each look. Ends when
// its standard input does.
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timeb.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const clockid_t ids[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_MONOTONIC_RAW, CLOCK_TAI, CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE};
#define N (int)(sizeof ids / sizeof *ids)

static struct shared {
	atomic_llong last[N + 4];
	atomic_llong looks, back, apart, ready;
} * s;
static atomic_int over;
static int computes;

static long long get(clockid_t c)
{
	struct timespec ts;
	clock_gettime(c, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

static void seen(int i, long long before, long long now)
{
	long long was = atomic_load(&s->last[i]);
	if (now < before) {
		printf("clock %d went back by %lld ns\n", i, before - now);
		s->back++;
	}
	while (now > was && !atomic_compare_exchange_weak(&s->last[i], &was, now))
		;
}

static void look(void)
{
	struct timeval tv;
	struct timespec ts;
	struct timeb tb;
	struct tms tms;
	long long a, z, v;
	for (int i = 0; i < N; i++) {
		long long before = atomic_load(&s->last[i]);
		seen(i, before, get(ids[i]));
	}
	long long before = atomic_load(&s->last[N]);
	seen(N, before, times(&tms));
	before = atomic_load(&s->last[N + 1]);
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ts);
	seen(N + 1, before, ts.tv_sec * 1000000000ll + ts.tv_nsec);
	// All that tell the time of day tell the same: what was read between two readings lies between them.
	a = get(CLOCK_REALTIME);
	gettimeofday(&tv, 0);
	v = tv.tv_sec * 1000000ll + tv.tv_usec;
	z = get(CLOCK_REALTIME);
	if (v < a / 1000 || v > z / 1000)
		printf("gettimeofday is apart\n"), s->apart++;
	timespec_get(&ts, TIME_UTC);
	v = ts.tv_sec * 1000000000ll + ts.tv_nsec;
	if (v < z || v > get(CLOCK_REALTIME))
		printf("timespec_get is apart\n"), s->apart++;
	ftime(&tb);
	v = tb.time * 1000ll + tb.millitm;
	if (v < z / 1000000 || v > get(CLOCK_REALTIME) / 1000000)
		printf("ftime is apart\n"), s->apart++;
	v = time(0); // may lag by a tick of the kernel's
	if (v < (z - 20000000) / 1000000000 || v > get(CLOCK_REALTIME) / 1000000000)
		printf("time is apart\n"), s->apart++;
	s->looks++;
}

static void *run(void *arg)
{
	s->ready++;
	do {
		if (computes)
			for (volatile int i = 0; i < 3000000; i++)
				;
		look();
	} while (!over);
	return arg;
}

int main(int argc, char **argv)
{
	int procs = argc > 1 ? atoi(argv[1]) : 1, threads = argc > 2 ? atoi(argv[2]) : 1, i;
	pthread_t t[64];
	char c;
	computes = argc > 3;
	setvbuf(stdout, 0, _IOLBF, 0);
	s = mmap(0, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (i = 1; i < procs && fork(); i++)
		;
	int child = i < procs;
	for (i = 0; i < threads; i++)
		pthread_create(&t[i], 0, run, 0);
	if (!child) {
		while (s->ready < procs * threads)
			poll(0, 0, 1);
		puts("ready");
	}
	while (read(0, &c, 1) > 0)
		;
	over = 1;
	for (i = 0; i < threads; i++)
		pthread_join(t[i], 0);
	if (child)
		_exit(0);
	while (wait(0) > 0)
		;
	printf("%lld back, %lld apart\n", s->back, s->apart);
	return s->back + s->apart != 0;
}

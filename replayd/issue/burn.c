#include "burn.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#define LCG_MUL 6364136223846793005u
#define LCG_ADD 1442695040888963407u

#define INTERRUPTS_MAX 1.03

/*
 * The plain loop. One chain of dependent instructions, with a load from the innermost cache in it, sets its time; two others
 * beside it fill the CPU to more than two instructions a cycle, as compiled programs do, so that a sibling thread on the same
 * core slows it (the one chain alone would not mind a sibling at all). The chains have room: where they fill all ports of the
 * CPU its time varies twenty times as much. It does not depend on the values.
 */
__attribute__((noinline, aligned(64))) static void spin(struct burn_thread *t, uint64_t n)
{
	uint64_t x = t->x, y = t->y, z = t->z;
	const uint64_t *table = t->table;
	for (; n; n--) {
		x = x * LCG_MUL + LCG_ADD;
		y ^= y << 13;
		y ^= y >> 7;
		y ^= y << 17;
		z ^= z << 23;
		z ^= z >> 5;
		z += z << 9;
		z ^= table[(y >> 9) % BURN_TABLE];
		x += table[(x >> 32) % BURN_TABLE];
	}
	t->x = x;
	t->y = y;
	t->z = z;
}

/*
 * Walks n lines with so many iterations before each. The next place waits for what the last line held, as a search in a table
 * does: a line that is not in the cache costs its whole latency.
 */
__attribute__((noinline, aligned(64))) static void walk(struct burn_thread *t, uint64_t lines, uint64_t each, uint64_t n)
{
	uint64_t at = t->at;
	for (; n; n--) {
		spin(t, each);
		at = at * LCG_MUL + LCG_ADD;
		at += *(const volatile uint64_t *)(t->memory + ((at >> 32) * lines >> 32) * BURN_LINE);
	}
	t->at = at;
}

void burn(const struct burn *b, struct burn_thread *t, uint64_t ns)
{
	double left = (double)ns + t->owed_ns;
	if (left < b->call_ns + b->iter_ns / 2) {
		t->owed_ns = left;
		return;
	}
	left -= b->call_ns;
	if (b->block_ns > 0 && t->memory) {
		if (t->unwalked_ns >= b->block_ns && left >= b->line_ns) {
			walk(t, b->lines, 0, 1);
			left -= b->line_ns;
			t->unwalked_ns -= b->block_ns;
		}
		if (left >= b->block_ns) {
			uint64_t blocks = (uint64_t)(left / b->block_ns);
			walk(t, b->lines, BURN_SPIN, blocks);
			left -= (double)blocks * b->block_ns;
		}
		if (t->unwalked_ns < b->block_ns)
			t->unwalked_ns += left;
	}
	uint64_t n = (uint64_t)(left / b->iter_ns + 0.5);
	t->owed_ns = left - (double)n * b->iter_ns;
	spin(t, n);
}

int burn_thread_start(struct burn_thread *t, const struct burn *b)
{
	memset(t, 0, sizeof *t);
	t->x = 1;
	t->y = 88172645463325252u;
	t->z = 362436069362436069u;
	t->at = (uint64_t)(uintptr_t)t; /* threads begin at different places */
	if (!b->lines)
		return 0;
	size_t size = b->lines * BURN_LINE;
	char *m = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m == MAP_FAILED)
		return errno;
	/* Untouched pages would all be the one page of zeros, which is always in the cache. */
	memset(m, 0, size);
	for (size_t i = 0; i < size; i += 4096)
		*(volatile char *)(m + i) = 0;
	t->memory = m;
	return 0;
}

void burn_thread_end(struct burn_thread *t, const struct burn *b)
{
	if (t->memory)
		munmap((void *)t->memory, b->lines * BURN_LINE);
	t->memory = NULL;
}

/* ---- calibration ---- */

enum {
	RUNS = 400,
	RUN_NS = 40000, /* short enough that few runs are interrupted */
	LONG_RUNS = 12,
	LONG_NS = 2500000, /* long enough that each is interrupted as often as all */
	CALLS = 64, /* in a run that finds the price of a call */
	WARM_NS = 8000000, /* for the clock rate to rise on a core that slept */
	PART_NS = 30000000, /* a measurement ends after this long, with at least RUNS_MIN runs */
	RUNS_MIN = 16,
};

static double read_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double now_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/*
 * The mean of the densest half. Runs that were interrupted, and those beside a busy sibling or at a lower clock rate, lie
 * elsewhere and do not count while they are fewer; the fastest run of all is no better guide: it is two per cent faster here
 * than what a core keeps up. spread: the width of that half as a share of the mean.
 */
static double densest(double *v, int n, double *spread)
{
	qsort(v, n, sizeof *v, compare);
	int half = (n + 1) / 2, best = 0;
	for (int i = 0; i + half <= n; i++) {
		if (v[i + half - 1] - v[i] < v[best + half - 1] - v[best])
			best = i;
	}
	double sum = 0;
	for (int i = best; i < best + half; i++)
		sum += v[i];
	double mean = sum / half;
	if (spread)
		*spread = mean > 0 ? (v[best + half - 1] - v[best]) / mean : 0;
	return mean;
}

/* What one reading of the clock costs a measurement that stands between two. */
static double clock_ns(void)
{
	double v[RUNS];
	for (int i = 0; i < RUNS; i++) {
		double a = now_ns();
		v[i] = now_ns() - a;
	}
	return densest(v, RUNS, NULL);
}

enum part { PLAIN, CALL, LINE, BLOCK };

/* The same of the thread's CPU time, with the readings of the clock that stand between. */
static double cpu_clock_ns(void)
{
	double v[RUNS];
	for (int i = 0; i < RUNS; i++) {
		double a = read_ns(CLOCK_THREAD_CPUTIME_ID);
		now_ns();
		now_ns();
		v[i] = read_ns(CLOCK_THREAD_CPUTIME_ID) - a;
	}
	return densest(v, RUNS, NULL);
}

/* One run of a part; how many of its units it was. */
static uint64_t run(enum part what, const struct burn *b, struct burn_thread *t, uint64_t n)
{
	switch (what) {
	case PLAIN:
		spin(t, n);
		break;
	case CALL:
		for (uint64_t i = 0; i < n; i++) {
			t->owed_ns = 0;
			burn(b, t, 100);
		}
		break;
	case LINE:
		walk(t, b->lines, 0, n);
		break;
	case BLOCK:
		walk(t, b->lines, BURN_SPIN, n);
		break;
	}
	return n;
}

static double measure(enum part what, const struct burn *b, struct burn_thread *t, uint64_t n, double clock, double *spread)
{
	double v[RUNS], begin = now_ns();
	int i = 0;
	while (i < RUNS) {
		double a = now_ns();
		uint64_t units = run(what, b, t, n);
		double e = now_ns();
		v[i++] = (e - a - clock) / (double)units;
		if (i >= RUNS_MIN && e - begin > PART_NS)
			break;
	}
	return densest(v, i, spread);
}

/*
 * How much longer everything takes for the interrupts that an idle core has, too. They are part of the demand as it was
 * recorded, so they belong to the price of an iteration; more than INTERRUPTS_MAX is not the clock's ticks but somebody else
 * on the core, and is left out.
 */
static double interrupts(double iter_ns, struct burn_thread *t)
{
	double v[LONG_RUNS], begin = now_ns();
	int n = 0;
	while (n < LONG_RUNS && (n < 4 || now_ns() - begin < 2.0 * LONG_RUNS * LONG_NS)) {
		double a = now_ns();
		uint64_t iters = (uint64_t)(LONG_NS / iter_ns);
		spin(t, iters);
		v[n++] = (now_ns() - a) / (double)iters;
	}
	double longer = densest(v, n, NULL) / iter_ns;
	return longer >= 1 && longer <= INTERRUPTS_MAX ? longer : 1;
}

/* How many units take about RUN_NS. The fastest of some runs says so: one that was interrupted would leave runs so short that
 * there is nothing but the clock in them. */
static uint64_t units(enum part what, const struct burn *b, struct burn_thread *t)
{
	for (uint64_t n = 16;; n *= 2) {
		double took = INFINITY;
		for (int i = 0; i < 4; i++) {
			double a = now_ns();
			run(what, b, t, n);
			took = fmin(took, now_ns() - a);
		}
		if (took > RUN_NS / 4 || n > 1 << 24)
			return (uint64_t)(n * RUN_NS / (took > 1 ? took : 1)) + 1;
	}
}

static void calibrate_walk(struct burn *b, struct burn_thread *t, double clock)
{
	/* Into the cache what fits: each line is met with more than 98 % chance in four rounds' worth. */
	double begin = now_ns();
	for (int i = 0; i < 4 && now_ns() - begin < PART_NS; i++)
		walk(t, b->lines, 0, b->lines);
	b->line_ns = measure(LINE, b, t, units(LINE, b, t), clock, NULL);
	/* What a line and its iterations cost together is less than their sum, as far as one hides behind the other. */
	b->block_ns = measure(BLOCK, b, t, units(BLOCK, b, t), clock, NULL);
}

int burn_calibrate(struct burn *b, uint64_t bytes)
{
	struct burn_thread t;
	memset(b, 0, sizeof *b);
	b->lines = (bytes + BURN_LINE - 1) / BURN_LINE;
	if (b->lines > UINT32_MAX)
		return EINVAL;
	int err = burn_thread_start(&t, b);
	if (err)
		return err;
	for (double begin = now_ns(); now_ns() - begin < WARM_NS;)
		spin(&t, 1000);
	double clock = clock_ns();
	b->iter_ns = measure(PLAIN, b, &t, units(PLAIN, b, &t), clock, &b->spread);
	/* With the price of a call still 0, 100 ns take that and the iterations. */
	double iters = floor(100 / b->iter_ns);
	double call = measure(CALL, b, &t, CALLS, clock, NULL) - iters * b->iter_ns;
	b->call_ns = call > 0 ? call : 0;
	if (b->lines)
		calibrate_walk(b, &t, clock);
	b->longer = interrupts(b->iter_ns, &t);
	b->iter_ns *= b->longer;
	b->line_ns *= b->longer;
	b->block_ns *= b->longer;
	burn_thread_end(&t, b);
	return 0;
}

void burn_assume(struct burn *b, const struct burn_as *as)
{
	double more = as->iter_ns / b->iter_ns;
	b->iter_ns *= more;
	b->call_ns *= more;
	b->line_ns *= more;
	b->block_ns *= more;
	if (b->lines && as->block_ns > 0) {
		b->line_ns = as->line_ns;
		b->block_ns = as->block_ns;
	}
}

/* ---- check ---- */

/*
 * One segment, relative to what it should take where nothing interrupts it: what interrupts take is in the price, and hardly a
 * short segment meets one. One that was switched out says nothing of an idle core by the time that it
 * took: its CPU time does, which is the same there.
 */
static double segment(const struct burn *b, struct burn_thread *t, uint64_t ns, double clock, double cpu_clock)
{
	struct rusage before, after;
	burn(b, t, 300); /* the code of the loop is in the cache, as the engine's is */
	t->owed_ns = 0;
	getrusage(RUSAGE_THREAD, &before);
	double cpu = read_ns(CLOCK_THREAD_CPUTIME_ID), begin = now_ns();
	burn(b, t, ns);
	double took = now_ns() - begin - clock, used = read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu - cpu_clock;
	getrusage(RUSAGE_THREAD, &after);
	return (before.ru_nivcsw == after.ru_nivcsw ? took : used) * b->longer / (double)ns - 1;
}

int burn_check(const struct burn *b, uint64_t from_ns, uint64_t to_ns, int n, double *segments_ns, double *errors)
{
	struct burn_thread t;
	int err = burn_thread_start(&t, b);
	if (err)
		return err;
	double *tried = malloc(3 * n * sizeof *tried);
	int *order = malloc(n * sizeof *order);
	if (!tried || !order) {
		free(tried);
		free(order);
		burn_thread_end(&t, b);
		return ENOMEM;
	}
	uint64_t chance = 1;
	for (int i = 0; i < n; i++) {
		segments_ns[i] = floor((double)from_ns * pow((double)to_ns / (double)from_ns, n > 1 ? (double)i / (n - 1) : 0));
		chance = chance * LCG_MUL + LCG_ADD;
		int j = (int)((chance >> 33) % (uint64_t)(i + 1));
		order[i] = order[j];
		order[j] = i;
	}
	double clock = clock_ns(), cpu_clock = cpu_clock_ns();
	for (int pass = 0; pass < 3; pass++) {
		for (int i = 0; i < n; i++)
			tried[pass * n + order[i]] = segment(b, &t, (uint64_t)segments_ns[order[i]], clock, cpu_clock);
	}
	for (int i = 0; i < n; i++)
		errors[i] = fmin(fmin(tried[i], tried[n + i]), tried[2 * n + i]);
	free(tried);
	free(order);
	burn_thread_end(&t, b);
	return 0;
}

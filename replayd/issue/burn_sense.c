#include "burn_sense.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
	PAIRS = 5,
	SEGMENT_NS = 1000000,
	SEGMENTS = 60,
	FOREIGN = 64 << 20, /* of the neighbour: more than caches hold */
};

static double cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int burn_neighbour(const _Atomic int *stop)
{
	char *m = mmap(NULL, FOREIGN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m == MAP_FAILED)
		return errno;
	uint64_t chance = 1;
	while (!atomic_load(stop)) {
		for (size_t i = 0; i < FOREIGN && !atomic_load_explicit(stop, memory_order_relaxed); i += BURN_LINE) {
			m[i]++; /* in order, which takes bandwidth, and by chance, which takes places */
			chance = chance * 6364136223846793005u + 1442695040888963407u;
			m[(chance >> 20) % FOREIGN]++;
		}
	}
	munmap(m, FOREIGN);
	return 0;
}

/* The CPU that others than the first are on: the second that we may use, or the only one. */
static int pin(pthread_t t, const cpu_set_t *have, int nth)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	int count = CPU_COUNT(have), want = count > nth ? nth : count - 1;
	for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, have) && seen++ == want) {
			CPU_SET(cpu, &one);
			break;
		}
	}
	return pthread_setaffinity_np(t, sizeof one, &one);
}

struct runner {
	const struct burn *b;
	struct burn_thread place;
	pthread_barrier_t *start; /* NULL: alone */
	double used_ns;
};

static void *burn_segments(void *v)
{
	struct runner *r = v;
	burn(r->b, &r->place, 20 * (uint64_t)SEGMENT_NS); /* what fits is in the cache */
	if (r->start)
		pthread_barrier_wait(r->start);
	double begin = cpu_ns();
	for (int i = 0; i < SEGMENTS; i++)
		burn(r->b, &r->place, SEGMENT_NS);
	r->used_ns = cpu_ns() - begin;
	return NULL;
}

static void *be_neighbour(void *stop)
{
	burn_neighbour(stop);
	return NULL;
}

/* CPU time of the two runners' mean, on one CPU at the same time. */
static int shared(struct runner two[2], const cpu_set_t *have, double *used_ns)
{
	pthread_barrier_t start;
	pthread_t other;
	pthread_barrier_init(&start, NULL, 2);
	two[0].start = two[1].start = &start;
	int err = pthread_create(&other, NULL, burn_segments, &two[1]);
	if (!err) {
		err = pin(other, have, 0); /* where we are; late, and before the barrier if it may be pinned at all */
		burn_segments(&two[0]);
		pthread_join(other, NULL);
		*used_ns = (two[0].used_ns + two[1].used_ns) / 2;
	}
	pthread_barrier_destroy(&start);
	two[0].start = two[1].start = NULL;
	return err;
}

static int beside(struct runner *one, const cpu_set_t *have, double *used_ns)
{
	_Atomic int stop = 0;
	pthread_t other;
	int err = pthread_create(&other, NULL, be_neighbour, (void *)&stop);
	if (err)
		return err;
	err = pin(other, have, 1);
	burn_segments(one);
	atomic_store(&stop, 1);
	pthread_join(other, NULL);
	*used_ns = one->used_ns;
	return err;
}

int burn_growth(const struct burn *b, enum burn_company c, double *growth)
{
	struct runner two[2] = {{.b = b}, {.b = b}};
	cpu_set_t have;
	double least[2] = {0, 0};
	if (sched_getaffinity(0, sizeof have, &have))
		return errno;
	int err = burn_thread_start(&two[0].place, b);
	if (err)
		return err;
	err = burn_thread_start(&two[1].place, b);
	if (!err)
		err = pin(pthread_self(), &have, 0);
	for (int i = 0; i < PAIRS && !err; i++) {
		double company = 0;
		burn_segments(&two[0]);
		if (!i || two[0].used_ns < least[0])
			least[0] = two[0].used_ns;
		err = c == BURN_SHARED ? shared(two, &have, &company) : beside(&two[0], &have, &company);
		if (!i || company < least[1])
			least[1] = company;
	}
	pthread_setaffinity_np(pthread_self(), sizeof have, &have);
	burn_thread_end(&two[0].place, b);
	burn_thread_end(&two[1].place, b);
	if (!err)
		*growth = least[1] / least[0]; /* others on the machine only add */
	return err;
}

#define _GNU_SOURCE
#include "kernels.h"

#include <errno.h>
#include <linux/futex.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 64, CACHE_MEMORY = 1 << 20, CHAIN_MEMORY = 64 << 20, SORTED = 1024, TEXT = 16384, BODIES = 5, BUCKETS = 1024 };

/* The memory of the kernels that walk some, and where they are in it: a later run goes on there, or it would find its lines in the cache. */
static struct area {
	char *memory;
	size_t size, at;
} areas[KERNELS];

static uint64_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 17;
}

static uint64_t integer(uint64_t n)
{
	uint64_t table[256], state = 1, sum = 0;
	for (int i = 0; i < 256; i++)
		table[i] = next(&state);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t a = i ^ sum, b = table[a & 255] | 1;
		a = (a ^ a >> 29) * 0x9e3779b97f4a7c15u;
		a += (sum | 1u << 20) / (b & 0xffff);
		table[(a >> 8) & 255] ^= a << (i & 31);
		sum = (sum << 7 | sum >> 57) + a * b;
	}
	return sum;
}

/* A system of bodies, stepped: multiplications, additions, roots and quotients that depend on each other in part. */
static uint64_t floating(uint64_t n)
{
	double p[BODIES][3], v[BODIES][3], m[BODIES];
	uint64_t state = 3;
	for (int i = 0; i < BODIES; i++) {
		m[i] = 1 + (double)(next(&state) % 1000) / 1000;
		for (int k = 0; k < 3; k++) {
			p[i][k] = (double)(next(&state) % 20000) / 1000 - 10;
			v[i][k] = (double)(next(&state) % 2000) / 1000 - 1;
		}
	}
	for (uint64_t step = 0; step < n; step++) {
		for (int i = 0; i < BODIES; i++) {
			for (int j = i + 1; j < BODIES; j++) {
				double d[3], q = 0.1;
				for (int k = 0; k < 3; k++) {
					d[k] = p[i][k] - p[j][k];
					q += d[k] * d[k];
				}
				double f = 0.001 / (q * sqrt(q));
				for (int k = 0; k < 3; k++) {
					v[i][k] -= d[k] * m[j] * f;
					v[j][k] += d[k] * m[i] * f;
				}
			}
		}
		for (int i = 0; i < BODIES; i++) {
			for (int k = 0; k < 3; k++)
				p[i][k] += 0.001 * v[i][k];
		}
	}
	double sum = 0;
	for (int i = 0; i < BODIES; i++)
		sum += p[i][0] + p[i][1] + p[i][2];
	return (uint64_t)(int64_t)(sum * 1e9);
}

/* A heap sort of new numbers, and searches among them: half of the branches go either way. A unit is one number. */
static uint64_t branch(uint64_t n)
{
	uint32_t v[SORTED];
	uint64_t state = 5, sum = 0;
	for (uint64_t done = 0; done < n; done += SORTED) {
		for (int i = 0; i < SORTED; i++)
			v[i] = (uint32_t)next(&state);
		for (int end = SORTED, start = SORTED / 2; end > 1;) {
			if (start > 0) {
				start--;
			} else {
				end--;
				uint32_t last = v[end];
				v[end] = v[0];
				v[0] = last;
			}
			for (int i = start, child; (child = 2 * i + 1) < end; i = child) {
				if (child + 1 < end && v[child] < v[child + 1])
					child++;
				if (v[i] >= v[child])
					break;
				uint32_t up = v[child];
				v[child] = v[i];
				v[i] = up;
			}
		}
		for (int i = 0; i < SORTED; i++) {
			uint32_t wanted = (uint32_t)next(&state);
			int from = 0, to = SORTED;
			while (from < to) {
				int middle = (from + to) / 2;
				if (v[middle] < wanted)
					from = middle + 1;
				else
					to = middle;
			}
			sum = sum * 31 + (uint64_t)from;
		}
	}
	return sum;
}

/* Words of a text of letters and spaces, in lower case, counted in a table by a hash. A unit is one byte. */
static uint64_t string(uint64_t n)
{
	char text[TEXT];
	struct {
		char word[16];
		uint32_t count;
	} words[BUCKETS];
	uint64_t state = 7, sum = 0;
	for (int i = 0; i < TEXT; i++) {
		uint64_t c = next(&state) % 33;
		text[i] = c < 26 ? (char)('a' + c) : c < 28 ? (char)('A' + c - 26) : c < 29 ? '\n' : ' ';
	}
	text[TEXT - 1] = ' ';
	memset(words, 0, sizeof words);
	for (uint64_t done = 0; done < n; done += TEXT) {
		char word[16];
		size_t length = 0;
		for (int i = 0; i < TEXT; i++) {
			char c = text[i];
			if (c >= 'A' && c <= 'Z')
				c = (char)(c - 'A' + 'a');
			if (c != ' ' && c != '\n') {
				if (length < sizeof word - 1)
					word[length++] = c;
				continue;
			}
			if (!length)
				continue;
			word[length] = 0;
			uint32_t hash = 0;
			for (size_t j = 0; j < length; j++)
				hash = (hash ^ (unsigned char)word[j]) * 16777619u;
			uint32_t at = hash % BUCKETS;
			for (int tries = 0; tries < 8 && words[at].count && strcmp(words[at].word, word); tries++)
				at = (at + 1) % BUCKETS;
			if (!words[at].count || strcmp(words[at].word, word))
				memcpy(words[at].word, word, length + 1);
			sum += ++words[at].count * (at + 1);
			length = 0;
		}
	}
	return sum;
}

/* Quarter rounds on a block of sixteen words, added to a stream. A unit is one byte of it. */
static uint64_t crypto(uint64_t n)
{
	uint32_t in[16], x[16];
	uint64_t state = 9, sum = 0;
	for (int i = 0; i < 16; i++)
		in[i] = (uint32_t)next(&state);
	for (uint64_t done = 0; done < n; done += sizeof x) {
		memcpy(x, in, sizeof x);
		for (int round = 0; round < 20; round++) {
			for (int i = 0; i < 4; i++) {
				int a = i, turn = round & 1;
				int b = 4 + ((i + turn) & 3), c = 8 + ((i + 2 * turn) & 3), d = 12 + ((i + 3 * turn) & 3);
				static const int by[4] = {16, 12, 8, 7};
				for (int k = 0; k < 4; k += 2) {
					x[a] += x[b];
					x[d] ^= x[a];
					x[d] = x[d] << by[k] | x[d] >> (32 - by[k]);
					x[c] += x[d];
					x[b] ^= x[c];
					x[b] = x[b] << by[k + 1] | x[b] >> (32 - by[k + 1]);
				}
			}
		}
		for (int i = 0; i < 16; i++)
			sum = (sum << 5 | sum >> 59) ^ (x[i] + in[i]);
		in[12]++;
	}
	return sum;
}

/* Each line names the next: one ring through all of them, in an order by chance. */
static void link_lines(struct area *a)
{
	uint32_t lines = (uint32_t)(a->size / LINE);
	uint64_t state = 11;
	for (uint32_t i = 0; i < lines; i++)
		*(uint32_t *)(a->memory + (size_t)i * LINE) = i;
	for (uint32_t i = lines - 1; i > 0; i--) {
		uint32_t *one = (uint32_t *)(a->memory + (size_t)i * LINE), *two = (uint32_t *)(a->memory + (size_t)(next(&state) % i) * LINE), was = *one;
		*one = *two;
		*two = was;
	}
}

static uint64_t chain(struct area *a, uint64_t n)
{
	size_t at = a->at;
	uint64_t sum = 0;
	for (uint64_t i = 0; i < n; i++) {
		at = *(const uint32_t *)(a->memory + at * LINE);
		sum += at;
	}
	a->at = at;
	return sum;
}

/* Half is read and summed while the other half is written. A unit is one line of each. */
static uint64_t bandwidth(struct area *a, uint64_t n)
{
	size_t half = a->size / 2;
	uint64_t sum = 0;
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t *from = (const uint64_t *)(a->memory + a->at);
		uint64_t *to = (uint64_t *)(a->memory + half + a->at);
		for (int k = 0; k < LINE / 8; k++) {
			sum += from[k];
			to[k] = from[k] + 1;
		}
		a->at = a->at + 2 * LINE <= half ? a->at + LINE : 0;
	}
	return sum;
}

int kernel_start(enum kernel k)
{
	struct area *a = &areas[k];
	a->at = 0;
	a->size = k == KERNEL_CACHE ? CACHE_MEMORY : k == KERNEL_LATENCY || k == KERNEL_BANDWIDTH ? CHAIN_MEMORY : 0;
	if (!a->size)
		return 0;
	a->memory = mmap(NULL, a->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (a->memory == MAP_FAILED) {
		a->size = 0;
		return errno;
	}
	if (k == KERNEL_BANDWIDTH)
		memset(a->memory, 1, a->size);
	else
		link_lines(a);
	return 0;
}

void kernel_end(enum kernel k)
{
	if (areas[k].size)
		munmap(areas[k].memory, areas[k].size);
	areas[k].size = 0;
}

uint64_t kernel_run(enum kernel k, uint64_t n)
{
	switch (k) {
	case KERNEL_INTEGER:
		return integer(n);
	case KERNEL_FLOAT:
		return floating(n);
	case KERNEL_BRANCH:
		return branch(n);
	case KERNEL_STRING:
		return string(n);
	case KERNEL_CRYPTO:
		return crypto(n);
	case KERNEL_CACHE:
	case KERNEL_LATENCY:
		return chain(&areas[k], n);
	case KERNEL_BANDWIDTH:
		return bandwidth(&areas[k], n);
	case KERNELS:
		break;
	}
	return 0;
}

static double now_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static volatile uint64_t kept; /* or the work would be left out */

double kernel_time_ns(enum kernel k, uint64_t n)
{
	double begin = now_ns(CLOCK_THREAD_CPUTIME_ID);
	kept += kernel_run(k, n);
	return now_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
}

/* ---- costs ---- */

static void futex(_Atomic uint32_t *at, int op, uint32_t v)
{
	syscall(SYS_futex, at, op | FUTEX_PRIVATE_FLAG, v, NULL, NULL, 0);
}

struct ball {
	_Atomic uint32_t turns; /* even: ours; odd: the other thread's. Each side adds one to pass it on */
	uint64_t n;
};

static void play(struct ball *b, uint32_t side)
{
	for (uint64_t i = 0; i < b->n; i++) {
		uint32_t v;
		while ((v = atomic_load(&b->turns)) % 2 != side)
			futex(&b->turns, FUTEX_WAIT, v);
		atomic_fetch_add(&b->turns, 1);
		futex(&b->turns, FUTEX_WAKE, 1);
	}
}

static void *other(void *b)
{
	play(b, 1);
	return NULL;
}

static double wake_ns(uint64_t n)
{
	struct ball b = {.n = n};
	pthread_t t;
	if (pthread_create(&t, NULL, other, &b))
		return -1;
	double begin = now_ns(CLOCK_MONOTONIC);
	play(&b, 0);
	pthread_join(t, NULL);
	return (now_ns(CLOCK_MONOTONIC) - begin) / (double)(2 * n);
}

double cost_ns(enum cost c, uint64_t n)
{
	double sum = 0, begin = now_ns(CLOCK_MONOTONIC);
	for (uint64_t i = 0; i < n; i++) {
		struct timespec sleep = {.tv_nsec = 100000};
		switch (c) {
		case COST_CLOCK:
			sum += now_ns(CLOCK_MONOTONIC);
			break;
		case COST_CPU_CLOCK:
			sum += now_ns(CLOCK_THREAD_CPUTIME_ID);
			break;
		case COST_SYSCALL:
			sum += (double)syscall(SYS_getppid);
			break;
		case COST_SLEEP:
			nanosleep(&sleep, NULL);
			break;
		case COST_WAKE:
			return wake_ns(n);
		case COSTS:
			return -1;
		}
	}
	kept += (uint64_t)sum;
	return (now_ns(CLOCK_MONOTONIC) - begin) / (double)n - (c == COST_SLEEP ? 100000 : 0);
}

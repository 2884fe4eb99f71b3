/* A run of very many events of every class, for what reads traces: THREADS threads take private and shared locks from several
 * callers, ask the time, read and write files and pipes, wait for each other and sleep. Makes about EVENTS events.
 *
 *	views [EVENTS [THREADS]]
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LOCKS 1000
#define FILES 50

static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER, turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t locks[LOCKS];
static int files[FILES], ends[2];
static long rounds;
static volatile long sink;

static void check(long ok)
{
	if (!ok)
		abort();
}

__attribute__((noinline)) static void of_all(long i)
{
	pthread_mutex_lock(&shared);
	sink += i;
	pthread_mutex_unlock(&shared);
}

__attribute__((noinline)) static void of_many(unsigned i)
{
	pthread_rwlock_t *l = &locks[i % LOCKS];
	if (i % 16)
		pthread_rwlock_rdlock(l);
	else
		pthread_rwlock_wrlock(l);
	pthread_rwlock_unlock(l);
}

__attribute__((noinline)) static void of_files(unsigned i)
{
	char b[64] = "";
	check(pwrite(files[i % FILES], b, i % 64 + 1, i % 4096) > 0);
	check(pread(files[i / 8 % FILES], b, sizeof b, 0) >= 0);
}

__attribute__((noinline)) static void of_pipe(void)
{
	char b[8] = "";
	check(write(ends[1], b, 8) == 8);
	check(read(ends[0], b, 8) == 8);
}

__attribute__((noinline)) static void of_turn(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec = (t.tv_nsec + 100000) % 1000000000;
	pthread_mutex_lock(&turn);
	pthread_cond_signal(&turned);
	pthread_cond_timedwait(&turned, &turn, &t);
	pthread_mutex_unlock(&turn);
}

static void *worker(void *arg)
{
	pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
	unsigned n = (unsigned)(long)arg * 2654435761u;
	struct timespec t;
	long i, j;
	for (i = 0; i < rounds; i++) { /* 64 events and some */
		n = n * 1664525u + 1013904223u;
		for (j = 0; j < 16; j++) {
			pthread_mutex_lock(&own);
			pthread_mutex_unlock(&own);
			of_many(n >> 8);
			if (j % 4 == 0)
				clock_gettime(CLOCK_MONOTONIC, &t);
		}
		if (i % 4 == 0)
			of_all(i);
		if (i % 8 == 0)
			of_files(n >> 8);
		if (i % 64 == 0)
			of_pipe();
		if (i % 1024 == 0)
			of_turn();
		if (i % 16384 == 0)
			usleep(100);
	}
	return 0;
}

int main(int argc, char **argv)
{
	long events = argc > 1 ? atol(argv[1]) : 1000000, threads = argc > 2 ? atol(argv[2]) : 4, i;
	pthread_t *t = calloc((size_t)threads, sizeof *t);
	char name[32];
	check(t && threads > 0 && !pipe(ends));
	rounds = events / threads / 69;
	for (i = 0; i < LOCKS; i++)
		pthread_rwlock_init(&locks[i], 0);
	for (i = 0; i < FILES; i++) {
		snprintf(name, sizeof name, "views-%ld", i);
		files[i] = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
		check(files[i] >= 0);
		unlink(name);
	}
	for (i = 0; i < threads; i++)
		check(!pthread_create(&t[i], 0, worker, (void *)i));
	for (i = 0; i < threads; i++)
		pthread_join(t[i], 0);
	return 0;
}

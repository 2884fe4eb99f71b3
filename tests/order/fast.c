/* Threads that use all kinds of objects, one at a time and in the order that a seed says: what each does, and in which
 * place of each object, is so the same in every run, and so is the text of its events.
 *
 * fast SEED THREADS TURNS; a line on standard input lets it begin, another one end.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define THREADS 64

static pthread_mutex_t mutex[4];
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_once_t once[8];
static mtx_t mtx;
static sem_t turn[THREADS + 1], sem;
static int ends[2], threads, turns;
static uint64_t state, hash;

static uint32_t next(void)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 33);
}

static void ran(void)
{
	hash ^= 0x5555;
}

static long op(uint32_t r)
{
	pthread_mutex_t *m = &mutex[r >> 8 & 3];
	struct timespec past = {1, 0}, now;
	char c = (char)r;
	int v = 0;
	switch (r % 16) {
	case 0:
	case 1:
	case 2:
		v = pthread_mutex_lock(m);
		return v + pthread_mutex_unlock(m);
	case 3:
		v = pthread_mutex_trylock(m);
		return v + pthread_mutex_unlock(m);
	case 4:
		v = pthread_rwlock_rdlock(&rw);
		return v + pthread_rwlock_unlock(&rw);
	case 5:
		v = pthread_rwlock_wrlock(&rw) + 2 * pthread_rwlock_tryrdlock(&rw);
		return v + pthread_rwlock_unlock(&rw);
	case 6:
		v = pthread_spin_lock(&spin) + pthread_spin_trylock(&spin);
		return v + pthread_spin_unlock(&spin);
	case 7:
		return pthread_cond_signal(&cond) + pthread_cond_broadcast(&cond);
	case 8:
		pthread_mutex_lock(&mutex[0]);
		v = pthread_cond_timedwait(&cond, &mutex[0], &past);
		return v + pthread_mutex_unlock(&mutex[0]);
	case 9:
		sem_post(&sem);
		return sem_trywait(&sem) + sem_getvalue(&sem, &v) + v;
	case 10:
		return pthread_once(&once[r >> 8 & 7], ran);
	case 11:
		v = mtx_lock(&mtx);
		return v + mtx_unlock(&mtx);
	case 12:
		if (write(ends[1], &c, 1) != 1 || read(ends[0], &c, 1) != 1)
			return 1000;
		return c;
	case 13:
		return clock_gettime(CLOCK_MONOTONIC, &now);
	case 14:
		return sched_yield() + (getppid() > 0) + (read(-1, &c, 1) < 0 ? errno : 0);
	default:
		return rand() + rand_r((unsigned *)&v);
	}
}

static void *worker(void *arg)
{
	long id = (long)arg;
	for (;;) {
		int n;
		sem_wait(&turn[id]);
		if (turns-- <= 0)
			break;
		for (n = (int)(next() % 40); n >= 0; n--)
			hash = (hash ^ (uint64_t)op(next()) ^ (uint64_t)id) * 0x100000001b3ull;
		sem_post(&turn[next() % (uint32_t)threads]);
	}
	sem_post(&turn[(id + 1) % threads]); /* they end one after the other */
	return 0;
}

int main(int argc, char **argv)
{
	static const int kinds[4] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_NORMAL};
	pthread_t th[THREADS];
	pthread_mutexattr_t a;
	char c;
	long i;
	if (argc < 4)
		return 2;
	state = strtoull(argv[1], 0, 10);
	threads = atoi(argv[2]);
	turns = atoi(argv[3]);
	for (i = 0; i < 4; i++) {
		pthread_mutexattr_init(&a);
		pthread_mutexattr_settype(&a, kinds[i]);
		if (i == 3)
			pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
		pthread_mutex_init(&mutex[i], &a);
	}
	pthread_spin_init(&spin, 0);
	mtx_init(&mtx, mtx_plain);
	sem_init(&sem, 0, 0);
	srand(1);
	if (threads < 1 || threads > THREADS || pipe(ends) != 0 || read(0, &c, 1) != 1)
		return 2;
	for (i = 0; i < threads; i++)
		sem_init(&turn[i], 0, 0);
	for (i = 0; i < threads; i++)
		pthread_create(&th[i], 0, worker, (void *)i);
	sem_post(&turn[0]);
	for (i = 0; i < threads; i++)
		pthread_join(th[i], 0);
	printf("%016lx\n", (unsigned long)hash);
	fflush(stdout);
	return read(0, &c, 1) != 1;
}

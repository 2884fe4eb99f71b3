/* Lock-order torture: threads of one or more processes go through all kinds of synchronisation objects, chosen by a
 * seed, and do in each what depends on the order in which they come: so the result, printed at the end, is another one
 * in another order. Beside that each object counts its owners itself, under its own protection, and each thread notes
 * what it was told, so that a recorder's numbers can be compared with the truth.
 *
 * torture SEED THREADS OPS PROCESSES LOG
 *
 * LOG gets struct note after struct note, threads one after another; each thread's notes begin with its own mutex.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { OWN, LOCK, READ, WRITE, WAIT, ARRIVE, ONCE };

struct note {
	uint64_t addr, n, m; /* n: the owner's number, or the epoch; m: readers since the last writer */
	uint32_t kind, process;
};

#define MUTEXES 12
#define THREADS 64

/* What is guarded: nothing here is atomic. */
struct data {
	uint64_t owners, hash, readers;
};

struct world {
	pthread_mutex_t own[THREADS * 4], mutex[MUTEXES];
	struct data of_mutex[MUTEXES];
	mtx_t mtx;
	struct data of_mtx;
	pthread_spinlock_t spin[2];
	struct data of_spin[2];
	pthread_rwlock_t rw[2];
	struct data of_rw[2];
	pthread_mutex_t cm;
	pthread_cond_t cond[2];
	struct data of_cm;
	sem_t sem[2];
	struct data of_sem;
	pthread_barrier_t barrier;
	pthread_once_t once[8];
	int ran[8];
};

static struct world *w;
static int threads, ops, processes, process;
static uint64_t seed;

struct worker {
	int id;
	uint64_t random, hash;
	struct note *notes;
	size_t n, cap;
};

static uint32_t next(struct worker *x)
{
	x->random = x->random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(x->random >> 33);
}

static void note(struct worker *x, const void *addr, int kind, uint64_t n, uint64_t m)
{
	if (x->n == x->cap) {
		x->cap = x->cap ? x->cap * 2 : 1024;
		x->notes = realloc(x->notes, x->cap * sizeof *x->notes);
	}
	x->notes[x->n++] = (struct note){(uint64_t)addr, n, m, (uint32_t)kind, (uint32_t)process};
}

static void own(struct worker *x, struct data *d)
{
	d->owners++;
	d->hash = (d->hash ^ (uint64_t)(x->id + 1)) * 0x100000001b3ull;
	x->hash = (x->hash ^ d->hash) * 0x100000001b3ull;
}

static struct timespec in(uint64_t ns)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += ns;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static void a_mutex(struct worker *x)
{
	int i = next(x) % MUTEXES, twice = 0, r;
	pthread_mutex_t *m = &w->mutex[i];
	struct timespec t;
	switch (next(x) % 4) {
	case 0:
		r = pthread_mutex_trylock(m);
		break;
	case 1:
		t = in(next(x) % 200000);
		r = pthread_mutex_timedlock(m, &t);
		break;
	default:
		r = pthread_mutex_lock(m);
	}
	if (r)
		return;
	own(x, &w->of_mutex[i]);
	note(x, m, LOCK, w->of_mutex[i].owners, 0);
	if (i % 4 == 1 && pthread_mutex_lock(m) == 0) { /* recursive */
		twice = 1;
		own(x, &w->of_mutex[i]);
		note(x, m, LOCK, w->of_mutex[i].owners, 0);
	}
	if (next(x) % 16 == 0)
		sched_yield();
	if (twice)
		pthread_mutex_unlock(m);
	pthread_mutex_unlock(m);
}

static void an_mtx(struct worker *x)
{
	if (next(x) % 3 == 0 ? mtx_trylock(&w->mtx) : mtx_lock(&w->mtx))
		return;
	own(x, &w->of_mtx);
	note(x, &w->mtx, LOCK, w->of_mtx.owners, 0);
	mtx_unlock(&w->mtx);
}

static void a_spin(struct worker *x)
{
	int i = next(x) % 2;
	if (next(x) % 3 == 0 ? pthread_spin_trylock(&w->spin[i]) : pthread_spin_lock(&w->spin[i]))
		return;
	own(x, &w->of_spin[i]);
	note(x, (void *)&w->spin[i], LOCK, w->of_spin[i].owners, 0);
	pthread_spin_unlock(&w->spin[i]);
}

static void an_rwlock(struct worker *x)
{
	int i = next(x) % 2, how = next(x) % 6, r;
	pthread_rwlock_t *l = &w->rw[i];
	struct data *d = &w->of_rw[i];
	struct timespec t = in(next(x) % 200000);
	if (how >= 3) {
		r = how == 3 ? pthread_rwlock_tryrdlock(l) : how == 4 ? pthread_rwlock_timedrdlock(l, &t) : pthread_rwlock_rdlock(l);
		if (r)
			return;
		__atomic_add_fetch(&d->readers, 1, __ATOMIC_RELAXED);
		note(x, l, READ, d->owners, 0);
		x->hash = (x->hash ^ d->hash) * 0x100000001b3ull;
	} else {
		r = how == 0 ? pthread_rwlock_trywrlock(l) : how == 1 ? pthread_rwlock_timedwrlock(l, &t) : pthread_rwlock_wrlock(l);
		if (r)
			return;
		own(x, d);
		note(x, l, WRITE, d->owners, d->readers);
		d->readers = 0;
	}
	pthread_rwlock_unlock(l);
}

static void a_cond(struct worker *x)
{
	int i = next(x) % 2, r;
	pthread_mutex_lock(&w->cm);
	own(x, &w->of_cm);
	note(x, &w->cm, LOCK, w->of_cm.owners, 0);
	if (next(x) % 2) {
		struct timespec t = in(next(x) % 100000);
		r = pthread_cond_timedwait(&w->cond[i], &w->cm, &t);
		if (r == 0 || r == ETIMEDOUT) {
			own(x, &w->of_cm);
			note(x, &w->cm, WAIT, w->of_cm.owners, 0);
		}
	} else if (next(x) % 2) {
		pthread_cond_signal(&w->cond[i]);
	} else {
		pthread_cond_broadcast(&w->cond[i]);
	}
	pthread_mutex_unlock(&w->cm);
}

static void a_sem(struct worker *x)
{
	struct timespec t = in(next(x) % 200000);
	int how = next(x) % 4;
	if (next(x) % 3 == 0) { /* any number may be in */
		if (sem_trywait(&w->sem[1]) == 0)
			sem_post(&w->sem[1]);
		return;
	}
	if (how == 0 ? sem_trywait(&w->sem[0]) : how == 1 ? sem_timedwait(&w->sem[0], &t) : sem_wait(&w->sem[0]))
		return;
	own(x, &w->of_sem);
	sem_post(&w->sem[0]);
}

static __thread int which;

static void init(void)
{
	w->ran[which]++;
	sched_yield();
}

static void a_once(struct worker *x)
{
	which = next(x) % 8;
	pthread_once(&w->once[which], init);
	note(x, &w->once[which], ONCE, 1, 0);
}

static void *work(void *arg)
{
	struct worker *x = arg;
	pthread_mutex_lock(&w->own[x->id]);
	note(x, &w->own[x->id], OWN, 1, 0);
	pthread_mutex_unlock(&w->own[x->id]);
	for (int i = 0; i < ops; i++) {
		if (i % 64 == 63) {
			int serial = pthread_barrier_wait(&w->barrier) != 0;
			note(x, &w->barrier, ARRIVE, (uint64_t)i / 64, (uint64_t)serial);
		}
		switch (next(x) % 8) {
		case 0:
		case 1:
			a_mutex(x);
			break;
		case 2:
			an_mtx(x);
			break;
		case 3:
			a_spin(x);
			break;
		case 4:
			an_rwlock(x);
			break;
		case 5:
			a_cond(x);
			break;
		case 6:
			a_sem(x);
			break;
		default:
			if (processes == 1)
				a_once(x);
		}
	}
	return 0;
}

static void make(void)
{
	static const int kinds[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
	int shared = processes > 1, i;
	pthread_mutexattr_t ma;
	pthread_condattr_t ca;
	pthread_rwlockattr_t ra;
	pthread_barrierattr_t ba;
	pthread_mutexattr_init(&ma);
	pthread_mutexattr_setpshared(&ma, shared);
	for (i = 0; i < THREADS * 4; i++)
		pthread_mutex_init(&w->own[i], &ma);
	pthread_mutex_init(&w->cm, &ma);
	for (i = 0; i < MUTEXES; i++) {
		pthread_mutexattr_settype(&ma, kinds[i % 4]);
		pthread_mutexattr_setrobust(&ma, i / 4 == 1);
		pthread_mutexattr_setprotocol(&ma, i / 4 == 2 ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
		pthread_mutex_init(&w->mutex[i], &ma);
	}
	if (shared) /* there is no shared mtx_t */
		pthread_mutexattr_settype(&ma, PTHREAD_MUTEX_NORMAL), pthread_mutexattr_setrobust(&ma, 0),
		    pthread_mutexattr_setprotocol(&ma, PTHREAD_PRIO_NONE), pthread_mutex_init((pthread_mutex_t *)&w->mtx, &ma);
	else
		mtx_init(&w->mtx, mtx_plain);
	pthread_condattr_init(&ca);
	pthread_condattr_setpshared(&ca, shared);
	pthread_rwlockattr_init(&ra);
	pthread_rwlockattr_setpshared(&ra, shared);
	for (i = 0; i < 2; i++) {
		pthread_cond_init(&w->cond[i], &ca);
		pthread_rwlock_init(&w->rw[i], &ra);
		pthread_spin_init(&w->spin[i], shared);
		sem_init(&w->sem[i], shared, i ? 3 : 1);
	}
	pthread_barrierattr_init(&ba);
	pthread_barrierattr_setpshared(&ba, shared);
	pthread_barrier_init(&w->barrier, &ba, (unsigned)(threads * processes));
}

static uint64_t run(const char *log)
{
	struct worker *x = calloc(threads, sizeof *x);
	pthread_t *th = calloc(threads, sizeof *th);
	uint64_t hash = 0;
	int i, fd;
	for (i = 0; i < threads; i++) {
		x[i].id = process * threads + i;
		x[i].random = seed * 1000003 + (uint64_t)x[i].id;
		if (pthread_create(&th[i], 0, work, &x[i])) {
			perror("pthread_create");
			exit(1);
		}
	}
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	for (i = 0; i < threads; i++) {
		size_t bytes;
		pthread_join(th[i], 0);
		bytes = x[i].n * sizeof *x[i].notes;
		if (write(fd, x[i].notes, bytes) != (ssize_t)bytes)
			perror(log);
		hash = (hash ^ x[i].hash) * 0x100000001b3ull;
	}
	close(fd);
	return hash;
}

int main(int argc, char **argv)
{
	uint64_t hash = 0;
	int i;
	if (argc != 6)
		return 2;
	seed = strtoull(argv[1], 0, 10);
	threads = atoi(argv[2]);
	ops = atoi(argv[3]);
	processes = atoi(argv[4]);
	if (threads * processes > THREADS * 4)
		return 2;
	w = mmap(0, sizeof *w, PROT_READ | PROT_WRITE, (processes > 1 ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0);
	make();
	for (process = 1; process < processes; process++)
		if (fork() == 0) {
			run(argv[5]);
			exit(0);
		}
	process = 0;
	hash = run(argv[5]);
	while (wait(0) > 0)
		;
	for (i = 0; i < MUTEXES; i++)
		hash = (hash ^ w->of_mutex[i].hash) * 0x100000001b3ull;
	for (i = 0; i < 2; i++)
		hash = (hash ^ w->of_rw[i].hash ^ w->of_spin[i].hash) * 0x100000001b3ull;
	hash ^= w->of_mtx.hash ^ w->of_cm.hash ^ w->of_sem.hash;
	for (i = 0; i < 8; i++)
		if (w->ran[i] > 1)
			printf("once ran %d times\n", w->ran[i]);
	printf("%016llx\n", (unsigned long long)hash);
	return 0;
}

/* What makes mutexes and unmakes them, waits with a limit, and the kinds that have more to them: robust ones whose
 * owner died (a thread, a process), priorities, sharing between processes.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct timespec in(int clk, long ms)
{
	struct timespec t;
	clock_gettime(clk, &t);
	t.tv_nsec += ms * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static void make(pthread_mutex_t *m, int type, int robust, int protocol, int shared)
{
	pthread_mutexattr_t a;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_settype(&a, type);
	pthread_mutexattr_setrobust(&a, robust);
	pthread_mutexattr_setprotocol(&a, protocol);
	pthread_mutexattr_setpshared(&a, shared);
	if (protocol == PTHREAD_PRIO_PROTECT)
		pthread_mutexattr_setprioceiling(&a, 5);
	printf("init %d\n", pthread_mutex_init(m, &a));
	pthread_mutexattr_destroy(&a);
}

static void *limits(void *p)
{
	pthread_mutex_t *m = p;
	struct timespec t = in(CLOCK_REALTIME, 20), bad = {0, -1};
	printf("timedlock %s\n", strerror(pthread_mutex_timedlock(m, &t)));
	t = in(CLOCK_MONOTONIC, 20);
	printf("clocklock %s\n", strerror(pthread_mutex_clocklock(m, CLOCK_MONOTONIC, &t)));
	printf("bad limit %s\n", strerror(pthread_mutex_timedlock(m, &bad)));
	printf("bad clock %s\n", strerror(pthread_mutex_clocklock(m, CLOCK_PROCESS_CPUTIME_ID, &t)));
	return 0;
}

static void *dies(void *m)
{
	pthread_mutex_lock(m);
	return 0;
}

static void *waits(void *m)
{
	int r = pthread_mutex_lock(m);
	if (r == EOWNERDEAD) {
		pthread_mutex_consistent(m);
		pthread_mutex_unlock(m);
	} else if (r == 0) {
		pthread_mutex_unlock(m);
	}
	return (void *)(long)r;
}

static void robust(int protocol, int type)
{
	pthread_mutex_t m;
	pthread_t th;
	struct timespec t;
	make(&m, type, PTHREAD_MUTEX_ROBUST, protocol, 0);
	pthread_create(&th, 0, dies, &m);
	pthread_join(th, 0);
	printf("try after death %s\n", strerror(pthread_mutex_trylock(&m)));
	printf("consistent %d unlock %d lock %d unlock %d\n", pthread_mutex_consistent(&m), pthread_mutex_unlock(&m), pthread_mutex_lock(&m),
	       pthread_mutex_unlock(&m));
	printf("consistent when it is %s\n", strerror(pthread_mutex_consistent(&m)));
	pthread_create(&th, 0, dies, &m);
	pthread_join(th, 0);
	t = in(CLOCK_REALTIME, 1000);
	printf("timed after death %s\n", strerror(pthread_mutex_timedlock(&m, &t)));
	pthread_mutex_unlock(&m); /* not made consistent */
	printf("lost %s\n", strerror(pthread_mutex_lock(&m)));
	printf("destroy %d\n", pthread_mutex_destroy(&m));
}

static void ceilings(void)
{
	pthread_mutex_t m;
	int c = -1, was = -1, r;
	make(&m, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_PROTECT, 0);
	r = pthread_mutex_getprioceiling(&m, &c);
	printf("ceiling %d %d\n", r, c);
	r = pthread_mutex_setprioceiling(&m, 7, &was); /* locks: needs the right to raise a priority */
	if (r == 0)
		pthread_mutex_getprioceiling(&m, &c);
	printf("set %s\n", r == 0 ? "yes" : r == EPERM ? "no right" : "odd");
	printf("old and new %d\n", r ? 12 : was + c);
	r = pthread_mutex_lock(&m);
	printf("lock %s\n", r == 0 || r == EPERM ? "as it may" : "odd");
	if (r == 0)
		pthread_mutex_unlock(&m);
	pthread_mutex_destroy(&m);
	make(&m, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE, 0);
	printf("none has no ceiling: %s\n", strerror(pthread_mutex_getprioceiling(&m, &c)));
	pthread_mutex_destroy(&m);
}

struct shared {
	pthread_mutex_t plain, strong;
	long n, strong_n, deaths;
};

static void processes(void)
{
	struct shared *s = mmap(0, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int i, k, st, good = 0;
	pid_t kid[3];
	make(&s->plain, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE, PTHREAD_PROCESS_SHARED);
	make(&s->strong, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE, PTHREAD_PROCESS_SHARED);
	fflush(stdout);
	for (i = 0; i < 3; i++) {
		kid[i] = fork();
		if (!kid[i]) {
			for (k = 0; k < 2000; k++) {
				int r;
				pthread_mutex_lock(&s->plain);
				s->n++;
				pthread_mutex_unlock(&s->plain);
				r = pthread_mutex_lock(&s->strong);
				if (r == EOWNERDEAD) {
					s->deaths++;
					pthread_mutex_consistent(&s->strong);
				}
				s->strong_n++;
				if (k == 1999)
					kill(getpid(), SIGKILL); /* holding it */
				pthread_mutex_unlock(&s->strong);
			}
		}
	}
	for (i = 0; i < 3; i++)
		good += waitpid(kid[i], &st, 0) == kid[i] && WIFSIGNALED(st);
	printf("killed %d sum %ld %ld\n", good, s->n, s->strong_n);
	printf("last death %s\n", strerror(pthread_mutex_lock(&s->strong)));
	s->deaths++;
	pthread_mutex_consistent(&s->strong);
	pthread_mutex_unlock(&s->strong);
	printf("deaths %ld\n", s->deaths);
	pthread_mutex_destroy(&s->plain);
	pthread_mutex_destroy(&s->strong);
	munmap(s, sizeof *s);
}

int main(void)
{
	static const int protocols[] = {PTHREAD_PRIO_NONE, PTHREAD_PRIO_INHERIT};
	pthread_mutex_t m;
	pthread_t th[16];
	void *r;
	int i, p;
	for (p = 0; p < 2; p++) {
		make(&m, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, protocols[p], 0);
		pthread_mutex_lock(&m);
		if (p == 0) { /* a PI mutex has no other clock */
			pthread_create(&th[0], 0, limits, &m);
			pthread_join(th[0], 0);
		}
		pthread_mutex_unlock(&m);
		printf("destroy %d\n", pthread_mutex_destroy(&m));
		robust(protocols[p], PTHREAD_MUTEX_NORMAL);
		robust(protocols[p], PTHREAD_MUTEX_RECURSIVE);
	}
	make(&m, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE, 0);
	pthread_mutex_lock(&m);
	for (i = 0; i < 16; i++)
		pthread_create(&th[i], 0, waits, &m);
	pthread_mutex_unlock(&m);
	for (i = 0; i < 16; i++)
		pthread_join(th[i], &r);
	/* A thread that ends holding it hands it to those who wait. */
	pthread_create(&th[0], 0, dies, &m);
	pthread_join(th[0], 0);
	pthread_create(&th[1], 0, waits, &m);
	pthread_join(th[1], &r);
	printf("inherited %s\n", strerror((long)r));
	printf("held destroy %s\n", (pthread_mutex_lock(&m), strerror(pthread_mutex_destroy(&m))));
	pthread_mutex_unlock(&m);
	ceilings();
	processes();
	return 0;
}

/* Read-write locks: all ways in, who shuts out whom, limits, kinds, sharing between processes, 2 and 16 threads. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
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

static void *all_ways(void *p)
{
	pthread_rwlock_t *l = p;
	struct timespec r = in(CLOCK_REALTIME, 10), m = in(CLOCK_MONOTONIC, 10), bad = {0, 1000000000};
	int k;
#define SAY(what, call)                       \
	k = call;                             \
	printf("%s %s\n", what, strerror(k)); \
	if (!k)                               \
	pthread_rwlock_unlock(l)
	SAY("tryrd", pthread_rwlock_tryrdlock(l));
	SAY("trywr", pthread_rwlock_trywrlock(l));
	SAY("timedrd", pthread_rwlock_timedrdlock(l, &r));
	SAY("timedwr", pthread_rwlock_timedwrlock(l, &r));
	SAY("clockrd", pthread_rwlock_clockrdlock(l, CLOCK_MONOTONIC, &m));
	SAY("clockwr", pthread_rwlock_clockwrlock(l, CLOCK_MONOTONIC, &m));
	SAY("bad limit", pthread_rwlock_timedwrlock(l, &bad));
	SAY("bad clock", pthread_rwlock_clockwrlock(l, CLOCK_PROCESS_CPUTIME_ID, &m));
	return 0;
}

static void other(pthread_rwlock_t *l)
{
	pthread_t th;
	pthread_create(&th, 0, all_ways, l);
	pthread_join(th, 0);
}

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER, writers_first = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static volatile long a, b;

static void *worker(void *arg)
{
	long seed = (long)arg, odd = 0;
	for (int i = 0; i < 3000; i++) {
		pthread_rwlock_t *l = i & 1 ? &lock : &lock;
		if ((i + seed) % 7 == 0) {
			pthread_rwlock_wrlock(l);
			a++;
			b++;
			pthread_rwlock_unlock(l);
		} else {
			pthread_rwlock_rdlock(l);
			odd += a != b;
			pthread_rwlock_unlock(l);
		}
	}
	return (void *)odd;
}

struct shared {
	pthread_rwlock_t l;
	long n;
};

static void processes(void)
{
	struct shared *s = mmap(0, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_rwlockattr_t at;
	pthread_rwlockattr_init(&at);
	pthread_rwlockattr_setpshared(&at, PTHREAD_PROCESS_SHARED);
	printf("init %d\n", pthread_rwlock_init(&s->l, &at));
	for (int i = 0; i < 4; i++)
		if (fork() == 0) {
			for (int k = 0; k < 1000; k++) {
				if (k % 3) {
					pthread_rwlock_rdlock(&s->l);
				} else {
					pthread_rwlock_wrlock(&s->l);
					s->n++;
				}
				pthread_rwlock_unlock(&s->l);
			}
			_exit(0);
		}
	while (wait(0) > 0)
		;
	printf("writes %ld destroy %d\n", s->n, pthread_rwlock_destroy(&s->l));
	munmap(s, sizeof *s);
}

int main(void)
{
	pthread_t th[16];
	for (int n = 2; n <= 16; n += 14) {
		long odd = 0;
		a = b = 0;
		for (long i = 0; i < n; i++)
			pthread_create(&th[i], 0, worker, (void *)i);
		for (int i = 0; i < n; i++) {
			void *r;
			pthread_join(th[i], &r);
			odd += (long)r;
		}
		printf("%d threads: torn %ld writes %ld\n", n, odd, a);
	}
	puts("free:");
	other(&lock);
	puts("read:");
	pthread_rwlock_rdlock(&lock);
	other(&lock);
	printf("again %d\n", pthread_rwlock_rdlock(&lock));
	pthread_rwlock_unlock(&lock);
	pthread_rwlock_unlock(&lock);
	puts("written:");
	pthread_rwlock_wrlock(&lock);
	other(&lock);
	printf("own read %s\n", strerror(pthread_rwlock_rdlock(&lock)));
	printf("own write %s\n", strerror(pthread_rwlock_wrlock(&lock)));
	pthread_rwlock_unlock(&lock);
	pthread_rwlock_wrlock(&writers_first);
	printf("unlock %d\n", pthread_rwlock_unlock(&writers_first));
	/* The same address, again and again another lock, without init or destroy. */
	for (int i = 0; i < 3; i++) {
		pthread_rwlock_t *l = malloc(sizeof *l);
		*l = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
		pthread_rwlock_wrlock(l);
		pthread_rwlock_unlock(l);
		free(l);
	}
	processes();
	return 0;
}

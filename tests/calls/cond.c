/* Condition variables: signals, broadcasts, limits, cancelled waits, wrong uses, other processes, 2 and 16 threads. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER, d = PTHREAD_COND_INITIALIZER;
static int queue, done, waiting, cleaned;

static struct timespec in(int clk, long ms)
{
	struct timespec t;
	clock_gettime(clk, &t);
	t.tv_nsec += ms * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static void *consumer(void *arg)
{
	long n = 0;
	pthread_mutex_lock(&m);
	for (;;) {
		while (!queue && !done)
			pthread_cond_wait(&c, &m);
		if (!queue)
			break;
		queue--;
		n++;
		pthread_cond_signal(&d);
	}
	pthread_mutex_unlock(&m);
	return (void *)n;
}

static void pipeline(int threads)
{
	pthread_t th[16];
	long sum = 0;
	done = 0;
	for (int i = 0; i < threads; i++)
		pthread_create(&th[i], 0, consumer, 0);
	for (int i = 0; i < 5000; i++) {
		pthread_mutex_lock(&m);
		while (queue >= 4)
			pthread_cond_wait(&d, &m);
		queue++;
		pthread_cond_signal(&c);
		pthread_mutex_unlock(&m);
	}
	pthread_mutex_lock(&m);
	done = 1;
	pthread_cond_broadcast(&c);
	pthread_mutex_unlock(&m);
	for (int i = 0; i < threads; i++) {
		void *r;
		pthread_join(th[i], &r);
		sum += (long)r;
	}
	printf("%d threads consumed %ld\n", threads, sum);
}

static void clean(void *arg)
{
	/* The mutex is ours again here. */
	printf("cleaning %s\n", pthread_mutex_trylock(&m) == EBUSY ? "holding" : "odd");
	cleaned++;
	pthread_mutex_unlock(&m);
}

static void *cancelled(void *how)
{
	struct timespec far = in(CLOCK_REALTIME, 60000);
	pthread_mutex_lock(&m);
	pthread_cleanup_push(clean, 0);
	waiting = 1;
	pthread_cond_broadcast(&d);
	for (;;) {
		if (how)
			pthread_cond_timedwait(&c, &m, &far);
		else
			pthread_cond_wait(&c, &m);
	}
	pthread_cleanup_pop(1);
	return 0;
}

static void cancellation(void)
{
	for (long how = 0; how < 2; how++) {
		pthread_t th;
		void *r;
		waiting = 0;
		pthread_create(&th, 0, cancelled, (void *)how);
		pthread_mutex_lock(&m);
		while (!waiting)
			pthread_cond_wait(&d, &m);
		pthread_mutex_unlock(&m);
		pthread_cancel(th);
		pthread_join(th, &r);
		printf("cancelled %d, mutex %s\n", r == PTHREAD_CANCELED, pthread_mutex_trylock(&m) == 0 ? "free" : "held");
		pthread_mutex_unlock(&m);
	}
	printf("cleaned %d\n", cleaned);
}

static void limits(void)
{
	struct timespec t = in(CLOCK_REALTIME, 20), bad = {0, -1};
	pthread_condattr_t a;
	pthread_cond_t mono;
	pthread_mutex_t check = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
	pthread_mutex_lock(&m);
	printf("timed %s\n", strerror(pthread_cond_timedwait(&c, &m, &t)));
	printf("past %s\n", strerror(pthread_cond_timedwait(&c, &m, &t)));
	t = in(CLOCK_MONOTONIC, 20);
	printf("clock %s\n", strerror(pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &t)));
	printf("bad limit %s\n", strerror(pthread_cond_timedwait(&c, &m, &bad)));
	printf("bad clock %s\n", strerror(pthread_cond_clockwait(&c, &m, 77, &t)));
	pthread_mutex_unlock(&m);
	pthread_condattr_init(&a);
	pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
	printf("init %d\n", pthread_cond_init(&mono, &a));
	t = in(CLOCK_MONOTONIC, 20);
	pthread_mutex_lock(&m);
	printf("mono %s\n", strerror(pthread_cond_timedwait(&mono, &m, &t)));
	pthread_mutex_unlock(&m);
	printf("destroy %d\n", pthread_cond_destroy(&mono));
	printf("not held %s\n", strerror(pthread_cond_wait(&c, &check)));
}

struct shared {
	pthread_mutex_t m;
	pthread_cond_t c;
	int turn;
};

static void processes(void)
{
	struct shared *s = mmap(0, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t ma;
	pthread_condattr_t ca;
	pthread_mutexattr_init(&ma);
	pthread_mutexattr_setpshared(&ma, PTHREAD_PROCESS_SHARED);
	pthread_condattr_init(&ca);
	pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&s->m, &ma);
	pthread_cond_init(&s->c, &ca);
	for (int who = 0; who < 3; who++)
		if (fork() == 0) {
			for (int i = 0; i < 100; i++) {
				pthread_mutex_lock(&s->m);
				while (s->turn % 3 != who)
					pthread_cond_wait(&s->c, &s->m);
				s->turn++;
				pthread_cond_broadcast(&s->c);
				pthread_mutex_unlock(&s->m);
			}
			_exit(0);
		}
	while (wait(0) > 0)
		;
	printf("turns %d\n", s->turn);
	pthread_cond_destroy(&s->c);
	pthread_mutex_destroy(&s->m);
}

int main(void)
{
	pipeline(2);
	pipeline(16);
	cancellation();
	limits();
	processes();
	return 0;
}

/* Barriers: one serial thread a generation, whoever comes first destroys it, other processes. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_barrier_t b;
static int serial, rounds = 50;

static void *worker(void *arg)
{
	for (int i = 0; i < rounds; i++)
		if (pthread_barrier_wait(&b) == PTHREAD_BARRIER_SERIAL_THREAD)
			__atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED);
	return 0;
}

/* The serial thread frees it while others are still on their way out. */
static void *leaver(void *p)
{
	pthread_barrier_t *mine = p;
	if (pthread_barrier_wait(mine) == PTHREAD_BARRIER_SERIAL_THREAD) {
		pthread_barrier_destroy(mine);
		memset(mine, 0x5a, sizeof *mine);
		free(mine);
	}
	return 0;
}

int main(void)
{
	pthread_t th[16];
	pthread_barrierattr_t a;
	pthread_barrier_t *s = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int st, n = 0;
	printf("none %s\n", strerror(pthread_barrier_init(&b, 0, 0)));
	for (int k = 1; k <= 16; k += k == 1 ? 1 : 14) {
		serial = 0;
		printf("init %d\n", pthread_barrier_init(&b, 0, k));
		for (int i = 0; i < k; i++)
			pthread_create(&th[i], 0, worker, 0);
		for (int i = 0; i < k; i++)
			pthread_join(th[i], 0);
		printf("%d threads: serial %d times\n", k, serial);
		printf("destroy %d\n", pthread_barrier_destroy(&b));
	}
	for (int i = 0; i < 20; i++) {
		pthread_barrier_t *p = malloc(sizeof *p);
		pthread_barrier_init(p, 0, 4);
		for (int k = 0; k < 4; k++)
			pthread_create(&th[k], 0, leaver, p);
		for (int k = 0; k < 4; k++)
			pthread_join(th[k], 0);
	}
	pthread_barrierattr_init(&a);
	pthread_barrierattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(s, &a, 3);
	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			int mine = 0;
			for (int k = 0; k < 20; k++)
				mine += pthread_barrier_wait(s) != 0;
			_exit(mine);
		}
	while (wait(&st) > 0)
		n += WEXITSTATUS(st);
	printf("processes: serial %d times, destroy %d\n", n, pthread_barrier_destroy(s));
	return 0;
}

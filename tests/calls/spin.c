/* Spin locks. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_spinlock_t l;
static long n;

static void *worker(void *arg)
{
	for (int i = 0; i < 2000; i++) {
		if (i % 5 == 0)
			while (pthread_spin_trylock(&l) == EBUSY)
				sched_yield();
		else
			pthread_spin_lock(&l);
		n++;
		pthread_spin_unlock(&l);
	}
	return 0;
}

int main(void)
{
	pthread_t th[16];
	struct {
		pthread_spinlock_t l;
		long n;
	} *s = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	printf("init %d\n", pthread_spin_init(&l, PTHREAD_PROCESS_PRIVATE));
	for (int k = 2; k <= 16; k += 14) {
		n = 0;
		for (int i = 0; i < k; i++)
			pthread_create(&th[i], 0, worker, 0);
		for (int i = 0; i < k; i++)
			pthread_join(th[i], 0);
		printf("%d threads %ld\n", k, n);
	}
	pthread_spin_lock(&l);
	printf("try %s\n", strerror(pthread_spin_trylock(&l)));
	pthread_spin_unlock(&l);
	printf("destroy %d\n", pthread_spin_destroy(&l));
	pthread_spin_init(&s->l, PTHREAD_PROCESS_SHARED);
	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			for (int k = 0; k < 500; k++) {
				pthread_spin_lock(&s->l);
				s->n++;
				pthread_spin_unlock(&s->l);
			}
			_exit(0);
		}
	while (wait(0) > 0)
		;
	printf("processes %ld\n", s->n);
	pthread_spin_destroy(&s->l);
	return 0;
}

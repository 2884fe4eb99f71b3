// cflags: -O2
// Every kind of object once, and processes, pipes, files and sleeps.
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 50 };
static pthread_barrier_t barrier;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static sem_t sem;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int shared[3]; /* by which lock guards it */

static void *work(void *p)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&barrier);
		if ((i + (long)p) % 4)
			pthread_rwlock_rdlock(&rw);
		else
			pthread_rwlock_wrlock(&rw);
		pthread_rwlock_unlock(&rw);
		sem_wait(&sem);
		shared[0]++;
		sem_post(&sem);
		pthread_spin_lock(&spin);
		shared[1]++;
		pthread_spin_unlock(&spin);
		while (pthread_mutex_trylock(&m))
			usleep(100);
		shared[2]++;
		pthread_mutex_unlock(&m);
	}
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];
	int p[2], fd;
	char b[4096] = "x";
	pthread_barrier_init(&barrier, NULL, THREADS);
	pthread_spin_init(&spin, 0);
	sem_init(&sem, 0, 1);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	if (pipe(p))
		return 1;
	pid_t child = fork();
	if (!child) {
		usleep(50000);
		for (int i = 0; i < 20; i++)
			if (write(p[1], b, sizeof b) != sizeof b)
				_exit(1);
		_exit(0);
	}
	close(p[1]);
	long got = 0;
	for (ssize_t n; (n = read(p[0], b, sizeof b)) > 0;)
		got += n;
	waitpid(child, NULL, 0);
	fd = open("predict.tmp", O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (int i = 0; i < 20; i++)
		if (pwrite(fd, b, sizeof b, i * 8192L) != sizeof b || fsync(fd))
			return 1;
	if (rename("predict.tmp", "predict.new") || access("predict.tmp", F_OK) == 0 || unlink("predict.new"))
		return 1;
	usleep(100000);
	printf("%d %ld\n", shared[0] + shared[1] + shared[2], got);
}

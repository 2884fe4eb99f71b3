// Threads that lock, ask the time and write, for ever or a number of times; argv: threads, rounds (0: for ever), a file
// in which each thread counts the rounds it has done, before anything else may happen to it.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t m[4] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static volatile long *done;
static long rounds;
static int null;

static void *run(void *a)
{
	long me = (long)a, i;
	struct timespec ts;
	for (i = 0; !rounds || i < rounds; i++) {
		pthread_mutex_lock(&m[(me + i) & 3]);
		clock_gettime(CLOCK_MONOTONIC, &ts);
		pthread_mutex_unlock(&m[(me + i) & 3]);
		if (i % 16 == 0)
			write(null, "x", 1);
		done[me]++;
	}
	return 0;
}

int main(int argc, char **argv)
{
	long i, n = atol(argv[1]);
	pthread_t t[64];
	int fd = open(argv[3], O_RDWR | O_CREAT, 0600);
	rounds = atol(argv[2]);
	if (fd < 0)
		return perror(argv[3]), 1;
	if (ftruncate(fd, 4096))
		return perror("ftruncate"), 1;
	done = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	null = open("/dev/null", O_WRONLY);
	for (i = 0; i < n; i++)
		pthread_create(&t[i], 0, run, (void *)i);
	for (i = 0; i < n; i++)
		pthread_join(t[i], 0);
	printf("worked\n");
	return 3;
}

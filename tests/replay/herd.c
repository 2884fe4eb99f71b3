// Threads wait together for an eventfd, an epoll and a pipe, as servers do whose workers share a listener. All of them are
// woken, one takes what came: for the others there was something, too, though it is gone when they look.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { ROUNDS = 300 };
static int event, epoll, ends[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long woken, taken, hash = 5381;

static void saw(long id, int what)
{
	pthread_mutex_lock(&lock);
	hash = hash * 33 + (unsigned long)(id * 4 + what);
	woken++;
	taken += what;
	pthread_mutex_unlock(&lock);
}

static int all(void)
{
	pthread_mutex_lock(&lock);
	int r = taken == ROUNDS;
	pthread_mutex_unlock(&lock);
	return r;
}

static void *work(void *p)
{
	long id = (long)p;
	while (!all()) {
		uint64_t n;
		char c;
		if (id % 2) {
			struct epoll_event e;
			if (epoll_wait(epoll, &e, 1, 5) == 1)
				saw(id, read(event, &n, 8) == 8);
		} else {
			struct pollfd f = {ends[0], POLLIN, 0};
			if (poll(&f, 1, 5) == 1)
				saw(id, read(ends[0], &c, 1) == 1);
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 4;
	pthread_t t[64];
	struct epoll_event e = {.events = EPOLLIN};
	event = eventfd(0, EFD_NONBLOCK | EFD_SEMAPHORE);
	epoll = epoll_create1(0);
	epoll_ctl(epoll, EPOLL_CTL_ADD, event, &e);
	if (pipe2(ends, O_NONBLOCK))
		return 1;
	for (long i = 0; i < n; i++)
		pthread_create(t + i, 0, work, (void *)i);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t one = 1;
		if (i % 2 ? write(event, &one, 8) != 8 : write(ends[1], "x", 1) != 1)
			return 1;
		if (i % 4 == 3)
			usleep(100);
	}
	for (int i = 0; i < n; i++)
		pthread_join(t[i], 0);
	printf("%lu %lu\n", taken, hash);
	return 0;
}

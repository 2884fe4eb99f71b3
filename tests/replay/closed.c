// A thread that a byte wakes up closes the pipe that it came through, before whoever wrote it goes on.
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int ends[2];

static void *woken(void *arg)
{
	struct pollfd p = {ends[0], POLLIN, 0};
	poll(&p, 1, -1);
	close(ends[0]);
	close(ends[1]);
	return arg;
}

int main(void)
{
	pthread_t t;
	int i, n = 0;
	for (i = 0; i < 200; i++) {
		if (pipe(ends) != 0)
			return 1;
		pthread_create(&t, 0, woken, 0);
		n += (int)write(ends[1], "x", 1);
		pthread_join(t, 0);
	}
	printf("%d\n", n);
	return 0;
}

// Edge-triggered epoll, and one read only: what came meanwhile is never told of. Guarded: yes (socket and epoll are recorded),
// re-executes under order alone. Fails: exit status 1, "asleep".
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static int s[2];

static void *send_all(void *a)
{
	for (int i = 0; i < 20; i++) {
		write(s[1], "x", 1);
		if (i % 3 == 2)
			usleep(30);
	}
	return 0;
}

int main(void)
{
	socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, s);
	int e = epoll_create1(0);
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	epoll_ctl(e, EPOLL_CTL_ADD, s[0], &ev);
	pthread_t t;
	pthread_create(&t, 0, send_all, 0);
	int got = 0;
	while (got < 20) {
		if (epoll_wait(e, &ev, 1, 200) == 0)
			break;
		char b[4];
		if (read(s[0], b, sizeof b) > 0)
			got++;
	}
	pthread_join(t, 0);
	if (got < 20) {
		printf("asleep after %d\n", got);
		return 1;
	}
	return 0;
}

// An epoll server that ends by itself: one thread accepts, hands each connection to one of the workers by epoll_ctl with
// a pointer, and they answer and close. argv: workers, connections. Prints its port, then what it counted.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

struct peer {
	int fd;
	long bytes, messages;
};

static int wake, left;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long bytes, messages;

static void over(struct peer *p)
{
	int last;
	pthread_mutex_lock(&lock);
	bytes += p->bytes;
	messages += p->messages;
	last = --left == 0;
	pthread_mutex_unlock(&lock);
	close(p->fd);
	free(p);
	if (last)
		eventfd_write(wake, 1);
}

static void *work(void *arg)
{
	int ep = *(int *)arg;
	for (;;) {
		struct epoll_event ev[8];
		int i, n = epoll_wait(ep, ev, 8, -1);
		for (i = 0; i < n; i++) {
			struct peer *p = ev[i].data.ptr;
			char b[4096];
			ssize_t r;
			if (!p)
				return 0;
			while ((r = read(p->fd, b, sizeof b)) > 0) {
				p->bytes += r;
				p->messages++;
				if (write(p->fd, b, (size_t)r) != r)
					return (void *)1;
			}
			if (r == 0 || errno != EAGAIN)
				over(p);
		}
	}
}

int main(int argc, char **argv)
{
	int workers = atoi(argv[1]), connections = atoi(argv[2]), ep[64], l = socket(AF_INET, SOCK_STREAM, 0), i;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct epoll_event stop = {EPOLLIN, {.ptr = 0}};
	socklen_t n = sizeof a;
	pthread_t t[64];
	left = connections;
	wake = eventfd(0, EFD_NONBLOCK);
	bind(l, (void *)&a, sizeof a);
	listen(l, 100);
	getsockname(l, (void *)&a, &n);
	printf("%d\n", ntohs(a.sin_port));
	fflush(stdout);
	for (i = 0; i < workers; i++) {
		ep[i] = epoll_create1(EPOLL_CLOEXEC);
		epoll_ctl(ep[i], EPOLL_CTL_ADD, wake, &stop);
		pthread_create(&t[i], 0, work, &ep[i]);
	}
	for (i = 0; i < connections; i++) {
		struct peer *p = calloc(1, sizeof *p);
		struct epoll_event ev = {EPOLLIN | EPOLLRDHUP | EPOLLET, {.ptr = p}};
		p->fd = accept4(l, 0, 0, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (p->fd < 0)
			return perror("accept"), 1;
		epoll_ctl(ep[i % workers], EPOLL_CTL_ADD, p->fd, &ev);
	}
	for (i = 0; i < workers; i++)
		pthread_join(t[i], 0);
	printf("%ld bytes, %ld messages, left %d\n", bytes, messages, left);
	return 0;
}

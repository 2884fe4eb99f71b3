/* A server that asks for everything by system call number; argv[1] connections, one after another. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static void say(const char *what, long r, const void *p, long n)
{
	long i;
	printf("%s %ld", what, r);
	for (i = 0; i < n; i++)
		printf(" %02x", ((const unsigned char *)p)[i]);
	printf("\n");
}

/* Waits in each way until there is something to read; what is left of the time is told. */
static void waits(int fd, int ep)
{
	struct timespec left = {60, 0};
	struct pollfd p[2] = {{-1, POLLIN, 0}, {fd, POLLIN, 0}};
	struct epoll_event ev[4];
	unsigned long some[2] = {0, 0}, out[2], sixth[2] = {0, 8};
	memset(ev, 0, sizeof ev);
	some[fd / 64] |= 1ul << fd % 64;
	say("ppoll", syscall(SYS_ppoll, p, 2, &left, 0, 8), p, sizeof p);
	say("left", 0, &left, sizeof left);
	out[0] = some[0];
	out[1] = some[1];
	left.tv_sec = 60;
	say("pselect6", syscall(SYS_pselect6, fd + 1, some, out, 0, &left, sixth), some, sizeof some);
	say("left", 0, &left, sizeof left);
	say("writable", 0, out, sizeof out);
#ifdef SYS_select
	{
		struct timeval tv = {60, 0};
		say("select", syscall(SYS_select, fd + 1, some, 0, 0, &tv), some, sizeof some);
		say("left", 0, &tv, sizeof tv);
		tv.tv_sec = 0;
		tv.tv_usec = 1000;
		say("select", syscall(SYS_select, 0, 0, 0, 0, &tv), &tv, sizeof tv);
	}
	p[0].revents = p[1].revents = 0;
	say("poll", syscall(SYS_poll, p, 2, 60000), p, sizeof p);
	say("epoll_wait", syscall(SYS_epoll_wait, ep, ev, 4, 60000), ev, sizeof ev);
#endif
	say("epoll_pwait", syscall(SYS_epoll_pwait, ep, ev, 4, 60000, 0, 8), ev, sizeof ev);
	left = (struct timespec){0, 1000};
	p[1].events = 0;
	say("ppoll", syscall(SYS_ppoll, p, 2, &left, 0, 8), &left, sizeof left);
	say("ppoll", syscall(SYS_ppoll, (void *)8, 2, &left, 0, 8), 0, 0);
}

static void serve(int fd, int ep)
{
	char data[64];
	struct sockaddr_in who;
	socklen_t len = sizeof who;
	struct iovec v[2] = {{data, 2}, {data + 2, 30}};
	struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
	struct epoll_event ev = {EPOLLIN, {.u64 = 77}};
	long r;
	memset(&who, 0, sizeof who);
	memset(data, 0, sizeof data);
	say("epoll_ctl", syscall(SYS_epoll_ctl, ep, EPOLL_CTL_ADD, fd, &ev), 0, 0);
	say("getpeername", syscall(SYS_getpeername, fd, &who, &len), &who, len);
	waits(fd, ep);
	say("recvfrom", syscall(SYS_recvfrom, fd, data, 4, 0, 0, 0), data, 4);
	say("read", syscall(SYS_read, fd, data, 4), data, 4);
	say("readv", syscall(SYS_readv, fd, v, 2), data, 32);
	r = syscall(SYS_recvmsg, fd, &m, 0);
	say("recvmsg", r, data, r);
	say("write", syscall(SYS_write, fd, data, 4), 0, 0);
	say("sendto", syscall(SYS_sendto, fd, data, 4, 0, 0, 0), 0, 0);
	v[0].iov_len = 4;
	v[1].iov_len = 4;
	say("writev", syscall(SYS_writev, fd, v, 2), 0, 0);
	say("sendmsg", syscall(SYS_sendmsg, fd, &m, 0), 0, 0);
	while ((r = syscall(SYS_read, fd, data, sizeof data)) > 0)
		say("rest", r, data, r);
	say("end", r, 0, 0);
	say("shutdown", syscall(SYS_shutdown, fd, SHUT_RDWR), 0, 0);
	say("close", close(fd), 0, 0);
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof a;
	int fd = (int)syscall(SYS_socket, AF_INET, SOCK_STREAM, 0), ep = (int)syscall(SYS_epoll_create1, 0), n = atoi(argv[1]), i, one = 1;
	syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (syscall(SYS_bind, fd, &a, len) != 0 || syscall(SYS_listen, fd, 8) != 0 || syscall(SYS_getsockname, fd, &a, &len) != 0)
		return 1;
	printf("%d\n", ntohs(a.sin_port));
	fflush(stdout);
	for (i = 0; i < n; i++) {
		struct sockaddr_in who;
		long c;
		len = sizeof who;
		memset(&who, 0, sizeof who);
		c = i & 1 ? syscall(SYS_accept4, fd, &who, &len, SOCK_CLOEXEC) : syscall(SYS_accept, fd, &who, &len);
		say("accepted", c, &who, len);
		if (c < 0)
			return 1;
		serve((int)c, ep);
	}
	fd = (int)syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
	say("connect", syscall(SYS_connect, fd, &a, sizeof a), 0, 0);
	say("accept", syscall(SYS_accept4, 99, 0, 0, 0), 0, 0);
	return 0;
}

// cflags: -O2
// A server computes an answer to each datagram of its clients, by an address that it is bound to; one of them is connected to it, and the
// others have no address before they send; one sends and receives several at a time. What comes to nobody is lost.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long sink;

static void burn(unsigned n)
{
	unsigned long x = n;
	for (unsigned k = 0; k < n; k++)
		x = x * 6364136223846793005ul + 1;
	sink = x;
}

static void serve(int fd, int n)
{
	char b[2000];
	for (int i = 0; i < n; i++) {
		struct sockaddr_in from;
		socklen_t len = sizeof from;
		ssize_t r = recvfrom(fd, b, sizeof b, 0, (struct sockaddr *)&from, &len);
		burn(3000000);
		sendto(fd, b, (size_t)r + 1, 0, (struct sockaddr *)&from, len);
	}
}

static void ask(struct sockaddr_in to, int connected, int n)
{
	char b[2000] = {0};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (connected)
		connect(fd, (struct sockaddr *)&to, sizeof to);
	for (int i = 0; i < n; i++) {
		if (connected) {
			send(fd, b, 100, 0);
			read(fd, b, sizeof b);
		} else {
			sendto(fd, b, 900, 0, (struct sockaddr *)&to, sizeof to);
			recvfrom(fd, b, sizeof b, 0, NULL, NULL);
		}
	}
	close(fd);
}

/* Four at a time, none as long as another, and the answers as they come. */
static void ask_many(struct sockaddr_in to, int n)
{
	static char b[4][2000];
	struct iovec v[4];
	struct mmsghdr m[4] = {0};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	for (; n > 0; n -= 4) {
		for (int i = 0; i < 4; i++) {
			v[i] = (struct iovec){b[i], 200u + (unsigned)i};
			m[i].msg_hdr = (struct msghdr){.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &v[i], .msg_iovlen = 1};
		}
		sendmmsg(fd, m, 4, 0);
		for (int i = 0; i < 4; i++) {
			v[i].iov_len = sizeof b[i];
			m[i].msg_hdr.msg_name = NULL;
			m[i].msg_hdr.msg_namelen = 0;
		}
		for (int got = 0; got < 4;) {
			int k = recvmmsg(fd, m, (unsigned)(4 - got), MSG_WAITFORONE, NULL);
			if (k <= 0)
				return;
			got += k;
		}
	}
	close(fd);
}

int main(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET}, lost = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof a;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) || getsockname(fd, (struct sockaddr *)&a, &len))
		return 1;
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (!fork()) {
		serve(fd, 60);
		_exit(0);
	}
	close(fd);
	for (int i = 0; i < 2; i++)
		if (!fork()) {
			ask(a, i, 20);
			_exit(0);
		}
	if (!fork()) {
		ask_many(a, 20);
		_exit(0);
	}
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	sendto(fd, "x", 1, 0, (struct sockaddr *)&lost, sizeof lost);
	while (wait(NULL) > 0)
		;
	puts("done");
}

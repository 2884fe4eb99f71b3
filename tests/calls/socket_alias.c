// cflags: -Wno-implicit-function-declaration
/* The other names of socket calls. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

extern int __connect(int, const struct sockaddr *, socklen_t);
extern ssize_t __send(int, const void *, size_t, int);
extern ssize_t __recv_chk(int, void *, size_t, size_t, int);
extern ssize_t __recvfrom_chk(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *);

int main(void)
{
	int sv[2];
	char b[16];
	struct sockaddr_un u = {AF_UNIX, ""}, from;
	socklen_t n = sizeof from;
	socketpair(AF_UNIX, SOCK_DGRAM, 0, sv);
	printf("connect %d %d\n", __connect(sv[0], (void *)&u, 1000), errno);
	printf("send %zd\n", __send(sv[0], "hello", 5, 0));
	printf("recv %zd", __recv_chk(sv[1], b, 16, 16, 0));
	printf(" %.5s\n", b);
	__send(sv[0], "there", 5, 0);
	printf("recvfrom %zd", __recvfrom_chk(sv[1], b, 16, 16, 0, (void *)&from, &n));
	printf(" %.5s %d\n", b, (int)n);
	return 0;
}

/* Sockets: made, named, joined, asked; what is refused stays refused. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void show(const char *what, long r)
{
	int e = errno;
	printf("%s %ld %d\n", what, r, r < 0 ? e : 0);
}

static void tcp(int family)
{
	struct sockaddr_storage a = {0}, b;
	struct sockaddr_in *v4 = (void *)&a;
	struct sockaddr_in6 *v6 = (void *)&a;
	socklen_t n = family == AF_INET ? sizeof *v4 : sizeof *v6, m;
	int s = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), c, d, one = 1, v;
	if (s < 0) {
		puts("no such family");
		return;
	}
	a.ss_family = family;
	if (family == AF_INET)
		v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		v6->sin6_addr = in6addr_loopback;
	show("setsockopt", setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one));
	if (bind(s, (void *)&a, n)) {
		puts("no address of that family");
		close(s);
		return;
	}
	show("bind again", bind(s, (void *)&a, n));
	show("listen", listen(s, 5));
	m = sizeof a;
	show("getsockname", getsockname(s, (void *)&a, &m));
	c = socket(family, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_TCP);
	show("connect", connect(c, (void *)&a, n));
	{
		struct pollfd p = {c, POLLOUT, 0};
		poll(&p, 1, 5000);
	}
	m = sizeof v;
	v = -1;
	show("so_error", getsockopt(c, SOL_SOCKET, SO_ERROR, &v, &m));
	printf("error %d length %d\n", v, (int)m);
	show("connect again", connect(c, (void *)&a, n));
	m = sizeof b;
	d = accept(s, (void *)&b, &m);
	printf("accepted %d family %d length %d\n", d >= 0, b.ss_family == family, m == n);
	m = sizeof b;
	show("getpeername", getpeername(c, (void *)&b, &m));
	printf("peer is the listener %d\n", !memcmp(&a, &b, 8));
	show("sockatmark", sockatmark(d));
	show("isfdtype", isfdtype(d, S_IFSOCK));
	{
		struct tcp_info i;
		m = sizeof i;
		show("tcp_info", getsockopt(d, IPPROTO_TCP, TCP_INFO, &i, &m));
		struct linger l = {1, 0};
		show("linger", setsockopt(d, SOL_SOCKET, SO_LINGER, &l, sizeof l));
	}
	show("shutdown", shutdown(d, SHUT_WR));
	show("shutdown twice", shutdown(c, SHUT_RDWR));
	close(c);
	close(d);
	close(s);
}

static void *waits(void *fd)
{
	accept4(*(int *)fd, 0, 0, 0);
	return 0;
}

int main(void)
{
	struct sockaddr_un u = {AF_UNIX, "unix-socket-of-test"}, name;
	socklen_t m;
	int s, c, d, sv[2];
	char path[] = "/tmp/calls-socket-XXXXXX";
	pthread_t t;
	void *got;
	if (!mkdtemp(path) || chdir(path))
		return 1;
	tcp(AF_INET);
	tcp(AF_INET6);
	s = socket(AF_UNIX, SOCK_STREAM, 0);
	show("unix bind", bind(s, (void *)&u, sizeof u));
	show("unix listen", listen(s, 1));
	c = socket(AF_UNIX, SOCK_STREAM, 0);
	show("unix connect", connect(c, (void *)&u, sizeof u));
	m = 4;
	memset(&name, 'x', sizeof name);
	d = accept4(s, (void *)&name, &m, SOCK_CLOEXEC | SOCK_NONBLOCK);
	printf("unix accept %d cloexec %d nonblock %d len %d\n", d >= 0, fcntl(d, F_GETFD), !!(fcntl(d, F_GETFL) & O_NONBLOCK), (int)m);
	m = 5; /* too short: cut, told in full */
	memset(&name, 'x', sizeof name);
	show("short getsockname", getsockname(s, (void *)&name, &m));
	printf("told %d, wrote %.4s\n", (int)m, name.sun_path);
	close(d);
	close(c);
	pthread_create(&t, 0, waits, &s);
	usleep(20000);
	pthread_cancel(t);
	pthread_join(t, &got);
	printf("accept4 is a cancellation point %d\n", got == PTHREAD_CANCELED);
	unlink(u.sun_path);
	show("socketpair", socketpair(AF_UNIX, SOCK_DGRAM, 0, sv));
	show("bad pair", socketpair(AF_INET, SOCK_STREAM, 0, sv));
	show("pair nowhere", socketpair(AF_UNIX, SOCK_STREAM, 0, (int *)8));
	show("bad socket", socket(AF_INET, 77, 0));
	show("bad family", socket(9999, SOCK_STREAM, 0));
	show("bind nowhere", bind(s, (void *)8, 16));
	show("connect nowhere", connect(c = socket(AF_INET, SOCK_STREAM, 0), (void *)8, 16));
	show("connect null", connect(c, 0, 0));
	show("connect short", connect(c, (void *)&u, 1));
	show("connect to none", connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&u, sizeof u));
	show("accept none", accept(c, 0, 0));
	show("accept bad", accept(-1, 0, 0));
	show("accept4 bad", accept4(1000000, 0, 0, 0));
	show("getsockopt nowhere", getsockopt(c, SOL_SOCKET, SO_TYPE, 0, (socklen_t *)8));
	m = 0;
	show("getsockopt nothing", getsockopt(c, SOL_SOCKET, SO_TYPE, (void *)8, &m));
	show("setsockopt nowhere", setsockopt(c, SOL_SOCKET, SO_KEEPALIVE, (void *)8, 4));
	show("setsockopt null", setsockopt(c, SOL_SOCKET, SO_KEEPALIVE, 0, 0));
	show("getpeername none", getpeername(c, (void *)&name, &m));
	show("getsockname nowhere", getsockname(c, (void *)8, (socklen_t *)8));
	show("shutdown none", shutdown(c, SHUT_RD));
	show("listen on a pair", listen(sv[0], 1));
	show("sockatmark bad", sockatmark(-1));
	show("isfdtype no", isfdtype(0, S_IFSOCK));
	chdir("/");
	rmdir(path);
	return 0;
}

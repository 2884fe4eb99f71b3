/* Data over sockets: whole, cut, scattered, with descriptors beside it, many messages at once. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

static void show(const char *what, long r)
{
	int e = errno;
	printf("%s %ld %d\n", what, r, r < 0 ? e : 0);
}

static void *waits(void *fd)
{
	char b[8];
	recv(*(int *)fd, b, sizeof b, 0);
	return 0;
}

/* An address longer than its room is cut and told in full; here nothing can be read behind its room. */
static void cut(void)
{
	struct sockaddr_un name = {AF_UNIX, "sendrecv-of-test"};
	char path[] = "/tmp/calls-sendrecv-XXXXXX", c;
	char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *at;
	socklen_t rooms[] = {2, 3, 7, 19, 60}, n;
	int sv[2], i, k;
	if (!mkdtemp(path) || chdir(path) || socketpair(AF_UNIX, SOCK_STREAM, 0, sv) || bind(sv[1], (void *)&name, sizeof name))
		return;
	munmap(page + 4096, 4096);
	for (k = 0; k < 2; k++)
		for (i = 0; i < 5; i++) {
			struct iovec v = {&c, 1};
			struct mmsghdr m = {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1, .msg_namelen = rooms[i]}};
			n = rooms[i];
			at = page + (k ? 4096 - n : 2048);
			m.msg_hdr.msg_name = at;
			memset(page, 'x', 4096);
			send(sv[1], "abc", 3, 0);
			show("address cut", recvfrom(sv[0], &c, 1, 0, (void *)at, &n));
			printf("told %d wrote %.*s\n", (int)n, k ? (int)rooms[i] - 2 : 24, at + 2);
			memset(page, 'x', 4096);
			show("of a message", recvmsg(sv[0], &m.msg_hdr, 0));
			printf("told %d wrote %.*s\n", (int)m.msg_hdr.msg_namelen, k ? (int)rooms[i] - 2 : 24, at + 2);
			memset(page, 'x', 4096);
			m.msg_hdr.msg_namelen = rooms[i];
			show("of many", recvmmsg(sv[0], &m, 1, 0, 0));
			printf("told %d wrote %.*s\n", (int)m.msg_hdr.msg_namelen, k ? (int)rooms[i] - 2 : 24, at + 2);
		}
	unlink(name.sun_path);
	chdir("/");
	rmdir(path);
	close(sv[0]);
	close(sv[1]);
	munmap(page, 4096);
}

int main(void)
{
	int sv[2], dg[2], u, w, i, fd;
	char b[8192], c[8192], ctl[CMSG_SPACE(sizeof(int) * 2)];
	struct iovec v[3] = {{b, 3}, {0, 0}, {b + 3, 5}}, lots[40];
	struct msghdr m = {0};
	struct mmsghdr mm[3];
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, from;
	socklen_t n = sizeof a;
	pthread_t t;
	void *got;
	for (i = 0; i < (int)sizeof b; i++)
		b[i] = (char)(i * 7);
	socketpair(AF_UNIX, SOCK_STREAM, 0, sv);
	socketpair(AF_UNIX, SOCK_DGRAM, 0, dg);
	show("send", send(sv[0], b, 10, 0));
	show("peek", recv(sv[1], c, 4, MSG_PEEK));
	show("recv", recv(sv[1], c, sizeof c, 0));
	printf("same %d\n", !memcmp(b, c, 10));
	show("big send", send(sv[0], b, sizeof b, MSG_NOSIGNAL));
	show("big recv", recv(sv[1], c, sizeof c, MSG_WAITALL));
	printf("same %d\n", !memcmp(b, c, sizeof b));
	show("datagram", send(dg[0], b, 100, 0));
	show("cut", recv(dg[1], c, 10, 0));
	send(dg[0], b, 100, 0);
	show("length of cut", recv(dg[1], c, 10, MSG_TRUNC));
	send(dg[0], b, 100, 0);
	show("length only", recv(dg[1], 0, 0, MSG_TRUNC | MSG_PEEK));
	recv(dg[1], c, 10, 0);
	show("nothing there", recv(dg[1], c, 10, MSG_DONTWAIT));
	show("recv nowhere", recv(sv[1], (void *)8, 10, MSG_DONTWAIT));
	show("send nowhere", send(sv[0], (void *)8, 10, 0));
	show("send bad", send(-1, b, 1, 0));
	u = socket(AF_INET, SOCK_DGRAM, 0);
	w = socket(AF_INET, SOCK_DGRAM, 0);
	bind(u, (void *)&a, sizeof a);
	getsockname(u, (void *)&a, &n);
	show("sendto", sendto(w, b, 20, 0, (void *)&a, sizeof a));
	n = sizeof from;
	show("recvfrom", recvfrom(u, c, sizeof c, 0, (void *)&from, &n));
	printf("from %d length %d\n", from.sin_family == AF_INET, (int)n);
	sendto(w, b, 20, 0, (void *)&a, sizeof a);
	n = 2;
	memset(&from, 'x', sizeof from);
	show("short address", recvfrom(u, c, sizeof c, 0, (void *)&from, &n));
	printf("length %d untouched %d\n", (int)n, from.sin_port == 0x7878);
	sendto(w, b, 20, 0, (void *)&a, sizeof a);
	n = 0;
	show("address nowhere, no length", recvfrom(u, c, sizeof c, 0, (void *)8, &n));
	printf("length %d\n", (int)n);
	sendto(w, b, 20, 0, (void *)&a, sizeof a);
	show("no address", recvfrom(u, c, sizeof c, 0, 0, 0));
	sendto(w, b, 20, 0, (void *)&a, sizeof a);
	show("length nowhere", recvfrom(u, c, sizeof c, 0, (void *)&from, (socklen_t *)8));
	show("recvfrom a stream", (send(sv[0], b, 3, 0), n = sizeof from, recvfrom(sv[1], c, 3, 0, (void *)-1, &n)));
	show("sendto nowhere", sendto(w, b, 1, 0, (void *)8, sizeof a));
	show("sendto a stream", sendto(sv[0], b, 1, 0, (void *)8, 0));
	recv(sv[1], c, 1, 0);
	m.msg_iov = v;
	m.msg_iovlen = 3;
	show("sendmsg", sendmsg(sv[0], &m, 0));
	v[0].iov_base = c;
	v[2].iov_base = c + 3;
	show("recvmsg", recvmsg(sv[1], &m, 0));
	printf("same %d flags %d\n", !memcmp(b, c, 8), m.msg_flags);
	for (i = 0; i < 40; i++) {
		lots[i].iov_base = b + i * 200;
		lots[i].iov_len = 200;
	}
	m.msg_iov = lots;
	m.msg_iovlen = 40;
	show("many pieces", sendmsg(sv[0], &m, 0));
	for (i = 0; i < 40; i++)
		lots[i].iov_base = c + i * 200;
	memset(c, 0, sizeof c);
	show("into many", recvmsg(sv[1], &m, MSG_WAITALL));
	printf("same %d\n", !memcmp(b, c, 8000));
	/* descriptors come along */
	struct cmsghdr *h;
	v[0].iov_base = b;
	v[0].iov_len = 1;
	memset(&m, 0, sizeof m);
	memset(ctl, 0, sizeof ctl);
	m.msg_iov = v;
	m.msg_iovlen = 1;
	m.msg_control = ctl;
	m.msg_controllen = sizeof ctl;
	h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int) * 2);
	((int *)CMSG_DATA(h))[0] = open("/dev/null", O_RDWR);
	((int *)CMSG_DATA(h))[1] = open("/dev/zero", O_RDWR);
	show("send rights", sendmsg(sv[0], &m, 0));
	m.msg_controllen = sizeof ctl;
	show("receive rights", recvmsg(sv[1], &m, MSG_CMSG_CLOEXEC));
	h = CMSG_FIRSTHDR(&m);
	printf("got %d %d\n", h->cmsg_level == SOL_SOCKET, h->cmsg_type == SCM_RIGHTS);
	fd = ((int *)CMSG_DATA(h))[1];
	show("read of what came", read(fd, c, 5));
	m.msg_controllen = 0;
	show("recvmsg nothing", recvmsg(sv[1], &m, MSG_DONTWAIT));
	/* room for nothing: a stream keeps what has come, a message is gone */
	memset(&m, 0, sizeof m);
	write(sv[0], "xyz", 3);
	show("recvmsg of no pieces", recvmsg(sv[1], &m, 0));
	show("recv of nothing", recv(sv[1], c, 0, 0));
	show("read of nothing", read(sv[1], c, 0));
	show("read of it", read(sv[1], c, 9));
	write(dg[0], "abc", 3);
	write(dg[0], "de", 2);
	show("read of no datagram", read(dg[1], c, 0));
	show("recvmsg of no pieces", recvmsg(dg[1], &m, 0));
	printf("cut %d\n", m.msg_flags == MSG_TRUNC);
	show("the next", recv(dg[1], c, 9, 0));
	show("recvmsg nowhere", recvmsg(sv[1], (void *)8, 0));
	show("sendmsg nowhere", sendmsg(sv[1], (void *)8, 0));
	/* many at once */
	memset(mm, 0, sizeof mm);
	for (i = 0; i < 3; i++) {
		lots[i].iov_base = b + i;
		lots[i].iov_len = 10 + i;
		mm[i].msg_hdr.msg_iov = &lots[i];
		mm[i].msg_hdr.msg_iovlen = 1;
	}
	show("sendmmsg", sendmmsg(dg[0], mm, 3, 0));
	for (i = 0; i < 3; i++) {
		lots[i].iov_base = c + i * 100;
		lots[i].iov_len = 11;
	}
	show("recvmmsg", recvmmsg(dg[1], mm, 3, MSG_WAITFORONE, 0));
	printf("lengths %u %u %u flags %d same %d\n", mm[0].msg_len, mm[1].msg_len, mm[2].msg_len, !!(mm[2].msg_hdr.msg_flags & MSG_TRUNC),
	       !memcmp(c + 200, b + 2, 11));
	show("sendmmsg nowhere", sendmmsg(dg[0], (void *)8, 1, 0));
	show("recvmmsg none", recvmmsg(dg[1], mm, 3, MSG_DONTWAIT, 0));
	pthread_create(&t, 0, waits, &dg[1]);
	usleep(20000);
	pthread_cancel(t);
	pthread_join(t, &got);
	printf("recv is a cancellation point %d\n", got == PTHREAD_CANCELED);
	cut();
	close(sv[0]);
	show("end", recv(sv[1], c, 10, 0));
	show("broken", send(sv[1], b, 1, MSG_NOSIGNAL));
	return 0;
}

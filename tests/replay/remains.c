// recvmmsg tells what is left of the time that it was given, if anything came; by its number, too.
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	struct timespec ts = {3, 12345678};
	char b[2];
	struct iovec v[2] = {{b, 1}, {b + 1, 1}};
	struct mmsghdr m[2] = {{.msg_hdr = {.msg_iov = v, .msg_iovlen = 1}}, {.msg_hdr = {.msg_iov = v + 1, .msg_iovlen = 1}}};
	int s[2], r;
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, s) || write(s[1], "A", 1) != 1 || write(s[1], "B", 1) != 1)
		return 2;
	r = recvmmsg(s[0], m, 2, 0, &ts);
	printf("%d %.2s, %d.%09ld\n", r, b, (int)ts.tv_sec, ts.tv_nsec);
	r = recvmmsg(s[0], m, 2, MSG_DONTWAIT, &ts);
	printf("%d, %d.%09ld\n", r, (int)ts.tv_sec, ts.tv_nsec);
	b[0] = 'C';
	b[1] = 'D';
	r = (int)syscall(SYS_sendmmsg, s[1], m, 2, 0);
	printf("%d %u %u\n", r, m[0].msg_len, m[1].msg_len);
	b[0] = b[1] = 'x';
	ts.tv_sec = 5;
	r = (int)syscall(SYS_recvmmsg, s[0], m, 2, 0, &ts);
	printf("%d %.2s, %d.%09ld\n", r, b, (int)ts.tv_sec, ts.tv_nsec);
	return 0;
}

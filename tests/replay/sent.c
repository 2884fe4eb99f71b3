// Several threads, or processes, send on one socket. Nobody reads before they have all done so; then the kernel moves what came to standard output.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define SENDERS 4
#define EACH 40
#define LEN 16

static int s[2];

static void *sender(void *me)
{
	char b[LEN + 1];
	int i;
	for (i = 0; i < EACH; i++) {
		struct iovec v = {b, LEN};
		struct mmsghdr m = {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1}};
		snprintf(b, sizeof b, "%04ld %010d\n", (long)me, i);
		if ((i % 4 == 0 && send(s[1], b, LEN, 0) != LEN) || (i % 4 == 1 && sendto(s[1], b, LEN, 0, 0, 0) != LEN) ||
		    (i % 4 == 2 && sendmsg(s[1], &m.msg_hdr, 0) != LEN) || (i % 4 == 3 && sendmmsg(s[1], &m, 1, 0) != 1))
			break;
	}
	return 0;
}

int main(int argc, char **argv)
{
	int processes = argc > 1 && !strcmp(argv[1], "processes"), p[2];
	pthread_t t[SENDERS];
	long i, r;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s) || pipe(p))
		return 2;
	for (i = 0; i < SENDERS; i++) {
		if (!processes) {
			pthread_create(&t[i], 0, sender, (void *)i);
		} else if (fork() == 0) {
			sender((void *)i);
			_exit(0);
		}
	}
	for (i = 0; i < SENDERS; i++)
		processes ? (void)wait(0) : (void)pthread_join(t[i], 0);
	close(s[1]);
	while ((r = splice(s[0], 0, p[1], 0, 4096, 0)) > 0)
		while (r > 0 && (i = splice(p[0], 0, 1, 0, (size_t)r, 0)) > 0)
			r -= i;
	return 0;
}

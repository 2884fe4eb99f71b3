/* sendfile to a socket that does not wait, and is read by a thread that takes its time: it sends what there is room for. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#define SIZE (2 << 20)

static int ends[2];
static char data[SIZE];

static void *reads(void *arg)
{
	long sum = 0, r;
	while ((r = read(ends[1], data, 10000)) > 0) {
		sum += r;
		if (sum % 9 == 0)
			usleep(100);
	}
	return (void *)sum;
}

int main(void)
{
	int fd = open("made", O_RDWR | O_CREAT | O_TRUNC, 0600), tries = 0;
	struct pollfd p = {.events = POLLOUT};
	off_t off = 0;
	void *sum;
	long i, r;
	pthread_t t;
	for (i = 0; i < SIZE; i++)
		data[i] = (char)(i * 7);
	if (write(fd, data, SIZE) != SIZE || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
		return 1;
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	pthread_create(&t, 0, reads, 0);
	p.fd = ends[0];
	while (off < SIZE) {
		r = sendfile(ends[0], fd, &off, SIZE - (size_t)off);
		if (r < 0 && errno != EAGAIN)
			return 2;
		printf("%d: %ld, at %ld\n", tries++, r, (long)off);
		if (r < 0)
			poll(&p, 1, -1);
	}
	close(ends[0]);
	pthread_join(t, &sum);
	printf("%ld in all\n", (long)sum);
	unlink("made");
	return 0;
}

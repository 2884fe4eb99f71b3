// Descriptors that were told not to wait, with other threads there: read and write on them are asked of the kernel without
// the C library, until somebody is cancelled. Who is told to wait again can be cancelled while it does, by whatever number.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int fds[2], pipes[2];
static sem_t begun;

static void *reader(void *p)
{
	char c;
	ssize_t r;
	sem_post(&begun);
	r = read(*(int *)p, &c, 1);
	printf("came back with %zd\n", r);
	return 0;
}

static void cancelled(int fd)
{
	pthread_t t;
	void *how;
	pthread_create(&t, 0, reader, &fd);
	sem_wait(&begun);
	usleep(20000); /* it is in its read by now */
	pthread_cancel(t);
	pthread_join(t, &how);
	printf("%s\n", how == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
}

static void *other(void *p)
{
	char b[8];
	ssize_t r = read(fds[0], b, sizeof b);
	printf("%zd %d\n", r, errno == EAGAIN);
	r = recv(fds[0], b, sizeof b, 0);
	printf("%zd %d\n", r, errno == EAGAIN);
	r = write(fds[1], "four", 4);
	printf("%zd\n", r);
	r = read(fds[0], b, sizeof b);
	printf("%zd\n", r);
	r = send(fds[1], "it", 2, 0);
	printf("%zd\n", r);
	r = recv(fds[0], b, sizeof b, 0);
	printf("%zd\n", r);
	r = read(fds[0], 0, 1);
	printf("%zd %d\n", r, errno == EAGAIN);
	return p;
}

int main(void)
{
	pthread_t t;
	int on = 1, off = 0, twice;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) || pipe(pipes))
		return 1;
	fcntl(fds[0], F_SETFL, fcntl(fds[0], F_GETFL) | O_NONBLOCK);
	ioctl(fds[1], FIONBIO, &on);
	pthread_create(&t, 0, other, 0);
	pthread_join(t, 0);
	/* The first cancellation of all finds its thread in a read that waits again. */
	fcntl(pipes[0], F_SETFL, O_NONBLOCK);
	twice = dup(pipes[0]);
	fcntl(twice, F_SETFL, 0);
	cancelled(pipes[0]);
	ioctl(fds[0], FIONBIO, &off);
	cancelled(fds[0]);
	return 0;
}

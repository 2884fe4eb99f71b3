/* The only thread cancels itself: the next call that is a cancellation point must end it, each kind of call in a child of
 * its own, before and after that call was made in peace. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static int fd, pair[2];
static char c;

static void ask(int what)
{
	struct iovec v = {&c, 1};
	switch (what) {
	case 0:
		(void)!read(fd, &c, 1);
		break;
	case 1:
		(void)!write(pair[0], "x", 1);
		break;
	case 2:
		(void)!pread(fd, &c, 1, 0);
		break;
	case 3:
		(void)!readv(fd, &v, 1);
		break;
	case 4:
		(void)!writev(pair[0], &v, 1);
		break;
	case 5:
		(void)!send(pair[0], "x", 1, 0);
		break;
	case 6:
		(void)!recv(pair[1], &c, 1, MSG_DONTWAIT);
		break;
	case 7:
		(void)!pwrite(fd, "x", 1, 0);
		break;
	}
}

static void cleanup(void *what)
{
	printf("%ld ended\n", (long)what);
	fflush(stdout);
	_exit(7);
}

int main(void)
{
	printf("alone: %d\n", __libc_single_threaded); /* in a program without PIE a copy, which glibc does not always update */
	fflush(stdout);
	fd = open("/dev/zero", O_RDWR);
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	for (long what = 0; what < 8; what++)
		for (int warm = 0; warm < 2; warm++) {
			int status;
			pid_t pid = fork();
			if (pid == 0) {
				for (int i = 0; i < 3 * warm; i++)
					ask((int)what);
				pthread_cleanup_push(cleanup, (void *)what);
				pthread_cancel(pthread_self());
				ask((int)what);
				printf("%ld was not cancelled\n", what);
				pthread_cleanup_pop(0);
				exit(0);
			}
			waitpid(pid, &status, 0);
			printf("status %d\n", WEXITSTATUS(status));
			fflush(stdout);
		}
	errno = 0;
	printf("%zd %s\n", read(-1, &c, 1), strerror(errno));
	printf("%zd %s\n", write(fd, (void *)8, 1), strerror(errno));
	printf("%zd %s\n", read(fd, (void *)8, 1), strerror(errno));
	return 0;
}

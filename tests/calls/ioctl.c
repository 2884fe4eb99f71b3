#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int bad;
#define CHECK(x) ((x) ? (void)0 : (void)(bad = 1, printf("line %d: %s: errno %d\n", __LINE__, #x, errno)))
#define FAILS(x, e) (errno = 0, (x) == -1 && errno == (e) ? (void)0 : (void)(bad = 1, printf("line %d: %s: not " #e " but %d\n", __LINE__, #x, errno)))

#include <linux/fs.h>
#include <sys/ioctl.h>

int main(void)
{
	struct winsize w;
	int p[2], n = -1, one = 1, fd = open("f", O_RDWR | O_CREAT, 0600);
	CHECK(pipe(p) == 0 && write(p[1], "abc", 3) == 3);
	CHECK(ioctl(p[0], FIONREAD, &n) == 0 && n == 3);
	CHECK(ioctl(p[0], FIONBIO, &one) == 0 && fcntl(p[0], F_GETFL) & O_NONBLOCK);
	CHECK(ioctl(fd, FIOCLEX) == 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	CHECK(ioctl(fd, FIONCLEX) == 0 && fcntl(fd, F_GETFD) == 0);
	FAILS(ioctl(fd, TIOCGWINSZ, &w), ENOTTY);
	FAILS(ioctl(99, FIONREAD, &n), EBADF);
	FAILS(ioctl(p[0], FIONREAD, (void *)8), EFAULT);
	FAILS(ioctl(fd, FICLONE, 99), EBADF);
	printf("controlled\n");
	return bad;
}

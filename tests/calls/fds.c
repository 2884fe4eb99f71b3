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

#include <dirent.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern int __close(int), __dup2(int, int);

static void list(const char *when)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	printf("%s:", when);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			printf(" %s", e->d_name);
	printf("\n");
	fflush(stdout);
	closedir(d);
}

/* How many of the numbers up to many are each the lowest when they are made, as by several calls. */
static int lowest(int many)
{
	int i, n = 3, p[2];
	for (i = 3; i < many; i++)
		switch (i % 5) {
		case 0:
			n += open("/dev/null", O_RDONLY) == i;
			break;
		case 1:
			n += dup(1) == i;
			break;
		case 2:
			n += fcntl(0, F_DUPFD_CLOEXEC, 0) == i;
			break;
		case 3:
			n += pipe(p) == 0 && p[0] == i && p[1] == i + 1;
			close(p[1]);
			break;
		case 4:
			n += socket(AF_UNIX, SOCK_STREAM, 0) == i;
			break;
		}
	CHECK(close_range(3, (unsigned)many - 1, 0) == 0);
	return n;
}

int main(void)
{
	struct rlimit lim;
	int fd, i, n, many;
	FILE *f;
	list("at start");
	CHECK(lowest(700) == 700); /* numbers come in turn, however many */
	fd = open("f", O_RDWR | O_CREAT, 0600);
	CHECK(dup(fd) == 4 && dup2(fd, 9) == 9 && __dup2(fd, 10) == 10 && dup3(fd, 11, O_CLOEXEC) == 11);
	CHECK(dup2(fd, fd) == fd);
	FAILS(dup3(fd, fd, 0), EINVAL);
	FAILS(dup2(99, 5), EBADF);
	FAILS(dup2(fd, -1), EBADF);
	FAILS(dup(99), EBADF);
	list("after dup");
	CHECK(write(9, "abc", 3) == 3 && lseek(10, 0, SEEK_CUR) == 3);
	CHECK(close(4) == 0 && __close(9) == 0);
	FAILS(close(9), EBADF);
	FAILS(__close(-1), EBADF);
	CHECK(close_range(10, 10, 0) == 0);
	FAILS(close_range(10, 9, 0), EINVAL);
	CHECK(close_range(11, 11, CLOSE_RANGE_CLOEXEC) == 0);
	list("after close");
	/* As daemons do: every number there may be. Each says what it says without a recorder. */
	getrlimit(RLIMIT_NOFILE, &lim);
	many = lim.rlim_cur > 70000 ? 70000 : (int)lim.rlim_cur;
	for (i = 3, n = 0; i < many; i++)
		n += fcntl(i, F_GETFD) >= 0;
	printf("%d open\n", n);
	for (i = 3, n = 0; i < many; i++)
		n += close(i) == 0;
	printf("%d closed\n", n);
	CHECK(open("f", O_RDONLY) == 3);
	for (i = 4, n = 0; i < many && i < 3000; i++)
		n += dup2(3, i) == i;
	printf("%d of %d made\n", n, i - 4);
	CHECK(fcntl(3, F_DUPFD, 5) == (i == many ? -1 : i));
	closefrom(5);
	list("after closefrom");
	CHECK(close_range(3, ~0u, 0) == 0);
	list("after close_range");
	if (fork() == 0) {
		closefrom(0);
		_exit(open("f", O_RDONLY) == 0 && open("f", O_RDONLY) == 1 ? 7 : 8);
	}
	wait(&n);
	printf("child %d\n", WEXITSTATUS(n));
	fflush(stdout);
	closefrom(-1);
	return bad;
}

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

extern int __open(const char *, int, ...), __open64(const char *, int, ...);
extern int __open_2(const char *, int), __open64_2(const char *, int), __openat_2(int, const char *, int), __openat64_2(int, const char *, int);

static int mode_of(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 ? (int)(st.st_mode & 07777) : -1;
}

static int size_of(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 ? (int)st.st_size : -1;
}

int main(void)
{
	char long_name[5000];
	int fd, dir;
	umask(022);
	fd = open("a", O_CREAT | O_WRONLY, 0640);
	CHECK(fd == 3 && mode_of(fd) == 0640 && write(fd, "content", 7) == 7 && close(fd) == 0);
	fd = open64("b", O_CREAT | O_RDWR | O_EXCL, 0777);
	CHECK(fd == 3 && mode_of(fd) == 0755 && close(fd) == 0);
	FAILS(open("b", O_CREAT | O_RDWR | O_EXCL, 0777), EEXIST);
	fd = __open("c", O_CREAT | O_RDWR, 0600);
	CHECK(fd == 3 && close(fd) == 0);
	fd = __open64("a", O_RDWR);
	CHECK(fd == 3 && close(fd) == 0 && size_of("a") == 7);
	fd = __open_2("a", O_RDONLY);
	CHECK(fd == 3 && close(fd) == 0);
	fd = __open64_2("a", O_RDONLY | O_CLOEXEC);
	CHECK(fd == 3 && fcntl(fd, F_GETFD) == FD_CLOEXEC && close(fd) == 0);
	dir = open(".", O_RDONLY | O_DIRECTORY);
	CHECK(dir == 3);
	fd = openat(dir, "d", O_CREAT | O_WRONLY, 0604);
	CHECK(fd == 4 && mode_of(fd) == 0604 && close(fd) == 0);
	fd = openat64(AT_FDCWD, "d", O_RDONLY);
	CHECK(fd == 4 && close(fd) == 0);
	fd = __openat_2(dir, "a", O_RDONLY);
	CHECK(fd == 4 && close(fd) == 0);
	fd = __openat64_2(dir, "a", O_RDONLY);
	CHECK(fd == 4 && close(fd) == 0);
	fd = open("a", O_WRONLY | O_TRUNC);
	CHECK(fd == 4 && size_of("a") == 0 && write(fd, "xyz", 3) == 3 && close(fd) == 0);
	fd = creat("a", 0600);
	CHECK(fd == 4 && size_of("a") == 0 && write(fd, "xyz", 3) == 3 && close(fd) == 0);
	fd = creat64("e", 0400);
	CHECK(fd == 4 && mode_of(fd) == 0400 && close(fd) == 0);
	fd = open(".", O_TMPFILE | O_RDWR, 0640);
	CHECK((fd == 4 && mode_of(fd) == 0640 && close(fd) == 0) || errno == EOPNOTSUPP);
	fd = open("a", O_PATH);
	CHECK(fd == 4);
	FAILS(read(fd, long_name, 1), EBADF);
	CHECK(close(fd) == 0);
	CHECK(symlink("a", "l") == 0);
	FAILS(open("l", O_RDONLY | O_NOFOLLOW), ELOOP);
	FAILS(open("l", O_RDWR | O_TRUNC | O_NOFOLLOW), ELOOP);
	CHECK(size_of("a") == 3);
	CHECK(mkfifo("fifo", 0600) == 0);
	FAILS(open("fifo", O_WRONLY | O_NONBLOCK), ENXIO);
	FAILS(open("fifo", O_WRONLY | O_NONBLOCK | O_TRUNC), ENXIO);
	FAILS(open("none", O_RDONLY), ENOENT);
	FAILS(open("none", O_WRONLY | O_TRUNC), ENOENT);
	FAILS(open("a/b", O_RDONLY), ENOTDIR);
	FAILS(open(".", O_RDWR), EISDIR);
	FAILS(open((char *)8, O_RDONLY), EFAULT);
	FAILS(open((char *)8, O_WRONLY | O_CREAT | O_TRUNC, 0600), EFAULT);
	FAILS(open(0, O_RDONLY), EFAULT);
	FAILS(openat(99, "a", O_RDONLY), EBADF);
	memset(long_name, 'n', sizeof long_name - 1);
	long_name[sizeof long_name - 1] = 0;
	FAILS(open(long_name, O_RDONLY), ENAMETOOLONG);
	printf("opened\n");
	return bad;
}

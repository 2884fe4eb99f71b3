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

#include <sys/time.h>
#include <utime.h>

static long mtime(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 ? (long)st.st_mtime : -1;
}

static int mode(void)
{
	struct stat st;
	return stat("f", &st) == 0 ? (int)(st.st_mode & 07777) : -1;
}

int main(void)
{
	struct utimbuf u = {1000, 1001};
	struct timeval v[2] = {{2000, 5}, {2001, 6}};
	struct timespec s[2] = {{3000, 7}, {3001, 8}};
	int dir = open(".", O_RDONLY | O_DIRECTORY), fd = open("f", O_RDWR | O_CREAT, 0600);
	CHECK(symlink("f", "l") == 0);
	CHECK(chmod("f", 0640) == 0 && mode() == 0640 && fchmod(fd, 0604) == 0 && mode() == 0604 && fchmodat(dir, "f", 0600, 0) == 0 && mode() == 0600);
	CHECK(lchmod("f", 0644) == 0 || errno == EOPNOTSUPP);
	FAILS(chmod("none", 0600), ENOENT);
	FAILS(fchmod(99, 0600), EBADF);
	CHECK(chown("f", -1, -1) == 0 && lchown("l", -1, -1) == 0 && fchown(fd, -1, -1) == 0 && fchownat(dir, "l", -1, -1, AT_SYMLINK_NOFOLLOW) == 0);
	FAILS(chown("none", -1, -1), ENOENT);
	CHECK(utime("f", &u) == 0 && mtime("f") == 1001);
	CHECK(utimes("f", v) == 0 && mtime("f") == 2001);
	v[1].tv_sec++;
	CHECK(lutimes("l", v) == 0 && mtime("l") == 2002 && mtime("f") == 2001);
	v[1].tv_sec++;
	CHECK(futimes(fd, v) == 0 && mtime("f") == 2003);
	v[1].tv_sec++;
	CHECK(futimesat(dir, "f", v) == 0 && mtime("f") == 2004);
	CHECK(futimens(fd, s) == 0 && mtime("f") == 3001);
	s[0].tv_nsec = UTIME_NOW, s[1].tv_nsec = UTIME_OMIT;
	CHECK(utimensat(dir, "f", s, 0) == 0 && mtime("f") == 3001);
	CHECK(utimes("f", 0) == 0 && mtime("f") > 1000000);
	FAILS(utime("none", &u), ENOENT);
	FAILS(utimensat(dir, "f", (void *)8, 0), EFAULT);
	FAILS(futimens(99, s), EBADF);
	printf("said\n");
	return bad;
}

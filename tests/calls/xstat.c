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

extern int __xstat(int, const char *, struct stat *), __xstat64(int, const char *, struct stat64 *);
extern int __lxstat(int, const char *, struct stat *), __lxstat64(int, const char *, struct stat64 *);
extern int __fxstat(int, int, struct stat *), __fxstat64(int, int, struct stat64 *);
extern int __fxstatat(int, int, const char *, struct stat *, int), __fxstatat64(int, int, const char *, struct stat64 *, int);
extern int __xmknod(int, const char *, mode_t, dev_t *), __xmknodat(int, int, const char *, mode_t, dev_t *);
#ifdef __x86_64__
#define STAT_VER 1
#else
#define STAT_VER 0
#endif

int main(void)
{
	struct stat st;
	struct stat64 st64;
	dev_t dev = 0;
	int fd = open("f", O_RDWR | O_CREAT, 0640);
	CHECK(write(fd, "xyz", 3) == 3 && symlink("f", "l") == 0);
	CHECK(__xstat(STAT_VER, "l", &st) == 0 && st.st_size == 3 && __xstat64(STAT_VER, "l", &st64) == 0 && st64.st_size == 3);
	CHECK(__lxstat(STAT_VER, "l", &st) == 0 && S_ISLNK(st.st_mode) && __lxstat64(STAT_VER, "l", &st64) == 0 && S_ISLNK(st64.st_mode));
	CHECK(__fxstat(STAT_VER, fd, &st) == 0 && st.st_size == 3 && __fxstat64(STAT_VER, fd, &st64) == 0 && st64.st_size == 3);
	CHECK(__fxstatat(STAT_VER, AT_FDCWD, "f", &st, 0) == 0 && __fxstatat64(STAT_VER, AT_FDCWD, "l", &st64, AT_SYMLINK_NOFOLLOW) == 0);
	CHECK(S_ISLNK(st64.st_mode));
	FAILS(__xstat(STAT_VER, "none", &st), ENOENT);
	FAILS(__xstat(77, "f", &st), EINVAL);
	FAILS(__fxstat(STAT_VER, 99, &st), EBADF);
	CHECK(__xmknod(0, "p", S_IFIFO | 0600, &dev) == 0 && __xmknodat(0, AT_FDCWD, "q", S_IFIFO | 0600, &dev) == 0);
	printf("as it was\n");
	return bad;
}

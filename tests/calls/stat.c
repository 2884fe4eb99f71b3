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

#include <sys/statfs.h>
#include <sys/statvfs.h>

extern int __statfs(const char *, struct statfs *);

int main(void)
{
	struct stat st;
	struct stat64 st64;
	struct statx sx;
	struct statfs fs;
	struct statfs64 fs64;
	struct statvfs vs;
	struct statvfs64 vs64;
	int fd, dir = open(".", O_RDONLY | O_DIRECTORY);
	umask(022);
	fd = open("f", O_RDWR | O_CREAT, 0640);
	CHECK(write(fd, "xyz", 3) == 3 && symlink("f", "l") == 0);
	CHECK(stat("l", &st) == 0 && st.st_size == 3 && st.st_mode == (S_IFREG | 0640) && stat64("l", &st64) == 0 && st64.st_ino == st.st_ino);
	CHECK(lstat("l", &st) == 0 && S_ISLNK(st.st_mode) && lstat64("l", &st64) == 0 && S_ISLNK(st64.st_mode));
	CHECK(fstat(fd, &st) == 0 && st.st_size == 3 && fstat64(fd, &st64) == 0 && st64.st_nlink == 1);
	CHECK(fstatat(dir, "l", &st, 0) == 0 && st.st_size == 3 && fstatat64(fd, "", &st64, AT_EMPTY_PATH) == 0 && st64.st_size == 3);
	CHECK(statx(dir, "f", 0, STATX_BASIC_STATS, &sx) == 0 && sx.stx_size == 3);
	FAILS(stat("none", &st), ENOENT);
	FAILS(stat("f", (void *)8), EFAULT);
	FAILS(stat((char *)8, &st), EFAULT);
	FAILS(fstat(99, &st), EBADF);
	FAILS(fstatat(99, "f", &st, 0), EBADF);
	FAILS(statx(dir, "none", 0, STATX_BASIC_STATS, &sx), ENOENT);
	FAILS(statx(dir, (char *)8, 0, STATX_BASIC_STATS, &sx), EFAULT);
	CHECK(statfs(".", &fs) == 0 && statfs64(".", &fs64) == 0 && __statfs(".", &fs) == 0 && fs.f_type == fs64.f_type);
	CHECK(fstatfs(fd, &fs) == 0 && fstatfs64(fd, &fs64) == 0 && fs.f_bsize == fs64.f_bsize);
	CHECK(statvfs(".", &vs) == 0 && statvfs64(".", &vs64) == 0 && vs.f_bsize == vs64.f_bsize);
	CHECK(fstatvfs(fd, &vs) == 0 && fstatvfs64(fd, &vs64) == 0);
	FAILS(statfs("none", &fs), ENOENT);
	FAILS(fstatfs(99, &fs), EBADF);
	FAILS(statvfs("none", &vs), ENOENT);
	CHECK(access("f", R_OK | W_OK) == 0 && euidaccess("f", F_OK) == 0 && eaccess("f", R_OK) == 0 && faccessat(dir, "l", F_OK, AT_SYMLINK_NOFOLLOW) == 0);
	FAILS(access("none", F_OK), ENOENT);
	FAILS(access("f", 99), EINVAL);
	FAILS(access(0, F_OK), EFAULT);
	CHECK(pathconf("f", _PC_NAME_MAX) == 255 && fpathconf(fd, _PC_NAME_MAX) == 255);
	FAILS(pathconf("f", 9999), EINVAL);
	printf("asked\n");
	return bad;
}

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

#include <sys/xattr.h>

/* Where the file system has none, all say so. */
#define OK(x) CHECK((x) || errno == ENOTSUP || errno == ENODATA)

int main(void)
{
	char b[64];
	int fd = open("f", O_RDWR | O_CREAT, 0600);
	OK(setxattr("f", "user.a", "1", 1, 0) == 0);
	OK(lsetxattr("f", "user.b", "22", 2, XATTR_CREATE) == 0);
	OK(fsetxattr(fd, "user.c", "333", 3, 0) == 0);
	OK(getxattr("f", "user.a", b, sizeof b) == 1 && *b == '1');
	OK(lgetxattr("f", "user.b", b, sizeof b) == 2);
	OK(fgetxattr(fd, "user.c", b, sizeof b) == 3);
	OK(getxattr("f", "user.a", 0, 0) == 1);
	OK(listxattr("f", b, sizeof b) >= 0);
	OK(llistxattr("f", b, sizeof b) >= 0);
	OK(flistxattr(fd, 0, 0) >= 0);
	OK(removexattr("f", "user.a") == 0);
	OK(lremovexattr("f", "user.b") == 0);
	OK(fremovexattr(fd, "user.c") == 0);
	FAILS(getxattr("none", "user.a", b, sizeof b), ENOENT);
	FAILS(setxattr("f", (char *)8, "1", 1, 0), EFAULT);
	FAILS(flistxattr(99, b, sizeof b), EBADF);
	printf("extended\n");
	return bad;
}

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

#include <sys/mman.h>

int main(void)
{
	char a[][16] = {"aXXXXXX", "bXXXXXX", "cXXXXXX", "dXXXXXX", "eXXXXXX.c", "fXXXXXX.c", "gXXXXXX.c", "hXXXXXX.c", "iXXXXXX"};
	char wrong[] = "no";
	int fd, i;
	CHECK((fd = mkstemp(a[0])) == 3 && close(fd) == 0);
	CHECK((fd = mkstemp64(a[1])) == 3 && close(fd) == 0);
	CHECK((fd = mkostemp(a[2], O_CLOEXEC)) == 3 && fcntl(fd, F_GETFD) == FD_CLOEXEC && close(fd) == 0);
	CHECK((fd = mkostemp64(a[3], O_APPEND)) == 3 && close(fd) == 0);
	CHECK((fd = mkstemps(a[4], 2)) == 3 && close(fd) == 0);
	CHECK((fd = mkstemps64(a[5], 2)) == 3 && close(fd) == 0);
	CHECK((fd = mkostemps(a[6], 2, O_CLOEXEC)) == 3 && close(fd) == 0);
	CHECK((fd = mkostemps64(a[7], 2, 0)) == 3 && close(fd) == 0);
	CHECK(mkdtemp(a[8]) == a[8] && rmdir(a[8]) == 0);
	for (i = 0; i < 8; i++)
		CHECK(!strstr(a[i], "XXXXXX") && unlink(a[i]) == 0);
	FAILS(mkstemp(wrong), EINVAL);
	errno = 0;
	CHECK(mkdtemp(wrong) == 0 && errno == EINVAL);
	CHECK((fd = memfd_create("name", MFD_CLOEXEC)) == 3 && write(fd, "x", 1) == 1 && close(fd) == 0);
	FAILS(memfd_create("name", 0x8000), EINVAL);
	printf("temporary\n");
	return bad;
}

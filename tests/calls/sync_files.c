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

int main(void)
{
	int fd = open("f", O_RDWR | O_CREAT, 0600);
	CHECK(write(fd, "x", 1) == 1);
	CHECK(fsync(fd) == 0);
	CHECK(fdatasync(fd) == 0);
	CHECK(syncfs(fd) == 0);
	CHECK(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE) == 0);
	FAILS(fsync(77), EBADF);
	FAILS(fdatasync(-1), EBADF);
	FAILS(syncfs(77), EBADF);
	FAILS(sync_file_range(77, 0, 0, 0), EBADF);
	sync();
	printf("in sync\n");
	return bad;
}

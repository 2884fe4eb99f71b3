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
	struct stat st;
	int fd = open("f", O_RDWR | O_CREAT, 0600);
	CHECK(write(fd, "0123456789", 10) == 10);
	CHECK(ftruncate(fd, 5) == 0 && ftruncate64(fd, 8) == 0);
	CHECK(truncate("f", 7) == 0 && truncate64("f", 6) == 0);
	CHECK(fstat(fd, &st) == 0 && st.st_size == 6);
	CHECK(fallocate(fd, 0, 0, 8192) == 0 || errno == EOPNOTSUPP);
	CHECK(fallocate64(fd, FALLOC_FL_KEEP_SIZE, 0, 16384) == 0 || errno == EOPNOTSUPP);
	CHECK(posix_fallocate(fd, 0, 20000) == 0 && posix_fallocate64(fd, 0, 30000) == 0);
	CHECK(fstat(fd, &st) == 0 && st.st_size == 30000);
	CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL) == 0 && posix_fadvise64(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
	CHECK(posix_fadvise(99, 0, 0, 0) == EBADF && posix_fallocate(99, 0, 1) == EBADF);
	CHECK(readahead(fd, 0, 4096) == 0);
	FAILS(truncate("none", 1), ENOENT);
	FAILS(truncate((char *)8, 1), EFAULT);
	FAILS(ftruncate(fd, -1), EINVAL);
	FAILS(ftruncate(99, 1), EBADF);
	FAILS(fallocate(99, 0, 0, 1), EBADF);
	FAILS(readahead(99, 0, 1), EBADF);
	printf("made long and short\n");
	return bad;
}

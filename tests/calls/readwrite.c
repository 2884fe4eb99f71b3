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
#include <sys/uio.h>

extern ssize_t __read(int, void *, size_t), __write(int, const void *, size_t);
extern ssize_t __read_chk(int, void *, size_t, size_t), __pread_chk(int, void *, size_t, off_t, size_t), __pread64_chk(int, void *, size_t, off_t, size_t);
extern ssize_t __pread64(int, void *, size_t, off_t), __pwrite64(int, const void *, size_t, off_t);
extern off_t __lseek(int, off_t, int);
extern ssize_t preadv64v2(int, const struct iovec *, int, off_t, int), pwritev64v2(int, const struct iovec *, int, off_t, int);

int main(void)
{
	static char big[300000], back[300000];
	char b[64] = "", c[16], d[16], *none = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec in[3] = {{b, 3}, {c, 0}, {d, 16}}, out[3] = {{"abc", 3}, {"", 0}, {"defgh", 5}};
	struct iovec wide[20], bad_iov[2] = {{b, 4}, {none, 4096}};
	int fd = open("f", O_RDWR | O_CREAT, 0600), i, p[2];
	CHECK(fd == 3);
	CHECK(__write(fd, "0123456789", 10) == 10);
	CHECK(write(fd, "", 0) == 0);
	CHECK(lseek(fd, 0, SEEK_SET) == 0 && __read(fd, b, 4) == 4 && !memcmp(b, "0123", 4));
	CHECK(__read_chk(fd, b, 4, sizeof b) == 4 && !memcmp(b, "4567", 4));
	CHECK(__lseek(fd, -2, SEEK_END) == 8 && read(fd, b, 64) == 2 && read(fd, b, 64) == 0);
	CHECK(lseek64(fd, 5, SEEK_SET) == 5);
	FAILS(lseek(fd, -1, SEEK_SET), EINVAL);
	FAILS(lseek(99, 0, SEEK_SET), EBADF);
	CHECK(pread(fd, b, 3, 1) == 3 && !memcmp(b, "123", 3));
	CHECK(pread64(fd, b, 3, 2) == 3 && !memcmp(b, "234", 3));
	CHECK(__pread64(fd, b, 3, 3) == 3 && !memcmp(b, "345", 3));
	CHECK(__pread_chk(fd, b, 3, 4, sizeof b) == 3 && !memcmp(b, "456", 3));
	CHECK(__pread64_chk(fd, b, 3, 5, sizeof b) == 3 && !memcmp(b, "567", 3));
	CHECK(pwrite(fd, "A", 1, 0) == 1 && pwrite64(fd, "B", 1, 1) == 1 && __pwrite64(fd, "C", 1, 2) == 1);
	CHECK(pread(fd, b, 4, 0) == 4 && !memcmp(b, "ABC3", 4));
	CHECK(lseek(fd, 0, SEEK_SET) == 0 && writev(fd, out, 3) == 8);
	CHECK(lseek(fd, 0, SEEK_SET) == 0 && readv(fd, in, 3) == 10 && !memcmp(b, "abc", 3) && !memcmp(d, "defgh89", 7));
	CHECK(pwritev(fd, out, 3, 2) == 8 && preadv(fd, in, 3, 2) == 8);
	CHECK(pwritev64(fd, out, 3, 4) == 8 && preadv64(fd, in, 3, 4) == 8);
	CHECK(pwritev2(fd, out, 3, 6, 0) == 8 && preadv2(fd, in, 3, 6, 0) == 8);
	CHECK(pwritev64v2(fd, out, 3, 8, 0) == 8 && preadv64v2(fd, in, 3, 8, 0) == 8 && !memcmp(d, "defgh", 5));
	CHECK(lseek(fd, 0, SEEK_CUR) == 10);
	FAILS(preadv(fd, in, -1, 0), EINVAL);
	FAILS(readv(fd, (void *)8, 2), EFAULT);
	FAILS(read(fd, none, 1), EFAULT);
	FAILS(write(fd, none, 1), EFAULT);
	FAILS(pread(fd, 0, 1, 0), EFAULT);
	CHECK(preadv(fd, bad_iov, 2, 0) == 4);
	FAILS(read(-1, b, 1), EBADF);
	/* Many pieces, and more than fits into an event. */
	for (i = 0; i < 300000; i++)
		big[i] = (char)(i * 7 >> 3);
	for (i = 0; i < 20; i++)
		wide[i] = (struct iovec){big + i * 15000, 15000};
	CHECK(lseek(fd, 0, SEEK_SET) == 0 && writev(fd, wide, 20) == 300000);
	for (i = 0; i < 20; i++)
		wide[i].iov_base = back + i * 15000;
	CHECK(lseek(fd, 0, SEEK_SET) == 0 && readv(fd, wide, 20) == 300000 && !memcmp(big, back, 300000));
	CHECK(pipe(p) == 0 && write(p[1], big, 5000) == 5000);
	for (i = 0; i < 20; i++)
		wide[i] = (struct iovec){back + i * 300, 300};
	CHECK(readv(p[0], wide, 20) == 5000 && !memcmp(big, back, 5000));
	CHECK(write(p[1], "short", 5) == 5 && readv(p[0], in, 3) == 5);
	printf("read and written\n");
	return bad;
}

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

#include <sys/sendfile.h>
#include <sys/uio.h>

int main(void)
{
	char b[64];
	struct iovec v = {"from memory", 11};
	int in = open("a", O_RDWR | O_CREAT, 0600), out = open("b", O_RDWR | O_CREAT, 0600), p[2], q[2];
	off_t at = 2, to = 0;
	CHECK(write(in, "0123456789", 10) == 10);
	CHECK(sendfile(out, in, &at, 5) == 5 && at == 7);
	CHECK(sendfile64(out, in, &at, 50) == 3 && at == 10);
	CHECK(lseek(in, 0, SEEK_SET) == 0 && sendfile(out, in, 0, 2) == 2);
	at = 1;
	CHECK(copy_file_range(in, &at, out, &to, 4, 0) == 4 && at == 5 && to == 4);
	CHECK(copy_file_range(in, 0, out, 0, 1, 0) == 1);
	CHECK(pread(out, b, 64, 0) == 11 && !memcmp(b, "1234", 4));
	CHECK(pipe(p) == 0 && pipe(q) == 0);
	at = 0;
	CHECK(splice(in, &at, p[1], 0, 6, 0) == 6 && at == 6);
	CHECK(tee(p[0], q[1], 6, 0) == 6 && read(q[0], b, 64) == 6 && !memcmp(b, "012345", 6));
	to = 0;
	CHECK(splice(p[0], 0, out, &to, 6, 0) == 6 && to == 6);
	CHECK(vmsplice(p[1], &v, 1, 0) == 11 && read(p[0], b, 64) == 11 && !memcmp(b, "from memory", 11));
	FAILS(sendfile(out, 99, 0, 1), EBADF);
	FAILS(sendfile(out, in, (off_t *)8, 1), EFAULT);
	FAILS(copy_file_range(in, 0, 99, 0, 1, 0), EBADF);
	FAILS(splice(in, 0, out, 0, 1, 0), EINVAL);
	FAILS(tee(in, out, 1, 0), EINVAL);
	FAILS(vmsplice(in, &v, 1, 0), EBADF);
	printf("moved\n");
	return bad;
}

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
	int fd = open("f", O_RDWR | O_CREAT, 0600), i;
	char *p, *q;
	CHECK(ftruncate(fd, 8192) == 0);
	p = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	strcpy(p, "hello");
	CHECK(msync(p, 8192, MS_SYNC) == 0);
	q = mmap64(0, 4096, PROT_READ, MAP_PRIVATE, fd, 4096);
	CHECK(q != MAP_FAILED && *q == 0 && munmap(q, 4096) == 0);
	CHECK(madvise(p, 4096, MADV_WILLNEED) == 0 && posix_madvise(p, 4096, POSIX_MADV_NORMAL) == 0);
	CHECK(remap_file_pages(p, 4096, 0, 1, 0) == 0 || errno == EINVAL || errno == ENOSYS);
	CHECK(munmap(p, 8192) == 0);
	FAILS((long)mmap(0, 0, PROT_READ, MAP_PRIVATE, fd, 0), EINVAL);
	FAILS((long)mmap(0, 4096, PROT_READ, MAP_PRIVATE, 99, 0), EBADF);
	FAILS(munmap((void *)1, 4096), EINVAL);
	FAILS(msync((void *)4096, 4096, MS_SYNC), ENOMEM);
	CHECK(posix_madvise((void *)4096, 4096, POSIX_MADV_WILLNEED) == ENOMEM);
	for (i = 0; i < 1000; i++) {
		p = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(p != MAP_FAILED);
		*p = 1;
		q = mremap(p, 65536, 131072, MREMAP_MAYMOVE);
		CHECK(q != MAP_FAILED && *q == 1 && munmap(q, 131072) == 0);
	}
	p = mmap(0, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	q = mmap(0, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(mremap(p, 8192, 8192, MREMAP_MAYMOVE | MREMAP_FIXED, q) == q);
	FAILS((long)mremap((void *)4096, 4096, 8192, 0), EFAULT);
	printf("mapped\n");
	return bad;
}

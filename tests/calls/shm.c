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
	char name[64];
	int fd;
	snprintf(name, sizeof name, "/prophet-test-%d", getpid());
	FAILS(shm_open(name, O_RDWR, 0), ENOENT);
	CHECK((fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600)) == 3 && ftruncate(fd, 4096) == 0 && close(fd) == 0);
	CHECK((fd = shm_open(name, O_RDWR | O_TRUNC, 0600)) == 3 && close(fd) == 0);
	CHECK(shm_unlink(name) == 0);
	FAILS(shm_unlink(name), ENOENT);
	printf("shared\n");
	return bad;
}

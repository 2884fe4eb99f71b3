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
	int r = chroot("none");
	CHECK(r == -1 && (errno == ENOENT || errno == EPERM));
	mkdir("root", 0755);
	r = chroot("root");
	printf("%d %s\n", r, access("/root", F_OK) == 0 && r == 0 ? "outside" : "as expected");
	return bad;
}

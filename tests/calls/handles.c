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
	struct {
		struct file_handle h;
		char room[MAX_HANDLE_SZ];
	} h = {{MAX_HANDLE_SZ}};
	char c = 0;
	int mount, r, fd = open("f", O_CREAT | O_WRONLY, 0600);
	CHECK(write(fd, "x", 1) == 1);
	close(fd);
	r = name_to_handle_at(AT_FDCWD, "f", &h.h, &mount, 0);
	CHECK(r == 0 || errno == EOPNOTSUPP);
	fd = open_by_handle_at(AT_FDCWD, &h.h, O_RDONLY);
	CHECK(fd == 3 || fd == -1);
	CHECK(fd == -1 || (read(fd, &c, 1) == 1 && c == 'x'));
	FAILS(name_to_handle_at(AT_FDCWD, "none", &h.h, &mount, 0), ENOENT);
	printf("handled\n");
	return bad;
}

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

#include <dirent.h>
#include <sys/syscall.h>

static int no_dots(const struct dirent *e)
{
	return e->d_name[0] != '.';
}
static int no_dots64(const struct dirent64 *e)
{
	return e->d_name[0] != '.';
}

int main(void)
{
	DIR *d;
	struct dirent *e, **list, room, *p;
	struct dirent64 *e64, **list64, room64, *p64;
	char b[4096];
	long at;
	int i, n, fd;
	mkdir("in", 0700);
	for (i = 0; i < 40; i++) {
		snprintf(b, sizeof b, "in/%02d", i);
		close(open(b, O_CREAT | O_WRONLY, 0600));
	}
	CHECK((d = opendir("in")) && dirfd(d) == 3);
	for (n = 0; errno = 0, (e = readdir(d)); n++)
		;
	CHECK(n == 42 && errno == 0);
	rewinddir(d);
	for (n = 0; (e64 = readdir64(d)); n++)
		if (n == 10)
			at = telldir(d), strcpy(b, "");
		else if (n == 11)
			strcpy(b, e64->d_name);
	CHECK(n == 42);
	seekdir(d, at);
	CHECK((e = readdir(d)) && !strcmp(e->d_name, b));
	rewinddir(d);
	for (n = 0; readdir_r(d, &room, &p) == 0 && p; n++)
		;
	CHECK(n == 42);
	rewinddir(d);
	for (n = 0; readdir64_r(d, &room64, &p64) == 0 && p64; n++)
		;
	CHECK(n == 42);
	CHECK(closedir(d) == 0);
	FAILS(closedir(0), EINVAL);
	fd = open("in", O_RDONLY | O_DIRECTORY);
	CHECK(fd == 3 && (d = fdopendir(fd)) && readdir(d) && closedir(d) == 0);
	FAILS(close(fd), EBADF);
	CHECK(opendir("none") == 0 && errno == ENOENT);
	CHECK(opendir("in/00") == 0 && errno == ENOTDIR);
	CHECK(fdopendir(99) == 0 && errno == EBADF);
	CHECK((n = scandir("in", &list, no_dots, alphasort)) == 40);
	for (i = 0; i < n; i++) {
		if (i % 13 == 0)
			printf("%s\n", list[i]->d_name);
		free(list[i]);
	}
	free(list);
	CHECK((n = scandir64("in", &list64, no_dots64, alphasort64)) == 40);
	CHECK(scandirat(AT_FDCWD, "in", &list, 0, 0) == 42);
	fd = open(".", O_RDONLY | O_DIRECTORY);
	CHECK(scandirat64(fd, "in", &list64, 0, 0) == 42);
	FAILS(scandir("none", &list, 0, 0), ENOENT);
	n = scandir("/proc/self/fd", &list, no_dots, versionsort);
	for (i = 0; i < n; i++)
		printf("fd %s\n", list[i]->d_name);
	n = scandir("/proc/self/fdinfo", &list, no_dots, versionsort);
	for (i = 0; i < n; i++)
		printf("fdinfo %s\n", list[i]->d_name);
	fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY);
	while ((n = getdents64(fd, b, 64)) > 0)
		for (i = 0; i < n; i += ((struct dirent64 *)(b + i))->d_reclen)
			if (((struct dirent64 *)(b + i))->d_name[0] != '.')
				printf("getdents64 %s\n", ((struct dirent64 *)(b + i))->d_name);
	CHECK(n == 0);
	lseek(fd, 0, SEEK_SET);
	FAILS(getdents64(fd, (void *)8, 64), EFAULT);
	FAILS(getdents64(99, b, 64), EBADF);
	return bad;
}

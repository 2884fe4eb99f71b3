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

#include <sys/inotify.h>

int main(void)
{
	char b[4096];
	int fd = inotify_init(), nb = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), wd, w2;
	CHECK(fd == 3 && nb == 4);
	wd = inotify_add_watch(fd, ".", IN_CREATE);
	CHECK(wd == 1);
	CHECK(close(open("f", O_CREAT | O_WRONLY, 0600)) == 0);
	CHECK(read(fd, b, sizeof b) > 0 && !strcmp(((struct inotify_event *)b)->name, "f"));
	CHECK(inotify_rm_watch(fd, wd) == 0);
	FAILS(inotify_rm_watch(fd, wd), EINVAL);
	FAILS(inotify_add_watch(fd, "none", IN_CREATE), ENOENT);
	FAILS(inotify_add_watch(99, ".", IN_CREATE), EBADF);
	FAILS(inotify_init1(0x1234), EINVAL);
	/* All that happens to a file the run made itself is the program's own doing. */
	w2 = inotify_add_watch(nb, "f", IN_ALL_EVENTS);
	CHECK(w2 == 1);
	FAILS(read(nb, b, sizeof b), EAGAIN);
	CHECK(close(open("f", O_WRONLY | O_TRUNC)) == 0);
	for (ssize_t n = read(nb, b, sizeof b), at = 0; at < n; at += (ssize_t)(sizeof(struct inotify_event) + ((struct inotify_event *)(b + at))->len))
		printf("event %x\n", ((struct inotify_event *)(b + at))->mask);
	return bad;
}

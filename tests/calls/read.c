/* read: whole, short, at the end, into nowhere, from nothing. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static void show(const char *what, ssize_t r)
{
	int e = errno;
	printf("%s %zd %d\n", what, r, r < 0 ? e : 0);
}

int main(void)
{
	char b[64];
	int p[2], fd = open("/dev/zero", O_RDONLY);
	show("zero", read(fd, b, sizeof b));
	show("nowhere", read(fd, (char *)8, 8));
	show("nothing", read(-1, b, 1));
	if (pipe(p) || write(p[1], "hello", 5) != 5)
		return 1;
	show("part", read(p[0], b, 3));
	show("rest", read(p[0], b, sizeof b));
	close(p[1]);
	show("end", read(p[0], b, sizeof b));
	return 0;
}

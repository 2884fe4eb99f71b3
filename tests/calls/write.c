/* write: whole, nothing, from nowhere, to nothing, to a closed pipe. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void show(const char *what, ssize_t r)
{
	int e = errno;
	printf("%s %zd %d\n", what, r, r < 0 ? e : 0);
}

int main(void)
{
	int p[2], fd = open("out", O_RDWR | O_CREAT, 0600);
	char b[8];
	signal(SIGPIPE, SIG_IGN);
	show("file", write(fd, "hello", 5));
	show("none", write(fd, "", 0));
	show("nowhere", write(fd, (char *)8, 8));
	show("nothing", write(-1, "x", 1));
	if (lseek(fd, 0, SEEK_SET) || read(fd, b, 8) != 5)
		return 1;
	printf("%.5s\n", b);
	if (pipe(p))
		return 1;
	close(p[0]);
	show("closed", write(p[1], "x", 1));
	return 0;
}

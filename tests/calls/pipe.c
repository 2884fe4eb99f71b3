/* pipe, pipe2. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

extern int __pipe(int *);

static void show(const char *what, long r)
{
	int e = errno;
	printf("%s %ld %d\n", what, r, r < 0 ? e : 0);
}

int main(void)
{
	int p[2];
	char b[8];
	show("pipe", pipe(p));
	write(p[1], "ab", 2);
	show("read", read(p[0], b, 8));
	show("__pipe", __pipe(p));
	show("pipe2", pipe2(p, O_CLOEXEC | O_NONBLOCK | O_DIRECT));
	printf("%d %d\n", fcntl(p[0], F_GETFD), !!(fcntl(p[1], F_GETFL) & O_DIRECT));
	show("empty", read(p[0], b, 8));
	show("bad", pipe2(p, 1));
	show("nowhere", pipe((int *)8));
	show("nowhere", pipe2((int *)8, 0));
	return 0;
}

// What a program does with descriptors that it was given: a file at its place, a pipe, a socket, a duplicate; and the
// numbers that are free.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void)
{
	char b[64];
	ssize_t n;
	int i;
	for (i = 3; i < 20; i++)
		if (fcntl(i, F_GETFD) >= 0)
			printf("%d is open, %o\n", i, fcntl(i, F_GETFL) & O_ACCMODE);
	for (i = 5; i < 8; i++) {
		n = read(i, b, 6);
		printf("%d: %zd %.*s\n", i, n, (int)(n > 0 ? n : 0), b);
	}
	n = send(7, "answer", 6, 0);
	printf("sent %zd\n", n);
	n = read(9, b, 3); // of the same file as 5, from where that is
	printf("9: %.*s\n", (int)n, b);
	n = write(8, "written", 7);
	printf("8: %zd\n", n);
	n = read(0, b, sizeof b);
	printf("0: %.*s\n", (int)n, b);
	printf("next %d\n", open("/dev/null", O_RDONLY));
	return 0;
}

// Asks again and again of every number whether it is a descriptor, while the recorder gets more of its own. Prints the answers.
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

int main(void)
{
	int fd, n = 0, i, m;
	for (i = 0; i < 40; i++)
		for (fd = 4000; fd < 4400; fd++) {
			n += fcntl(fd, F_GETFD) >= 0;
			n += ioctl(fd, FIONREAD, &m) >= 0;
			n += dup(fd) >= 0;
			n += dup2(fd, 3) >= 0;
		}
	printf("%d\n", n);
	return 0;
}

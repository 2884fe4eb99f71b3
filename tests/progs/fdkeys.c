/* A server's way with its connections: round and round 120 descriptors, each a key of its own. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	int fd[120], i, round;
	fd[0] = open("/dev/null", O_WRONLY);
	for (i = 1; i < 120; i++)
		fd[i] = dup(fd[0]);
	for (round = 0; round < 100; round++)
		for (i = 0; i < 120; i++)
			if (write(fd[i], "x", 1) != 1)
				return 1;
	puts("done");
	return 0;
}

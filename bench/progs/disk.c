// Reads and writes a file, at places by chance or from its beginning to its end and again, with a sync now and then.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char page[64 << 10];
static volatile unsigned long sink;

static void burn(unsigned n)
{
	unsigned long x = n;
	for (unsigned k = 0; k < n; k++)
		x = x * 6364136223846793005ul + 1;
	sink = x;
}

static int by_chance(int fd, int times, long pages)
{
	unsigned seed = 1;
	for (int i = 0; i < times; i++) {
		seed = seed * 1103515245 + 12345;
		if (pread(fd, page, 4096, (seed >> 8) % pages * 4096) != 4096)
			return 1;
		burn(20000);
		seed = seed * 1103515245 + 12345;
		if (pwrite(fd, page, 4096, (seed >> 8) % pages * 4096) != 4096)
			return 1;
		if (i % 25 == 24 && fdatasync(fd))
			return 1;
	}
	return 0;
}

static int in_order(int fd, int times)
{
	int to = open("copy", O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (int i = 0; i < times; i++) {
		ssize_t n = read(fd, page, sizeof page);
		if (n == 0 && lseek(fd, 0, SEEK_SET) == 0)
			n = read(fd, page, sizeof page);
		if (n <= 0 || write(to, page, (size_t)n) != n)
			return 1;
		burn(40000);
		if (i % 32 == 31 && fsync(to))
			return 1;
	}
	return fsync(to) || close(to) || unlink("copy");
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	int fd = open("data", O_RDWR);
	long size = lseek(fd, 0, SEEK_END);
	if (size < 4096 || lseek(fd, 0, SEEK_SET))
		return 1;
	int times = atoi(argv[2]);
	return strcmp(argv[1], "random") ? in_order(fd, times) : by_chance(fd, times, size / 4096);
}

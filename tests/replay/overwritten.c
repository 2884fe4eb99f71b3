// A process writes memory to a file and reads some back into it while another changes that memory.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 1 << 20 };

int main(void)
{
	volatile unsigned char *m = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned i, j, sum = 0;
	int fd = open("f", O_RDWR | O_CREAT, 0600), pid;
	FILE *f = fdopen(dup(fd), "w");
	struct timespec t;
	pid = fork();
	if (!pid) {
		for (i = 0; !m[0]; i++) {
			clock_gettime(CLOCK_MONOTONIC, &t);
			for (j = 64; j < SIZE; j += 4096)
				m[j] += (unsigned char)(t.tv_nsec >> 4) | 1;
		}
		_exit(0);
	}
	for (i = 0; i < 30; i++) {
		struct iovec v = {(void *)m, SIZE};
		pwrite(fd, (void *)m, SIZE, 0);
		pread(fd, (void *)(m + SIZE / 2), SIZE / 2, 0);
		pwritev(fd, &v, 1, SIZE);
		fwrite((void *)(m + 4096), SIZE / 2, 1, f);
		for (j = 64; j < SIZE; j += 4096)
			sum = sum * 31 + m[j];
	}
	m[0] = 1;
	waitpid(pid, 0, 0);
	printf("%u\n", sum);
	return 0;
}

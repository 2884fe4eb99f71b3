// cflags: -O2
// Processes that try for a lock of a file again and again, and wait longer each time: "rungs" has them work for some time with the lock, and as long
// as they are told to without it, so that it may be somebody else's when they come back. "late" has one
// lock that is free at home whenever somebody tries for it, and another one that is not.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long sink;

static void burn(unsigned n)
{
	unsigned long x = n;
	for (unsigned k = 0; k < n; k++)
		x = x * 6364136223846793005ul + 1;
	sink = x;
}

static int set(int fd, int part, int type)
{
	struct flock l = {.l_type = (short)type, .l_whence = SEEK_SET, .l_start = part, .l_len = 1};
	return fcntl(fd, F_SETLK, &l);
}

static void take(int fd, int part)
{
	static const unsigned ms[] = {1, 2, 5, 10, 15, 20};
	for (unsigned n = 0; set(fd, part, F_WRLCK); n++)
		usleep(1000 * ms[n < 6 ? n : 5]);
}

static void rungs(int fd, int times, unsigned rest)
{
	for (int i = 0; i < times; i++) {
		take(fd, 0);
		burn(3000000);
		if (pwrite(fd, "x", 1, 4096) != 1)
			_exit(1);
		set(fd, 0, F_UNLCK);
		burn(rest);
	}
}

int main(int argc, char **argv)
{
	int fd = open("lock", O_RDWR | O_CREAT, 0600), n = argc > 2 ? atoi(argv[2]) : 2, late = argc > 1 && !strcmp(argv[1], "late");
	for (int i = 0; i < n; i++)
		if (!fork()) {
			if (!late) {
				rungs(fd, 12, argc > 3 ? (unsigned)atoi(argv[3]) : 200000);
			} else if (!i) {
				take(fd, 0);
				usleep(20000);
				set(fd, 0, F_UNLCK);
				take(fd, 1);
				burn(30000000);
				set(fd, 1, F_UNLCK);
			} else {
				usleep(5000);
				take(fd, 0);
				set(fd, 0, F_UNLCK);
				usleep(150000);
				take(fd, 1);
				usleep(300000);
				set(fd, 1, F_UNLCK);
			}
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	puts("done");
}

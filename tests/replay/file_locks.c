/* Processes that take a file's lock in turn, in every way there is, and write who has it. Prints the order. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FLOCK, POSIX, OFD, LOCKF, TRY, WAYS };

static void lock(int fd, int way)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	switch (way) {
	case FLOCK:
		flock(fd, LOCK_EX);
		return;
	case POSIX:
		fcntl(fd, F_SETLKW, &l);
		return;
	case OFD:
		fcntl(fd, F_OFD_SETLKW, &l);
		return;
	case LOCKF:
		lseek(fd, 0, SEEK_SET);
		lockf(fd, F_LOCK, 0);
		return;
	case TRY:
		while (flock(fd, LOCK_EX | LOCK_NB) != 0)
			usleep(20);
	}
}

static void unlock(int fd, int way)
{
	struct flock l = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
	switch (way) {
	case FLOCK:
	case TRY:
		flock(fd, LOCK_UN);
		return;
	case POSIX:
		fcntl(fd, F_SETLK, &l);
		return;
	case OFD:
		fcntl(fd, F_OFD_SETLK, &l);
		return;
	case LOCKF:
		lseek(fd, 0, SEEK_SET);
		lockf(fd, F_ULOCK, 0);
	}
}

static void work(int way, int me)
{
	int fd = open("log", O_RDWR | O_CREAT, 0600), i;
	for (i = 0; i < 60; i++) {
		char who = (char)('a' + me);
		lock(fd, way);
		pwrite(fd, &who, 1, lseek(fd, 0, SEEK_END));
		unlock(fd, way);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	int way, i, n = argc > 1 ? atoi(argv[1]) : 2;
	char all[4096];
	for (way = 0; way < WAYS; way++) {
		ssize_t r;
		int fd;
		unlink("log");
		for (i = 0; i < n; i++)
			if (fork() == 0)
				work(way, i);
		while (wait(0) > 0)
			;
		fd = open("log", O_RDONLY);
		r = read(fd, all, sizeof all);
		close(fd);
		printf("%d %zd %.*s\n", way, r, (int)r, all);
	}
	return 0;
}

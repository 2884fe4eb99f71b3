/* Threads that take a file's lock in turn, each through a descriptor of its own, and write who has it: in the ways whose
 * owner is the descriptor, and in those whose owner is the process by one thread a process. Prints the order. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FLOCK, OFD, TRY, SHARED_WAYS, POSIX = SHARED_WAYS, LOCKF, WAYS };

static int way, fds[64];

static void lock(int fd)
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

static void unlock(int fd)
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

static void *work(void *p)
{
	int me = (int)(long)p, fd = fds[me], i;
	for (i = 0; i < 60; i++) {
		char who = (char)('a' + me);
		lock(fd);
		pwrite(fd, &who, 1, lseek(fd, 0, SEEK_END));
		unlock(fd);
	}
	return 0;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 2, ways = argc > 2 ? WAYS : SHARED_WAYS;
	char all[4096];
	for (way = 0; way < ways; way++) {
		pthread_t t[64];
		ssize_t r;
		long i;
		int fd;
		unlink("log");
		for (i = 0; i < n; i++)
			fds[i] = open("log", O_RDWR | O_CREAT, 0600);
		for (i = 0; i < n; i++)
			if (way < SHARED_WAYS)
				pthread_create(&t[i], 0, work, (void *)i);
			else if (fork() == 0)
				work((void *)i), _exit(0);
		for (i = 0; i < n; i++)
			if (way < SHARED_WAYS)
				pthread_join(t[i], 0);
			else
				wait(0);
		for (i = 0; i < n; i++)
			close(fds[i]);
		fd = open("log", O_RDONLY);
		r = read(fd, all, sizeof all);
		close(fd);
		printf("%d %zd %.*s\n", way, r, (int)r, all);
	}
	return 0;
}

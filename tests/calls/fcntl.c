#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int bad;
#define CHECK(x) ((x) ? (void)0 : (void)(bad = 1, printf("line %d: %s: errno %d\n", __LINE__, #x, errno)))
#define FAILS(x, e) (errno = 0, (x) == -1 && errno == (e) ? (void)0 : (void)(bad = 1, printf("line %d: %s: not " #e " but %d\n", __LINE__, #x, errno)))

#include <sys/file.h>
#include <sys/wait.h>

extern int __fcntl(int, int, ...);

int main(void)
{
	struct flock l = {F_WRLCK, SEEK_SET, 0, 100, 0}, m = {F_RDLCK, SEEK_SET, 50, 10, 0}, o = {F_WRLCK, SEEK_SET, 200, 1, 0};
	int fd = open("f", O_RDWR | O_CREAT, 0600), other = open("f", O_RDWR), p[2], s;
	char c;
	CHECK(fcntl(fd, F_DUPFD, 20) == 20 && fcntl64(fd, F_DUPFD_CLOEXEC, 20) == 21 && __fcntl(21, F_GETFD) == FD_CLOEXEC);
	CHECK(fcntl(20, F_SETFD, FD_CLOEXEC) == 0 && fcntl(20, F_GETFD) == FD_CLOEXEC);
	CHECK(fcntl(fd, F_SETFL, O_APPEND | O_NONBLOCK) == 0 && (fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK)) == (O_RDWR | O_APPEND | O_NONBLOCK));
	FAILS(fcntl(99, F_GETFD), EBADF);
	FAILS(fcntl(fd, 12345, &l), EINVAL);
	CHECK(fcntl(fd, F_GETOWN, &l) == 0 && fcntl(fd, F_GETSIG, &l) == 0); /* what is no argument of theirs is not looked at */
	FAILS(fcntl(fd, F_SETLK, (void *)8), EFAULT);
	CHECK(fcntl(fd, F_SETLK, &l) == 0);
	CHECK(fcntl(fd, F_OFD_SETLK, &o) == 0);
	FAILS(fcntl(other, F_OFD_SETLK, &o), EAGAIN);
	CHECK(pipe(p) == 0);
	if (fork() == 0) {
		close(p[0]);
		CHECK(fcntl(other, F_GETLK, &m) == 0 && m.l_type == F_WRLCK && m.l_start == 0 && m.l_len == 100 && m.l_pid == getppid());
		m.l_type = F_RDLCK;
		CHECK(fcntl(other, F_SETLK, &m) == -1 && (errno == EAGAIN || errno == EACCES));
		FAILS(lockf(other, F_TEST, 10), EACCES);
		write(p[1], "x", 1);
		m.l_start = 50, m.l_len = 10, m.l_whence = SEEK_SET;
		CHECK(fcntl(other, F_SETLKW, &m) == 0);
		fflush(stdout);
		_exit(bad);
	}
	close(p[1]);
	CHECK(read(p[0], &c, 1) == 1);
	usleep(20000);
	l.l_type = F_UNLCK;
	CHECK(fcntl64(fd, F_SETLK, &l) == 0);
	wait(&s);
	CHECK(s == 0);
	CHECK(lseek(fd, 0, SEEK_SET) == 0 && lockf(fd, F_LOCK, 10) == 0 && lockf64(fd, F_ULOCK, 10) == 0);
	FAILS(lockf(99, F_LOCK, 1), EBADF);
	CHECK(flock(fd, LOCK_EX) == 0);
	FAILS(flock(other, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	CHECK(flock(fd, LOCK_UN) == 0);
	/* A POSIX lock on a file that was there before, then a second open for writing: the lock must stay. */
	l.l_type = F_WRLCK;
	CHECK(fcntl(fd, F_SETLK, &l) == 0);
	CHECK(truncate("f", 0) == 0);
	if (fork() == 0) {
		m.l_type = F_RDLCK;
		FAILS(fcntl(other, F_SETLK, &m), EAGAIN);
		fflush(stdout);
		_exit(bad);
	}
	wait(&s);
	CHECK(s == 0);
	printf("locked\n");
	return bad;
}

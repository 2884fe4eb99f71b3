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

#include <pty.h>
#include <termios.h>

extern int __ptsname_r_chk(int, char *, size_t, size_t);

int main(void)
{
	struct termios t;
	char name[64];
	int m, s, fd, one;
	m = posix_openpt(O_RDWR | O_NOCTTY);
	if (m < 0) {
		/* No terminals here: the same without them. */
		printf("no terminals\n");
	}
	CHECK(m < 0 || (grantpt(m) == 0 && unlockpt(m) == 0 && ptsname(m) && ptsname_r(m, name, sizeof name) == 0 &&
			__ptsname_r_chk(m, name, sizeof name, sizeof name) == 0));
	if (m < 0) {
		grantpt(99), unlockpt(99), ptsname(99), ptsname_r(99, name, sizeof name), __ptsname_r_chk(99, name, sizeof name, sizeof name);
	}
	fd = m < 0 ? -1 : open(name, O_RDWR | O_NOCTTY);
	CHECK(m < 0 || fd == m + 1);
	CHECK(isatty(fd) == (m >= 0));
	CHECK(m < 0 || (ttyname(fd) && ttyname_r(fd, name, sizeof name) == 0));
	if (m < 0)
		ttyname(99), ttyname_r(99, name, sizeof name);
	CHECK(tcgetattr(fd, &t) == (m < 0 ? -1 : 0));
	CHECK(tcsetattr(fd, TCSANOW, &t) == (m < 0 ? -1 : 0));
	CHECK(tcdrain(fd) == (m < 0 ? -1 : 0));
	CHECK(tcflush(fd, TCIOFLUSH) == (m < 0 ? -1 : 0));
	CHECK(tcflow(fd, TCOON) == (m < 0 ? -1 : 0));
	CHECK(tcsendbreak(fd, 0) == (m < 0 ? -1 : 0));
	CHECK(tcgetpgrp(fd) == -1);
	CHECK(tcsetpgrp(fd, getpgrp()) == -1);
	FAILS(tcgetattr(99, &t), EBADF);
	CHECK(isatty(99) == 0 && errno == EBADF);
	CHECK(ttyname(99) == 0 && errno == EBADF);
	one = getpt();
	CHECK(m < 0 || (one == fd + 1 && close(one) == 0));
	CHECK(openpty(&m, &s, 0, 0, 0) == 0 || fd < 0);
	CHECK(fd < 0 || (close(m) == 0 && close(s) == 0));
	printf("terminal\n");
	return bad;
}

// How many descriptors a process may have, and which numbers they get.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int main(void)
{
	struct rlimit r;
	int fd, n = 0, last = -1, gaps = 0;
	getrlimit(RLIMIT_NOFILE, &r);
	printf("limit %ld %ld\n", (long)r.rlim_cur, (long)r.rlim_max);
	while (n < 900 && (fd = open("/dev/null", O_RDONLY)) >= 0) {
		gaps += last >= 0 && fd != last + 1;
		last = fd;
		n++;
	}
	printf("opened %d, the last is %d, gaps %d: %s\n", n, last, gaps, n < 900 ? strerror(errno) : "enough");
	while (last > 2)
		close(last--);
	fflush(stdout);
	return system("ulimit -n; ulimit -Hn");
}

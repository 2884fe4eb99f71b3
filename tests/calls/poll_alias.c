/* The other names of poll and select. */
#include <poll.h>
#include <stdio.h>
#include <sys/select.h>
#include <unistd.h>

extern int __poll(struct pollfd *, nfds_t, int);
extern int __poll_chk(struct pollfd *, nfds_t, int, size_t);
extern int __ppoll_chk(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t);
extern int __select(int, fd_set *, fd_set *, fd_set *, struct timeval *);

int main(void)
{
	int p[2];
	struct pollfd f;
	struct timespec ts = {0, 0};
	struct timeval tv = {0, 0};
	fd_set w;
	pipe(p);
	f = (struct pollfd){p[1], POLLOUT, 0};
	printf("%d", __poll(&f, 1, 0));
	printf(" %d", __poll_chk(&f, 1, 0, sizeof f));
	printf(" %d", __ppoll_chk(&f, 1, &ts, 0, sizeof f));
	FD_ZERO(&w);
	FD_SET(p[1], &w);
	printf(" %d\n", __select(p[1] + 1, 0, &w, 0, &tv));
	return 0;
}

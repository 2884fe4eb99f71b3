/* Readiness by poll and select: ready, not ready, late, interrupted, many. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/time.h>
#include <unistd.h>

static void show(const char *what, long r)
{
	int e = errno;
	printf("%s %ld %d\n", what, r, r < 0 ? e : 0);
}

static void nop(int s)
{
	(void)s;
}

static void *waits(void *p)
{
	switch ((long)p) {
	case 0:
		poll(0, 0, -1);
		break;
	case 1:
		select(0, 0, 0, 0, 0);
		break;
	case 2:
		ppoll(0, 0, 0, 0);
		break;
	case 3:
		pselect(0, 0, 0, 0, 0, 0);
		break;
	}
	return 0;
}

int main(void)
{
	int p[2], q[2], i;
	struct pollfd f[3], *many = calloc(3000, sizeof *many);
	struct timespec ts = {0, 1000000};
	struct timeval tv;
	fd_set r, w, x, *edge;
	sigset_t none;
	struct sigaction sa = {.sa_handler = nop};
	struct itimerval it = {{0, 0}, {0, 20000}};
	pipe(p);
	pipe(q);
	sigemptyset(&none);
	f[0] = (struct pollfd){p[0], POLLIN, 0};
	f[1] = (struct pollfd){p[1], POLLOUT, 0};
	f[2] = (struct pollfd){-1, POLLIN, 7};
	show("poll", poll(f, 3, 0));
	printf("%d %d %d\n", f[0].revents, f[1].revents, f[2].revents);
	show("poll none", poll(f, 1, 1));
	show("poll empty", poll(0, 0, 0));
	write(p[1], "x", 1);
	show("ppoll", ppoll(f, 3, &ts, &none));
	printf("%d %d %d\n", f[0].revents, f[1].revents, f[2].revents);
	printf("tmo untouched %ld\n", ts.tv_nsec);
	f[0].fd = 900;
	show("poll closed", poll(f, 1, 0));
	printf("%d\n", f[0].revents);
	show("poll nowhere", poll((void *)8, 1, 0));
	for (i = 0; i < 3000; i++)
		many[i] = (struct pollfd){i % 2 ? p[0] : p[1], POLLIN | POLLOUT, 0};
	{
		struct rlimit l;
		getrlimit(RLIMIT_NOFILE, &l);
		show("poll many", poll(many, l.rlim_cur < 3000 ? 200 : 3000, 0) > 0);
	}
	show("poll too many", poll(many, 1ul << 40, 0));
	FD_ZERO(&r);
	FD_ZERO(&w);
	FD_ZERO(&x);
	FD_SET(p[0], &r);
	FD_SET(q[0], &r);
	FD_SET(p[1], &w);
	tv = (struct timeval){5, 0};
	show("select", select(q[1] + 1, &r, &w, &x, &tv));
	printf("%d %d %d left %d\n", !!FD_ISSET(p[0], &r), !!FD_ISSET(q[0], &r), !!FD_ISSET(p[1], &w), tv.tv_sec == 4 || tv.tv_sec == 5);
	FD_ZERO(&r);
	FD_SET(q[0], &r);
	tv = (struct timeval){0, 1000};
	show("select late", select(q[0] + 1, &r, 0, 0, &tv));
	printf("%d\n", !!FD_ISSET(q[0], &r));
	tv = (struct timeval){0, 0};
	show("select nothing", select(0, 0, 0, 0, &tv));
	show("select negative", select(-1, &r, 0, 0, &tv));
	show("select nowhere", select(8, (void *)8, 0, 0, &tv));
	FD_ZERO(&r);
	FD_SET(50, &r);
	show("select closed", select(51, &r, 0, 0, &tv));
	FD_ZERO(&r);
	FD_SET(p[0], &r);
	show("pselect", pselect(p[0] + 1, &r, 0, 0, &ts, &none));
	edge = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap((char *)edge + 4096, 4096);
	edge = (fd_set *)((char *)edge + 4096 - 8); /* the kernel looks at 8 bytes only */
	memset(edge, 0, 8);
	((char *)edge)[p[0] / 8] = 1 << p[0] % 8;
	show("select at the edge", select(64, edge, 0, 0, &tv));
	show("pselect nowhere", pselect(8, &r, 0, 0, 0, (void *)8));
	sigaction(SIGALRM, &sa, 0);
	setitimer(ITIMER_REAL, &it, 0);
	show("interrupted poll", poll(0, 0, -1));
	setitimer(ITIMER_REAL, &it, 0);
	show("interrupted select", select(0, 0, 0, 0, 0));
	setitimer(ITIMER_REAL, &it, 0);
	show("interrupted ppoll", ppoll(0, 0, 0, &none));
	setitimer(ITIMER_REAL, &it, 0);
	show("interrupted pselect", pselect(0, 0, 0, 0, 0, &none));
	for (i = 0; i < 4; i++) {
		pthread_t t;
		void *got;
		pthread_create(&t, 0, waits, (void *)(long)i);
		usleep(10000);
		pthread_cancel(t);
		pthread_join(t, &got);
		printf("cancelled %d %d\n", i, got == PTHREAD_CANCELED);
	}
	return 0;
}

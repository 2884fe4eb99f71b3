/* epoll: few events, many, none; what is refused. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void show(const char *what, long r)
{
	int e = errno;
	printf("%s %ld %d\n", what, r, r < 0 ? e : 0);
}

static void *waits(void *p)
{
	struct epoll_event v;
	epoll_wait(*(int *)p, &v, 1, -1);
	return 0;
}

int main(void)
{
	int a = epoll_create(1), b = epoll_create1(EPOLL_CLOEXEC), e = eventfd(1, 0), i;
	struct epoll_event v = {EPOLLIN | EPOLLOUT | EPOLLET, {.u64 = 0x123456789abcdef0}}, got[200];
	struct timespec ts = {0, 0};
	sigset_t none;
	pthread_t t;
	void *r;
	sigemptyset(&none);
	show("create bad", epoll_create(0));
	show("create1 bad", epoll_create1(77));
	show("add", epoll_ctl(a, EPOLL_CTL_ADD, e, &v));
	show("add twice", epoll_ctl(a, EPOLL_CTL_ADD, e, &v));
	show("wait", epoll_wait(a, got, 200, -1));
	printf("%x %llx\n", got[0].events, (unsigned long long)got[0].data.u64);
	v.events = EPOLLIN;
	show("mod", epoll_ctl(a, EPOLL_CTL_MOD, e, &v));
	show("pwait", epoll_pwait(a, got, 1, 1000, &none));
	show("pwait2", epoll_pwait2(a, got, 1, &ts, 0));
	show("del", epoll_ctl(a, EPOLL_CTL_DEL, e, 0));
	show("del again", epoll_ctl(a, EPOLL_CTL_DEL, e, (void *)8));
	show("none", epoll_wait(a, got, 1, 0));
	show("late", epoll_pwait2(a, got, 1, &ts, &none));
	for (i = 0; i < 150; i++) {
		v.events = EPOLLIN | EPOLLOUT;
		v.data.u64 = (unsigned long)i * 0x9E3779B97F4A7C15ul;
		if (epoll_ctl(b, EPOLL_CTL_ADD, eventfd(1, EFD_NONBLOCK), &v))
			puts("failed");
	}
	show("many", epoll_wait(b, got, 200, 0));
	printf("%d\n", got[149].data.u64 == 149ul * 0x9E3779B97F4A7C15ul);
	show("add nowhere", epoll_ctl(a, EPOLL_CTL_ADD, e, (void *)8));
	show("add a file", epoll_ctl(a, EPOLL_CTL_ADD, a, &v));
	show("wait nowhere", epoll_wait(b, (void *)8, 1, 0));
	show("wait no room", epoll_wait(b, got, 0, 0));
	show("wait bad", epoll_wait(e, got, 1, 0));
	show("pwait2 nowhere", epoll_pwait2(b, got, 1, (void *)8, 0));
	pthread_create(&t, 0, waits, &a);
	usleep(10000);
	pthread_cancel(t);
	pthread_join(t, &r);
	printf("cancelled %d\n", r == PTHREAD_CANCELED);
	return 0;
}

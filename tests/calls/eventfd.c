/* Descriptors that are no files: counters, timers, signals. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

static void show(const char *what, long r)
{
	int e = errno;
	printf("%s %ld %d\n", what, r, r < 0 ? e : 0);
}

int main(void)
{
	eventfd_t v = 0;
	int e = eventfd(3, EFD_NONBLOCK), s = eventfd(2, EFD_SEMAPHORE | EFD_CLOEXEC), t, g;
	struct itimerspec it = {{0, 0}, {0, 1000000}}, old;
	unsigned long n = 0;
	sigset_t m;
	struct signalfd_siginfo si;
	show("bad", eventfd(0, 12345));
	show("read", eventfd_read(e, &v));
	printf("%d\n", (int)v);
	show("empty", eventfd_read(e, &v));
	show("write", eventfd_write(e, 40));
	show("read", read(e, &n, 8));
	printf("%lu\n", n);
	show("too much", eventfd_write(e, ~0ull));
	show("semaphore", eventfd_read(s, &v));
	printf("%d\n", (int)v);
	show("read bad", eventfd_read(-1, &v));
	t = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	show("timer bad", timerfd_create(77, 0));
	show("set", timerfd_settime(t, 0, &it, 0));
	show("expired", read(t, &n, 8));
	printf("%lu\n", n);
	it.it_value.tv_sec = 1000;
	show("set", timerfd_settime(t, 0, &it, &old));
	printf("%d\n", (int)old.it_value.tv_sec);
	show("get", timerfd_gettime(t, &old));
	printf("%d\n", old.it_value.tv_sec >= 999);
	show("set nowhere", timerfd_settime(t, 0, (void *)8, 0));
	show("get nowhere", timerfd_gettime(t, (void *)8));
	sigemptyset(&m);
	sigaddset(&m, SIGUSR1);
	sigprocmask(SIG_BLOCK, &m, 0);
	g = signalfd(-1, &m, SFD_NONBLOCK);
	raise(SIGUSR1);
	show("signal", read(g, &si, sizeof si));
	printf("%d\n", si.ssi_signo == SIGUSR1);
	sigaddset(&m, SIGUSR2);
	show("same", signalfd(g, &m, 0) == g);
	show("bad", signalfd(e, &m, 0));
	show("nowhere", signalfd(-1, (void *)8, 0));
	return 0;
}

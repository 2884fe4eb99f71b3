// cflags: -Wl,-z,now
// Jumps out of handlers that interrupted a wrapper's real call, or hit between calls; alternate stacks.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static sigjmp_buf env;
static volatile int jumps;

static void jump(int sig)
{
	siglongjmp(env, 1);
}

static void quiet(int sig)
{
	char c = 'x';
	int fd = open("/dev/null", O_WRONLY), in = open("/proc/self/stat", O_RDONLY);
	write(fd, &c, 1);
	read(in, &c, 1);
	close(in);
	close(fd);
}

int main(void)
{
	struct sigaction sa = {.sa_handler = jump};
	struct itimerval once = {{0, 0}, {0, 3000}}, often = {{0, 0}, {0, 150}}, stop = {{0, 0}, {0, 0}};
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	int p[2], i;
	char c;
	pipe(p);
	sigaction(SIGALRM, &sa, 0);
	for (i = 0; i < 100; i++) {
		if (sigsetjmp(env, 1)) {
			jumps++;
			continue;
		}
		setitimer(ITIMER_REAL, &once, 0);
		read(p[0], &c, 1);
		printf("not reached\n");
	}
	printf("jumps out of read %d\n", jumps);
	jumps = 0;
	for (i = 0; i < 2000; i++) {
		volatile int k = 0;
		if (sigsetjmp(env, 1)) {
			jumps++;
			continue;
		}
		setitimer(ITIMER_REAL, &often, 0);
		for (;; k++) {
			struct timespec ts;
			clock_gettime(CLOCK_MONOTONIC, &ts);
			write(p[1], "", 0);
		}
	}
	printf("jumps from anywhere %d\n", jumps);
	setitimer(ITIMER_REAL, &stop, 0);
	/* As little stack as the system allows, and what the calls of this handler need themselves. */
	{
		size_t min = sysconf(_SC_MINSIGSTKSZ), room = min + 2048, page = 4096, len = (room + page - 1) & ~(page - 1);
		char *map = mmap(0, len + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		stack_t ss = {.ss_sp = map + page + len - room, .ss_size = room};
		mprotect(map, page, PROT_NONE);
		ss.ss_sp = map + page;
		ss.ss_size = room;
		sigaltstack(&ss, 0);
		sa.sa_handler = quiet;
		sa.sa_flags = SA_ONSTACK;
		sigaction(SIGUSR1, &sa, 0);
		for (i = 0; i < 100; i++)
			raise(SIGUSR1);
		printf("small stacks %d\n", i);
	}
	return 0;
}

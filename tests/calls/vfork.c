// vfork: the child runs on its parent's stack and state.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern pid_t __vfork(void);
extern char **environ;
static volatile int hits;

static void handler(int sig)
{
	hits++;
}

static int ended(pid_t p)
{
	int st = -1;
	waitpid(p, &st, 0);
	return WIFEXITED(st) ? WEXITSTATUS(st) : -WTERMSIG(st);
}

static __attribute__((noinline)) pid_t deep(int n, char *pad)
{
	char local[64];
	memset(local, n, sizeof local);
	if (n)
		return deep(n - 1, local);
	return vfork();
}

int main(void)
{
	volatile int shared = 0;
	char *const none[] = {0}, *const argv[] = {"sh", "-c", "exit 12", 0};
	char **big;
	struct sigaction a = {0}, old;
	pid_t p;
	int i;
	setvbuf(stdout, 0, _IONBF, 0);
	p = vfork();
	if (p == 0) {
		shared = 1;
		_exit(3);
	}
	printf("vfork %d shared %d\n", ended(p), shared);
	p = __vfork();
	if (p == 0)
		_exit(4);
	printf("__vfork %d\n", ended(p));
	p = vfork();
	if (p == 0) {
		raise(SIGTERM);
		_exit(5);
	}
	printf("by a signal %d\n", ended(p));
	p = vfork();
	if (p == 0) {
		kill(getpid(), SIGKILL);
		_exit(5);
	}
	printf("killed %d\n", ended(p));
	for (i = 0; i < 20; i++) {
		p = vfork();
		if (p == 0) {
			execl("/nowhere", "nowhere", (char *)0);
			execv("/bin/sh", argv);
			_exit(1);
		}
		if (ended(p) != 12)
			puts("wrong");
	}
	p = vfork();
	if (p == 0) {
		execve("/bin/sh", argv, none);
		_exit(1);
	}
	printf("cleared %d\n", ended(p));
	big = calloc(3001, sizeof *big);
	for (i = 0; i < 3000; i++)
		big[i] = "SOME_VARIABLE=some value";
	for (i = 0; i < 3; i++) {
		p = vfork();
		if (p == 0) {
			execve("/bin/sh", argv, big);
			_exit(1);
		}
		printf("big %d\n", ended(p));
	}
	/* A handler that the child installs is not the parent's. */
	a.sa_handler = handler;
	sigaction(SIGUSR1, &a, 0);
	p = vfork();
	if (p == 0) {
		signal(SIGUSR1, SIG_IGN);
		signal(SIGUSR2, handler);
		_exit(raise(SIGUSR1));
	}
	printf("signals %d\n", ended(p));
	raise(SIGUSR1);
	sigaction(SIGUSR2, 0, &old);
	printf("hits %d default %d\n", hits, old.sa_handler == SIG_DFL);
	errno = 0;
	return 0;
}

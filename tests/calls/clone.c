// clone as programs call it: like fork, with a stack; like vfork; sharing memory for good.
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);
static char stack[65536] __attribute__((aligned(16)));
static volatile int shared;

static int child(void *p)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	shared++;
	return (int)(long)p;
}

static int ended(pid_t p)
{
	int st = -1;
	waitpid(p, &st, __WALL);
	return WIFEXITED(st) ? WEXITSTATUS(st) : -WTERMSIG(st);
}

int main(void)
{
	pid_t tid = 0;
	setvbuf(stdout, 0, _IONBF, 0);
	printf("plain %d", ended(clone(child, stack + sizeof stack, SIGCHLD, (void *)5)));
	printf(" shared %d\n", shared);
	printf("__clone %d\n", ended(__clone(child, stack + sizeof stack, SIGCHLD | CLONE_PARENT_SETTID, (void *)6, &tid)));
	printf("tid %d\n", tid > 0);
	printf("vfork %d", ended(clone(child, stack + sizeof stack, SIGCHLD | CLONE_VM | CLONE_VFORK, (void *)7)));
	printf(" shared %d\n", shared);
	printf("vm %d", ended(clone(child, stack + sizeof stack, SIGCHLD | CLONE_VM, (void *)8)));
	printf(" shared %d\n", shared);
	printf("invalid %d\n", clone(child, 0, SIGCHLD, 0));
	return 0;
}

// A child ends as its fork returns: where that is late, as on a busy machine, the handler of SIGCHLD jumps out of the fork.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static sigjmp_buf out;
static volatile sig_atomic_t may;

static void ended(int sig)
{
	(void)sig;
	if (may)
		siglongjmp(out, 1);
}

int main(void)
{
	volatile int jumped = 0, i;
	signal(SIGCHLD, ended);
	for (i = 0; i < 40; i++) {
		if (sigsetjmp(out, 1) == 0) {
			may = 1;
			if (fork() == 0)
				_exit(i & 3);
			for (volatile int n = 0; n < 100000; n++)
				;
		} else {
			jumped++;
		}
		may = 0;
		int st = 0;
		while (wait(&st) < 0)
			;
		if (st >> 8 != (i & 3))
			printf("%d: %d\n", i, st);
	}
	printf("%d jumped\n", jumped);
	return 0;
}

/* A child that is killed as soon as it is there: whatever is left of it, the parent ends as it would. The argument is
 * how long it may live. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int st, alive = argc > 1 ? atoi(argv[1]) : 0;
	pid_t p = fork();
	if (p == 0)
		for (;;)
			pause();
	for (volatile int k = 0; k < alive; k++)
		;
	kill(p, SIGKILL);
	waitpid(p, &st, 0);
	printf("%d\n", WIFSIGNALED(st));
	return 0;
}

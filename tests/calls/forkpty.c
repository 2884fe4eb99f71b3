// forkpty: a child on a terminal of its own.
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	char b[200];
	int m, st = 0, n;
	pid_t p = forkpty(&m, 0, 0, 0);
	if (p == 0) {
		char line[20] = "";
		printf("tty %d%d%d", isatty(0), isatty(1), isatty(2));
		fflush(stdout);
		exit(7);
	}
	n = read(m, b, sizeof b);
	printf("%.*s\n", n > 0 ? n : 0, b);
	waitpid(p, &st, 0);
	printf("%d\n", WEXITSTATUS(st));
	return 0;
}

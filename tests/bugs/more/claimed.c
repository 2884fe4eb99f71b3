// Two processes look whether a file is there, then make it: both may believe that they did. Guarded: yes (files are recorded),
// re-executes under order alone. Fails: exit status 1, "both".
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char name[64];

static int claims(void)
{
	for (int i = 0; i < 20; i++)
		getppid();
	if (access(name, F_OK) == 0)
		return 0;
	int fd = open(name, O_CREAT | O_WRONLY, 0600);
	write(fd, "mine\n", 5);
	close(fd);
	return 1;
}

int main(void)
{
	for (int round = 0; round < 6; round++) {
		sprintf(name, "claim.%d", (int)getpid());
		int won = 0;
		pid_t p[2];
		for (int i = 0; i < 2; i++)
			if ((p[i] = fork()) == 0)
				_exit(claims());
		for (int i = 0; i < 2; i++) {
			int s;
			waitpid(p[i], &s, 0);
			won += WEXITSTATUS(s);
		}
		unlink(name);
		if (won != 1) {
			puts("both");
			return 1;
		}
	}
	return 0;
}

// Sessions and process groups.
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

extern int __setpgid(pid_t pid, pid_t pgid);

int main(void)
{
	pid_t p;
	setvbuf(stdout, 0, _IONBF, 0);
	p = fork();
	if (p == 0) {
		printf("setsid %d\n", setsid() == getpid());
		printf("again %d %d\n", setsid(), errno == EPERM);
		_exit(0);
	}
	wait(0);
	p = fork();
	if (p == 0) {
		printf("setpgid %d %d\n", setpgid(0, 0), getpgrp() == getpid());
		printf("invalid %d %d\n", setpgid(0, -5), errno == EINVAL);
		_exit(0);
	}
	wait(0);
	p = fork();
	if (p == 0) {
		printf("__setpgid %d %d\n", __setpgid(0, 0), getpgrp() == getpid());
		_exit(0);
	}
	wait(0);
	p = fork();
	if (p == 0) {
		printf("setpgrp %d %d\n", setpgrp(), getpgrp() == getpid());
		_exit(0);
	}
	wait(0);
	return 0;
}

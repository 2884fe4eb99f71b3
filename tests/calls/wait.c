// Every way to wait for a child.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern pid_t __wait(int *st);
extern pid_t __waitpid(pid_t pid, int *st, int options);

static pid_t child(int status)
{
	pid_t p = fork();
	if (p == 0)
		_exit(status);
	return p;
}

int main(void)
{
	struct rusage u;
	siginfo_t si;
	pid_t p;
	int st = 0;
	p = child(1);
	printf("wait %d", wait(&st) == p);
	printf(" %d\n", WEXITSTATUS(st));
	p = child(2);
	printf("null %d\n", wait(0) == p);
	p = child(3);
	printf("waitpid %d", waitpid(p, &st, 0) == p);
	printf(" %d\n", WEXITSTATUS(st));
	p = child(4);
	printf("waitid %d", waitid(P_PID, p, &si, WEXITED | WNOWAIT));
	printf(" %d %d %d\n", si.si_pid == p, si.si_status, si.si_code == CLD_EXITED);
	printf("null %d\n", waitid(P_PID, p, 0, WEXITED));
	p = child(5);
	printf("wait3 %d", wait3(&st, 0, &u) == p);
	printf(" %d %d\n", WEXITSTATUS(st), u.ru_maxrss > 0);
	p = child(6);
	printf("wait4 %d", wait4(p, &st, 0, &u) == p);
	printf(" %d %d\n", WEXITSTATUS(st), u.ru_maxrss > 0);
	p = child(7);
	printf("null %d\n", wait4(p, 0, 0, 0) == p);
	p = child(8);
	printf("__wait %d", __wait(&st) == p);
	printf(" %d\n", WEXITSTATUS(st));
	p = child(9);
	printf("__waitpid %d", __waitpid(p, &st, 0) == p);
	printf(" %d\n", WEXITSTATUS(st));
	p = fork();
	if (p == 0) {
		raise(SIGSTOP);
		pause();
	}
	waitpid(p, &st, WUNTRACED);
	printf("stopped %d\n", WIFSTOPPED(st));
	printf("nohang %d\n", waitpid(p, &st, WNOHANG));
	kill(p, SIGKILL);
	waitpid(p, &st, 0);
	printf("killed %d\n", WTERMSIG(st));
	printf("none %d %d\n", wait(&st), errno == ECHILD);
	printf("none %d %d\n", waitid(P_ALL, 0, &si, WEXITED), errno == ECHILD);
	printf("invalid %d %d\n", waitpid(-1, &st, 0x4000), errno == EINVAL);
	return 0;
}

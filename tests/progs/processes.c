// Children made in every way, from main and from a thread; all report through one pipe, in order.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char *echo[] = {"/bin/echo", "echo", 0};

static void wait_for(const char *what, pid_t pid)
{
	int s = -1;
	if (waitpid(pid, &s, 0) != pid)
		printf("%s: no child\n", what);
	else if (WIFEXITED(s))
		printf("%s: exit %d\n", what, WEXITSTATUS(s));
	else
		printf("%s: signal %d\n", what, WTERMSIG(s));
	fflush(stdout);
}

static void all(void)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pid_t pid;
	char *none[] = {0};
	fflush(stdout);
	if (!(pid = fork())) {
		pthread_mutex_lock(&m);
		write(1, "forked\n", 7);
		_exit(3);
	}
	wait_for("fork", pid);
	if (!(pid = fork()))
		exit(4);
	wait_for("fork, exit", pid);
	if (!(pid = fork()))
		abort();
	wait_for("fork, abort", pid);
	if (!(pid = fork()))
		raise(SIGKILL);
	wait_for("fork, kill", pid);
	if (!(pid = vfork())) {
		execv("/bin/echo", echo);
		_exit(1);
	}
	wait_for("vfork, exec", pid);
	if (!(pid = vfork())) {
		execv("/nonexistent", echo);
		_exit(errno);
	}
	wait_for("vfork, exec that fails", pid);
	if (!(pid = vfork())) {
		execve("/bin/echo", echo, none);
		_exit(1);
	}
	wait_for("vfork, exec without environment", pid);
	printf("spawn %d\n", posix_spawn(&pid, "/bin/echo", 0, 0, echo, environ));
	wait_for("spawn", pid);
	printf("spawn %d\n", posix_spawnp(&pid, "echo", 0, 0, echo, none));
	wait_for("spawnp without environment", pid);
	printf("spawn %d\n", posix_spawn(&pid, "/nonexistent", 0, 0, echo, environ));
	pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!pid) {
		write(1, "cloned\n", 7);
		_exit(6);
	}
	wait_for("clone", pid);
	pid = _Fork();
	if (!pid) {
		write(1, "_Forked\n", 8);
		_exit(7);
	}
	wait_for("_Fork", pid);
	printf("system %d\n", system("echo system; exit 5") >> 8);
	fflush(stdout);
	FILE *f = popen("cat; exit 2", "w");
	fputs("popen\n", f);
	printf("popen %d\n", pclose(f) >> 8);
	fflush(stdout);
	if (!(pid = fork())) {
		if (!(pid = fork())) {
			clearenv();
			execl("/bin/sh", "sh", "-c", "echo grandchild", (char *)0);
		}
		waitpid(pid, 0, 0);
		_exit(0);
	}
	wait_for("fork twice", pid);
}

static void *thread(void *a)
{
	all();
	return 0;
}

int main(void)
{
	pthread_t t;
	all();
	pthread_create(&t, 0, thread, 0);
	pthread_join(t, 0);
	execl("/bin/sh", "sh", "-c", "echo became another; exit 11", (char *)0);
	return 1;
}

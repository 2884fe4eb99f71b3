/* A child waits for signals in calls. As it is about to begin a handler, after more and more instructions, another signal comes: the debugger that its parent
 * is sends that. */
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMES = 60, STRIDE = 10 };

static void handler(int sig)
{
	(void)sig;
}

static int waits(void)
{
	struct sigaction a = {.sa_handler = handler};
	int i;
	sigaction(SIGUSR1, &a, 0);
	sigaction(SIGUSR2, &a, 0);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	for (i = 0; i < TIMES; i++)
		pause();
	return 0;
}

/* The child goes on in that way, and comes to a stop by sig. */
static int goes(int how, pid_t child, int with, int sig)
{
	int status;
	return ptrace(how, child, 0, with) == 0 && waitpid(child, &status, 0) == child && WIFSTOPPED(status) && WSTOPSIG(status) == sig;
}

/* Whether it has come to its call. */
static int sleeps(pid_t child)
{
	char name[64], state = 0;
	FILE *f;
	snprintf(name, sizeof name, "/proc/%d/stat", (int)child);
	f = fopen(name, "r");
	if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 'S';
	if (f)
		fclose(f);
	return state == 'S';
}

int main(void)
{
	int i, k, status;
	pid_t child = fork();
	if (child == 0)
		return waits();
	waitpid(child, &status, 0);
	for (i = 0; i < TIMES; i++) {
		if (i == 0 && ptrace(PTRACE_CONT, child, 0, 0) != 0)
			return 1;
		while (!sleeps(child))
			usleep(100);
		kill(child, SIGUSR1);
		if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status) || WSTOPSIG(status) != SIGUSR1 ||
		    !goes(PTRACE_SINGLESTEP, child, SIGUSR1, SIGTRAP))
			return 2;
		for (k = 0; k < i * STRIDE; k++)
			if (!goes(PTRACE_SINGLESTEP, child, 0, SIGTRAP))
				return 3;
		kill(child, SIGUSR2);
		if (!goes(PTRACE_CONT, child, 0, SIGUSR2) || ptrace(PTRACE_CONT, child, 0, SIGUSR2) != 0)
			return 4;
	}
	kill(child, SIGTERM);
	for (;;) {
		if (waitpid(child, &status, 0) != child)
			return 5;
		if (!WIFSTOPPED(status))
			break;
		ptrace(PTRACE_CONT, child, 0, WSTOPSIG(status));
	}
	return puts("all came") < 0;
}

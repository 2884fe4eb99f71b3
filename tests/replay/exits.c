/* Children that ask for nothing before they exit, and whose end asks for much: in main, and in a handler of exit itself. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int depth;

static void say(const char *s)
{
	if (write(1, s, strlen(s)) < 0)
		_exit(9);
}

static void child(int status)
{
	int st = 0;
	pid_t p = fork();
	if (!p)
		exit(status);
	waitpid(p, &st, 0);
	say(WEXITSTATUS(st) == status ? "as it said\n" : "otherwise\n");
}

static void last(void)
{
	say("last\n");
}

static void first(void)
{
	say("first\n");
	if (!depth++)
		child(5);
}

static void *nothing(void *arg)
{
	return arg;
}

int main(void)
{
	pthread_t t;
	atexit(last);
	atexit(first);
	depth = 1;
	child(3);
	pthread_create(&t, 0, nothing, 0);
	pthread_join(t, 0);
	child(4);
	depth = 0;
	return 0;
}

// The first thread ends by system call, and the process with its last thread: the C library does not call exit then. Once
// with a thread that is over before, once with one that goes on, and ends with a destructor that writes.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_t first;
static pthread_key_t key;

static void say(const char *s)
{
	if (write(1, s, strlen(s)) < 0)
		abort();
}

static void late(void *p)
{
	say(p);
}

static void *longer(void *p)
{
	usleep(50000); /* the first is gone by then */
	pthread_setspecific(key, "destructor\n");
	say("last\n");
	return p;
}

static void *shorter(void *p)
{
	say("first of them\n");
	return p;
}

static void child(void *(*routine)(void *), int joined, int status)
{
	int got;
	pid_t p = fork();
	if (p == 0) {
		pthread_create(&first, 0, routine, 0);
		if (joined)
			pthread_join(first, 0);
		syscall(SYS_exit, status);
	}
	waitpid(p, &got, 0);
	printf("%d %d\n", WIFEXITED(got), WEXITSTATUS(got));
	fflush(stdout);
}

int main(void)
{
	pthread_key_create(&key, late);
	child(shorter, 1, 3);
	child(longer, 0, 4);
	return 0;
}

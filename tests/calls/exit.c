// Every end of a process, from the main thread and from another one.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static sigjmp_buf out;

static void at_exit(void)
{
	printf("at exit\n");
}

static void at_quick(void)
{
	write(1, "at quick exit\n", 14);
}

static void on_end(int status, void *p)
{
	printf("on exit %d %s\n", status, (char *)p);
}

static void jumps(int sig)
{
	siglongjmp(out, 1);
}

static void returns(int sig)
{
	write(1, "returns\n", 8);
}

static void *quits(void *p)
{
	((void (*)(int))p)(17);
	return 0;
}

static void from_thread(void (*f)(int))
{
	pthread_t t;
	pthread_create(&t, 0, quits, (void *)f);
	for (;;)
		pause();
}

static void run(int i)
{
	atexit(at_exit);
	at_quick_exit(at_quick);
	on_exit(on_end, "arg");
	printf("buffered\n");
	switch (i) {
	case 0:
		exit(1);
	case 1:
		_exit(2);
	case 2:
		raise(0); /* a child that asked for nothing is not in the trace */
		_Exit(3);
	case 3:
		quick_exit(4);
	case 4:
		abort();
	case 5:
		from_thread(exit);
	case 6:
		from_thread(_exit);
	case 7:
		from_thread(quick_exit);
	case 8:
		from_thread((void (*)(int))abort);
	case 9:
		signal(SIGABRT, jumps);
		if (!sigsetjmp(out, 1))
			abort();
		printf("jumped\n");
		exit(5);
	case 10:
		signal(SIGABRT, returns);
		abort();
	case 11:
		signal(SIGABRT, SIG_IGN);
		abort();
	case 12:
		raise(SIGKILL);
	case 13:
		fflush(stdout);
		*(volatile int *)8 = 1;
	case 14:
		fclose(stderr);
		close(2);
		exit(6);
	case 15:
		exit(256 + 7);
	}
}

int main(void)
{
	int i;
	struct rlimit none = {0, 0};
	setrlimit(RLIMIT_CORE, &none);
	for (i = 0; i < 16; i++) {
		int st;
		pid_t p;
		fflush(stdout);
		p = fork();
		if (p == 0)
			run(i);
		waitpid(p, &st, 0);
		printf("%d: %d %d\n", i, WIFEXITED(st) ? WEXITSTATUS(st) : -1, WIFSIGNALED(st) ? WTERMSIG(st) : 0);
	}
	return 23;
}

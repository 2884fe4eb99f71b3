/* Children that are ended by a signal as soon as there are: of some the trace has nothing. And a signal that there is not. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	static const int by[] = {SIGABRT, SIGSEGV, SIGTERM, SIGFPE};
	struct rlimit none = {0, 0};
	int i, r, status = 0;
	setrlimit(RLIMIT_CORE, &none);
	r = raise(10000);
	printf("raise %d %d\n", r, errno);
	fflush(stdout);
	for (i = 0; i < 24; i++) {
		pid_t pid = fork();
		if (pid == 0)
			for (;;)
				pause();
		kill(pid, by[i % 4]);
		r = wait(i & 4 ? &status : 0) == pid;
		printf("%d: %d %d\n", i, r, status);
	}
	return 0;
}

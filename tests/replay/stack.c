// Prints where its stack lies, as a program and as one that a child has become, and what it finds on it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv)
{
	char *run = getenv("PROPHET_RUN"), *copy[64];
	int i, n = 0;
	for (i = 0; environ[i] && i < 64; i++)
		copy[n++] = strdup(environ[i]);
	printf("%p %p %p %p %s %zu %p\n", (void *)&argc, (void *)argv[0], (void *)environ, (void *)getauxval(AT_RANDOM), (char *)getauxval(AT_EXECFN),
	       run ? strlen(run) : 0, (void *)copy[n - 1]);
	fflush(stdout);
	if (argc < 4) {
		char *args[] = {"again", "a", argc > 1 ? "b" : 0, argc > 2 ? "c" : 0, 0};
		if (!fork()) {
			execv(argc > 1 ? argv[0] : "/proc/self/exe", args);
			execv("/proc/self/exe", args);
			_exit(1);
		}
		wait(0);
	}
	return 0;
}

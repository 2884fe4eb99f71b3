// popen in both directions, several at once, with the environment cleared and changed meanwhile.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern FILE *_IO_popen(const char *line, const char *mode);
extern char **environ;

int main(void)
{
	char b[100];
	char **before = environ;
	FILE *f, *g;
	setvbuf(stdout, 0, _IONBF, 0);
	f = popen("echo out; exit 3", "r");
	printf("%s", fgets(b, sizeof b, f));
	printf("%d\n", WEXITSTATUS(pclose(f)));
	printf("environ %d\n", environ == before);
	f = popen("cat; exit 4", "w");
	fputs("to cat\n", f);
	printf("%d\n", WEXITSTATUS(pclose(f)));
	f = popen("cat", "w");
	g = _IO_popen("echo two; cat", "re");
	printf("%s", fgets(b, sizeof b, g));
	fputs("one\n", f);
	printf("%d", pclose(f));
	printf(" %d\n", pclose(g));
	setenv("V", "seen", 1);
	f = popen("echo $V", "r");
	printf("%s", fgets(b, sizeof b, f));
	fclose(f); /* ends it, too */
	printf("left %d\n", waitpid(-1, 0, WNOHANG) == -1 && errno == ECHILD);
	printf("mode %d %d\n", popen("true", "x") == 0, errno == EINVAL);
	clearenv();
	f = popen("echo \"<$V>\"", "r");
	printf("%s", fgets(b, sizeof b, f));
	pclose(f);
	printf("environ %d\n", environ == 0 || *environ == 0);
	setenv("W", "after", 1);
	printf("%s\n", getenv("W"));
	return 0;
}

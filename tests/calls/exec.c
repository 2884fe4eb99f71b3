// Every exec function, with the environment kept, cleared and changed; those that fail.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char *const argv[] = {"sh", "-c", "echo $0 $# $V; exit 21", "zero", "one", 0};
static char *const env[] = {"V=mine", "PATH=/bin:/usr/bin", 0}, *const none[] = {0};

static void run(int i)
{
	switch (i) {
	case 0:
		execve("/bin/sh", argv, env);
	case 1:
		execv("/bin/sh", argv);
	case 2:
		execvp("sh", argv);
	case 3:
		execvpe("sh", argv, env);
	case 4:
		execl("/bin/sh", "sh", "-c", "echo l $0 $1 $V; exit 21", "a", "b", (char *)0);
	case 5:
		execlp("sh", "sh", "-c", "echo lp $0 $1 $V; exit 21", "a", "b", (char *)0);
	case 6:
		execle("/bin/sh", "sh", "-c", "echo le $0 $1 $V; exit 21", "a", "b", (char *)0, env);
	case 7:
		fexecve(open("/bin/sh", O_RDONLY), argv, env);
	case 8:
		execveat(open("/bin", O_RDONLY | O_DIRECTORY), "sh", argv, env, 0);
	case 9:
		execve("/bin/sh", argv, none);
	case 10:
		clearenv();
		execv("/bin/sh", argv);
	case 11:
		setenv("V", "changed", 1);
		execv("/bin/sh", argv);
	case 12: /* a script without #! */
		execvp("./script", argv);
	case 13:
		execv("./hashbang", argv);
	case 14: {
		static char big[100000];
		memset(big, 'x', sizeof big - 1);
		setenv("BIG", big, 1);
		execv("/bin/sh", argv);
	}
	}
	_exit(99);
}

static int error(int r)
{
	return r == -1 ? errno : 0;
}

int main(void)
{
	char *const bad[] = {(char *)8, 0};
	FILE *f = fopen("script", "w");
	int i, st;
	setvbuf(stdout, 0, _IONBF, 0);
	fputs("echo script $0\nexit 21\n", f);
	fclose(f);
	chmod("script", 0755);
	f = fopen("hashbang", "w");
	fputs("#! /bin/sh\necho hashbang $0\nexit 21\n", f);
	fclose(f);
	chmod("hashbang", 0755);
	setenv("V", "kept", 1);
	for (i = 0; i < 15; i++) {
		pid_t p = fork();
		if (p == 0)
			run(i);
		waitpid(p, &st, 0);
		if (WEXITSTATUS(st) != 21)
			printf("%d ended with %d\n", i, WEXITSTATUS(st));
	}
	printf("ENOENT %d\n", error(execl("/nowhere", "n", (char *)0)) == ENOENT);
	printf("EACCES %d\n", error(execv("/etc/passwd", argv)) == EACCES);
	printf("ENOTDIR %d\n", error(execv("/etc/passwd/x", argv)) == ENOTDIR);
	printf("path ENOENT %d\n", error(execvp("surely-not-there", argv)) == ENOENT);
	printf("empty %d\n", error(execvp("", argv)) == ENOENT);
	printf("path EFAULT %d\n", error(execve((char *)8, argv, env)) == EFAULT);
	printf("argv EFAULT %d\n", error(execve("/bin/sh", (char **)8, env)) == EFAULT);
	printf("env EFAULT %d\n", error(execve("/bin/sh", argv, (char **)8)) == EFAULT);
	printf("env EFAULT %d\n", error(execve("/bin/sh", argv, bad)) == EFAULT);
	printf("EBADF %d\n", error(fexecve(-1, argv, env)) != 0);
	printf("EBADF %d\n", error(execveat(-1, "x", argv, env, 0)) == EBADF);
	fflush(stdout);
	execle("/bin/sh", "sh", "-c", "echo last $V; exit 4", (char *)0, env);
	return 1;
}

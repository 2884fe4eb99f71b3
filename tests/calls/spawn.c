// posix_spawn with actions and attributes; those that fail.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int ended(pid_t p)
{
	int st = -1;
	waitpid(p, &st, 0);
	return WIFEXITED(st) ? WEXITSTATUS(st) : -WTERMSIG(st);
}

int main(void)
{
	char *const argv[] = {"sh", "-c", "echo spawned $V; exit 9", 0}, *const env[] = {"V=v", 0}, *const none[] = {0};
	posix_spawn_file_actions_t acts;
	posix_spawnattr_t attr;
	sigset_t set;
	pid_t p = -7;
	int i;
	setvbuf(stdout, 0, _IONBF, 0);
	i = posix_spawn(&p, "/bin/sh", 0, 0, argv, env);
	printf("%d %d\n", i, ended(p));
	i = posix_spawnp(&p, "sh", 0, 0, argv, environ);
	printf("%d %d\n", i, ended(p));
	i = posix_spawnp(0, "sh", 0, 0, argv, none);
	while (wait(0) > 0)
		;
	printf("%d\n", i);
	posix_spawn_file_actions_init(&acts);
	posix_spawn_file_actions_addopen(&acts, 1, "out", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	posix_spawn_file_actions_addclosefrom_np(&acts, 3);
	posix_spawnattr_init(&attr);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	posix_spawnattr_setsigmask(&attr, &set);
	posix_spawnattr_setsigdefault(&attr, &set);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
	for (i = 0; i < 3; i++) {
		printf("%d\n", posix_spawn(&p, "/bin/sh", &acts, &attr, argv, env));
		printf("%d\n", ended(p));
	}
	p = -7;
	printf("ENOENT %d", posix_spawn(&p, "/nowhere", 0, 0, argv, env) == ENOENT);
	printf(" pid %d\n", p == -7);
	printf("ENOENT %d\n", posix_spawnp(&p, "surely-not-there", 0, 0, argv, env) == ENOENT);
	printf("EACCES %d\n", posix_spawn(&p, "/etc/passwd", 0, 0, argv, env) == EACCES);
	return 0;
}

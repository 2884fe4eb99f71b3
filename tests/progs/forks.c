// A storm of forks; argv: how many, how many at once, how children end (exit, kill, quiet).
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

int main(int argc, char **argv)
{
	int n = atoi(argv[1]), at_once = atoi(argv[2]), live = 0, bad = 0, i, s;
	for (i = 0; i < n; i++) {
		pid_t pid = fork();
		if (pid < 0) {
			perror("fork");
			return 1;
		}
		if (!pid) {
			if (strcmp(argv[3], "quiet")) {
				pthread_mutex_lock(&m);
				pthread_mutex_unlock(&m);
			}
			if (!strcmp(argv[3], "kill"))
				kill(getpid(), SIGKILL);
			_exit(i & 127);
		}
		if (++live >= at_once) {
			wait(&s);
			live--;
			bad += !strcmp(argv[3], "kill") ? !WIFSIGNALED(s) : !WIFEXITED(s);
		}
	}
	while (wait(&s) > 0)
		;
	printf("%d children, %d went wrong\n", n, bad);
	return 0;
}

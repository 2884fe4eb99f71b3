// Two threads wait for children, one for any: it takes the other's. Guarded: yes (what waits give is recorded), re-executes
// under order alone. Fails: exit status 1, "taken".
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int taken;

static void *any(void *a)
{
	pid_t p = fork();
	if (p == 0)
		_exit(1);
	wait(0);
	return 0;
}

static void *mine(void *a)
{
	for (int i = 0; i < 3; i++) {
		pid_t p = fork();
		if (p == 0)
			_exit(7);
		int s = 0;
		if (waitpid(p, &s, 0) != p || WEXITSTATUS(s) != 7)
			taken++;
	}
	return 0;
}

int main(void)
{
	pthread_t t[2];
	pthread_create(&t[0], 0, any, 0);
	pthread_create(&t[1], 0, mine, 0);
	pthread_join(t[0], 0);
	pthread_join(t[1], 0);
	if (taken) {
		printf("taken %d\n", taken);
		return 1;
	}
	return 0;
}

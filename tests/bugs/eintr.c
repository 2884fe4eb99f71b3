// Two processes, a pipe and a signal: a read that the signal interrupts is taken for the end. Guarded: yes (pipe and
// signal are recorded), re-executes under order alone. Fails: exit status 1, "cut short".
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void on(int s)
{
}

int main(void)
{
	struct sigaction a = {.sa_handler = on};
	int p[2], n = 0;
	char c;
	sigaction(SIGUSR1, &a, 0);
	if (pipe(p))
		return 2;
	if (!fork()) {
		kill(getppid(), SIGUSR1);
		write(p[1], "ab", 2);
		_exit(0);
	}
	close(p[1]);
	usleep(1000); /* the signal has come by now */
	while (read(p[0], &c, 1) == 1)
		n++;
	while (wait(0) < 0)
		;
	if (n != 2)
		printf("cut short\n");
	return n != 2;
}

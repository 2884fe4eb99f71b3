// Signals that come as a write is over, by who read what was written: before the write has returned, yet behind it. Each handler
// writes, too, and uses the number of a descriptor that was just closed.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 300

static int data[2];
static volatile sig_atomic_t handled;
static int one_place; /* whether a signal came as a call was left, or as the next one from there began: only serial runs tell */

static void handler(int sig)
{
	int fd = open("/dev/null", O_RDONLY);
	(void)sig;
	if (fd < 0 || write(data[1], "h", 1) != 1)
		_exit(3);
	close(fd);
	handled++;
}

static int child(void)
{
	struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
	sigaction(SIGUSR1, &a, 0);
	for (int i = 0; i < ROUNDS; i++) {
		if ((one_place || i % 2 ? write(data[1], "w", 1) : write(data[1], "w", sizeof "w" - 1)) != 1)
			return 2;
		while (handled <= i)
			usleep(50);
	}
	return 0;
}

int main(void)
{
	char got[2 * ROUNDS + 1];
	int status, n = 0, first = 0;
	pid_t pid;
	const char *options = getenv("PROPHET_OPTIONS");
	one_place = options && strstr(options, "serial");
	if (pipe(data) != 0 || (pid = fork()) < 0)
		return 1;
	if (pid == 0)
		_exit(child());
	close(data[1]);
	while (n < 2 * ROUNDS && read(data[0], got + n, 1) == 1)
		if (got[n++] == 'w')
			kill(pid, SIGUSR1);
	for (int i = 0; i < n; i += 2)
		first += got[i] == 'w' && got[i + 1] == 'h';
	waitpid(pid, &status, 0);
	printf("%d bytes, %d in order, status %x\n", n, first, status);
	return n == 2 * ROUNDS && first == ROUNDS ? 0 : 1;
}

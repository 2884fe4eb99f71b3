// Signals to processes, groups and oneself.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern int pidfd_open(pid_t pid, unsigned flags);
extern int pidfd_send_signal(int fd, int sig, siginfo_t *si, unsigned flags);
static volatile int hits;

static void handler(int sig)
{
	hits++;
}

static int killed(pid_t p)
{
	int st = 0;
	waitpid(p, &st, 0);
	return WTERMSIG(st);
}

static pid_t sleeper(void)
{
	pid_t p = fork();
	if (p == 0) {
		setpgid(0, 0);
		for (;;)
			pause();
	}
	setpgid(p, p);
	return p;
}

int main(void)
{
	pid_t p;
	int fd;
	signal(SIGUSR1, handler);
	printf("kill %d", kill(getpid(), SIGUSR1));
	printf(" %d\n", hits);
	printf("tgkill %d", tgkill(getpid(), gettid(), SIGUSR1));
	printf(" %d\n", hits);
	printf("raise %d", raise(SIGUSR1));
	printf(" %d\n", hits);
	printf("gsignal %d", gsignal(SIGUSR1));
	printf(" %d\n", hits);
	p = sleeper();
	printf("exists %d\n", kill(p, 0));
	kill(p, SIGTERM);
	printf("%d\n", killed(p));
	printf("gone %d %d\n", kill(p, 0), errno == ESRCH);
	p = sleeper();
	printf("killpg %d", killpg(p, SIGKILL));
	printf(" %d\n", killed(p));
	p = sleeper();
	fd = pidfd_open(p, 0);
	printf("pidfd %d %d", fd >= 0, pidfd_send_signal(fd, SIGKILL, 0, 0));
	printf(" %d\n", killed(p));
	printf("invalid %d %d\n", kill(getpid(), 1000), errno == EINVAL);
	printf("raise %d\n", raise(1000) != 0);
	return 0;
}

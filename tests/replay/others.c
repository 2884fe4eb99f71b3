/* Does things to a process of somebody else: told by its number. Each run lowers its priority by one more. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

extern int pidfd_open(pid_t pid, unsigned flags);
extern int pidfd_send_signal(int fd, int sig, siginfo_t *si, unsigned flags);

int main(int argc, char **argv)
{
	int p = argc > 1 ? atoi(argv[1]) : 0, fd = pidfd_open(p, 0);
	struct pollfd ends = {fd, POLLIN, 0};
	printf("%d %d %ld\n", fd, poll(&ends, 1, 0), syscall(SYS_pidfd_open, p, 0));
	printf("%d %ld\n", kill(p, 0), syscall(SYS_kill, p, 0));
	printf("sent %d\n", pidfd_send_signal(fd, SIGUSR1, 0, 0));
	errno = 0;
	setpriority(PRIO_PROCESS, (id_t)p, getpriority(PRIO_PROCESS, (id_t)p) + 1);
	printf("priority %d, %d\n", getpriority(PRIO_PROCESS, (id_t)p), errno);
	close(fd);
	printf("%d\n", open("/dev/null", O_RDONLY));
	return 0;
}

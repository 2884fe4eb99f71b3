// A handler ends children and computes until it is told of each: what comes from outside, while a re-execution goes instruction by
// instruction to where a signal came, must not make it believe that the handler is over.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int ended, child;
static volatile long sum;

static void chld(int sig)
{
	ended++;
}

static void usr1(int sig)
{
	int was = ended;
	kill(child, SIGTERM);
	for (long k = 0; ended == was && k < 400000000; k++)
		sum += k;
	sum = 0;
	getppid();
}

int main(void)
{
	// No breakpoints of the processor's: there is a trap after each instruction.
	struct sock_filter f[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
				  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
				  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog p = {4, f};
	struct sigaction c = {.sa_handler = chld, .sa_flags = SA_RESTART}, u = {.sa_handler = usr1, .sa_flags = SA_RESTART};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
		return 1;
	sigaction(SIGCHLD, &c, 0);
	sigaction(SIGUSR1, &u, 0);
	for (int i = 0; i < 20; i++) {
		if ((child = fork()) == 0)
			for (;;)
				pause();
		kill(getpid(), SIGUSR1);
		waitpid(child, 0, 0);
	}
	printf("%d ended\n", ended);
	return 0;
}

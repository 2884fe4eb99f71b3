// prctl takes what its option says.
#include <errno.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	char name[16] = "";
	int sig = 0, st = 0;
	printf("%d", prctl(PR_SET_NAME, "renamed"));
	printf(" %d %s\n", prctl(PR_GET_NAME, name), name);
	printf("%d", prctl(PR_SET_PDEATHSIG, SIGUSR1));
	prctl(PR_GET_PDEATHSIG, &sig);
	printf(" %d\n", sig == SIGUSR1);
	printf("dumpable %d\n", prctl(PR_GET_DUMPABLE));
	printf("invalid %d %d\n", prctl(12345, 0, 0, 0, 0), errno == EINVAL);
	printf("EFAULT %d %d\n", prctl(PR_SET_NAME, 8), errno == EFAULT);
	fflush(stdout);
	if (fork() == 0) {
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
		write(1, "strict\n", 7);
		syscall(SYS_exit, 3);
	}
	wait(&st);
	printf("%d %d\n", WIFEXITED(st), WEXITSTATUS(st));
	return 0;
}

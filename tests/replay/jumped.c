// A signal that a handler had blocked comes as the handler jumps out of the call that it interrupted: within the jump, which gives
// the mask back. What its handler does hangs on that.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 20

static sigjmp_buf out;
static volatile sig_atomic_t jumping, within, beside;

static void jumps(int sig)
{
	(void)sig;
	while (jumping < 20000) /* until the child has ended, mostly */
		jumping++;
	siglongjmp(out, 1);
}

static void ended(int sig)
{
	(void)sig;
	if (!jumping) {
		beside++;
		getppid();
	} else {
		within++;
	}
}

int main(void)
{
	struct sigaction a = {.sa_handler = jumps}, b = {.sa_handler = ended};
	sigset_t none, usr1;
	sigemptyset(&none);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, 0); /* but where it is waited for */
	sigaddset(&a.sa_mask, SIGCHLD);
	sigaction(SIGUSR1, &a, 0);
	sigaction(SIGCHLD, &b, 0);
	for (volatile int i = 0; i < ROUNDS; i++) {
		volatile pid_t pid;
		if (sigsetjmp(out, 1) == 0) {
			pid = fork();
			if (pid == 0) {
				usleep(2000);
				kill(getppid(), SIGUSR1);
				_exit(0);
			}
			for (;;)
				sigsuspend(&none);
		}
		jumping = 0;
		while (waitpid(pid, 0, 0) < 0)
			;
	}
	printf("%d rounds\n", ROUNDS);
	fprintf(stderr, "%d within, %d beside\n", within, beside);
	return 0;
}

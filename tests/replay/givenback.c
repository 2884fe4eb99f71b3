/* Handlers that are saved and given back: what the kernel says of them is what it says without us. */
#include <signal.h>
#include <stdio.h>

static void handler(int sig)
{
}

int main(void)
{
	struct sigaction a = {.sa_handler = handler, .sa_flags = SA_NODEFER}, was;
	int sig, i;
	for (sig = 1; sig < 32; sig++) {
		if (sig == SIGKILL || sig == SIGSTOP)
			continue;
		for (i = 0; i < 3; i++) {
			sigaction(sig, &a, &was);
			printf("%d: %x %d\n", sig, (unsigned)was.sa_flags, was.sa_handler == SIG_DFL);
			sigaction(sig, &was, 0);
		}
		signal(sig, handler);
		signal(sig, SIG_DFL);
		sigaction(sig, 0, &was);
		printf("%d: %x %d\n", sig, (unsigned)was.sa_flags, was.sa_handler == SIG_DFL);
	}
	return 0;
}

/* Commands that signal who waits for them in pclose() or system(), or end themselves. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

static volatile int handled;

static void handler(int sig)
{
	handled++;
}

static void piped(const char *command, const char *mode)
{
	int r = pclose(popen(command, mode));
	printf("%d %d %d\n", r, r < 0 ? errno : 0, handled);
}

int main(void)
{
	struct itimerval soon = {{0, 0}, {0, 50000}};
	struct sigaction a = {.sa_handler = handler};
	sigaction(SIGALRM, &a, 0);
	sigaction(SIGUSR1, &a, 0);
	setitimer(ITIMER_REAL, &soon, 0);
	piped("sleep 0.2; exit 5", "r");
	piped("sleep 0.05; kill -USR1 $PPID; sleep 0.05; exit 6", "w");
	piped("kill -USR1 $PPID; exit 7", "w");
	setitimer(ITIMER_REAL, &soon, 0);
	printf("%d\n", system("sleep 0.2; exit 8"));
	printf("%d\n", handled);
	piped("kill -TERM $$", "r");
	piped("kill -KILL $$", "w");
	return 0;
}

// system: results, signals, cancellation, no shell.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int hits;

static void handler(int sig)
{
	hits++;
}

static void *cancelled(void *p)
{
	system("exec sleep 5");
	return 0;
}

static void *runs(void *p)
{
	return (void *)(long)WEXITSTATUS(system("sleep 0.05; exit 3"));
}

int main(void)
{
	struct sigaction a = {0}, was;
	sigset_t set, now;
	pthread_t t[4];
	void *r;
	int i, st, sum = 0;
	setvbuf(stdout, 0, _IONBF, 0);
	printf("shell %d\n", system(0));
	printf("%d\n", WEXITSTATUS(system("echo from sh; exit 7")));
	st = system("kill -9 $$");
	printf("killed %d %d\n", WIFSIGNALED(st), WTERMSIG(st));
	st = system("kill -15 $$");
	printf("killed %d %d\n", WIFSIGNALED(st), WTERMSIG(st));
	printf("missing %d\n", WEXITSTATUS(system("surely-not-there 2>/dev/null")));
	a.sa_handler = handler;
	a.sa_flags = SA_RESTART;
	sigaction(SIGINT, &a, 0);
	sigaction(SIGCHLD, &a, 0);
	st = system("kill -INT $PPID; exit 2"); /* ignored meanwhile */
	printf("int %d hits %d\n", WEXITSTATUS(st), hits);
	sigaction(SIGINT, 0, &was);
	printf("restored %d flags %d\n", was.sa_handler == handler, (was.sa_flags & (SA_RESTART | SA_SIGINFO)) == SA_RESTART);
	raise(SIGINT);
	sigemptyset(&set);
	sigprocmask(SIG_BLOCK, 0, &now);
	printf("hits %d mask %d\n", hits, sigismember(&now, SIGCHLD));
	for (i = 0; i < 4; i++)
		pthread_create(&t[i], 0, runs, 0);
	for (i = 0; i < 4; i++) {
		pthread_join(t[i], &r);
		sum += (int)(long)r;
	}
	sigaction(SIGINT, 0, &was);
	printf("at once %d restored %d\n", sum, was.sa_handler == handler);
	pthread_create(&t[0], 0, cancelled, 0);
	usleep(100000);
	pthread_cancel(t[0]);
	pthread_join(t[0], &r);
	sigaction(SIGINT, 0, &was);
	printf("cancelled %d restored %d\n", r == PTHREAD_CANCELED, was.sa_handler == handler);
	printf("left %d\n", waitpid(-1, 0, WNOHANG) == -1 && errno == ECHILD);
	clearenv();
	printf("cleared %d\n", WEXITSTATUS(system("exit 5")));
	return 0;
}

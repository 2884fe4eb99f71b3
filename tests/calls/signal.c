// The older ways to install a handler.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef void (*fn)(int);
extern fn bsd_signal(int, fn), sysv_signal(int, fn), __sysv_signal(int, fn), ssignal(int, fn), sigset(int, fn);
static volatile int hits;

static void handler(int sig)
{
	hits++;
}

static void second(int sig)
{
	hits += 10;
}

static int flags(int sig)
{
	struct sigaction a;
	sigaction(sig, 0, &a);
	return (a.sa_flags & SA_RESTART ? 1 : 0) + (a.sa_flags & SA_RESETHAND ? 2 : 0) + (a.sa_flags & SA_NODEFER ? 4 : 0) + (a.sa_flags & SA_SIGINFO ? 8 : 0);
}

static void try(const char *name, fn (*set)(int, fn))
{
	fn before = set(SIGUSR1, handler), at = set(SIGUSR1, second);
	printf("%s %d %d flags %d", name, before == SIG_DFL, at == handler, flags(SIGUSR1));
	hits = 0;
	raise(SIGUSR1);
	printf(" hits %d", hits);
	printf(" then %d", set(SIGUSR1, SIG_IGN) == second);
	printf(" ignored %d\n", set(SIGUSR1, SIG_DFL) == SIG_IGN);
}

int main(void)
{
	try("signal", signal);
	try("bsd_signal", bsd_signal);
	try("sysv_signal", sysv_signal);
	try("__sysv_signal", __sysv_signal);
	try("ssignal", ssignal);
	try("sigset", sigset);
	printf("error %d %d\n", signal(SIGKILL, handler) == SIG_ERR, errno == EINVAL);
	printf("error %d %d\n", signal(1000, handler) == SIG_ERR, errno == EINVAL);
	sigset(SIGUSR1, handler);
	printf("sighold %d\n", sighold(SIGUSR1));
	hits = 0;
	raise(SIGUSR1);
	printf("held %d\n", hits);
	printf("was held %d\n", sigset(SIGUSR1, SIG_HOLD) == SIG_HOLD);
	printf("sigrelse %d hits %d\n", sigrelse(SIGUSR1), hits);
	printf("siginterrupt %d flags %d\n", siginterrupt(SIGUSR1, 0), flags(SIGUSR1));
	printf("siginterrupt %d flags %d\n", siginterrupt(SIGUSR1, 1), flags(SIGUSR1));
	raise(SIGUSR1);
	printf("hits %d\n", hits);
	printf("sigignore %d\n", sigignore(SIGUSR1));
	raise(SIGUSR1);
	return 0;
}

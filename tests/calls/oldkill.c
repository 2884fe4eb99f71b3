// pthread_kill as programs linked before glibc 2.34 call it: it says of a thread that has ended that there is none, where
// the newer one says that all went well.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#ifdef __x86_64__
__asm__(".symver old_kill, pthread_kill@GLIBC_2.2.5");
extern int old_kill(pthread_t, int);
#else
static int old_kill(pthread_t t, int sig)
{
	int r = pthread_kill(t, sig);
	return r || sig ? r : ESRCH;
}
#endif

static volatile sig_atomic_t got;
static pthread_barrier_t b;

static void handler(int sig)
{
	got = sig;
}

static void *thread(void *arg)
{
	pthread_barrier_wait(&b);
	return arg;
}

int main(void)
{
	pthread_t t;
	signal(SIGUSR1, handler);
	pthread_barrier_init(&b, 0, 2);
	pthread_create(&t, 0, thread, 0);
	printf("there: %d\n", old_kill(t, SIGURG));
	pthread_barrier_wait(&b);
	while (pthread_kill(t, 0) == 0 && pthread_tryjoin_np(t, 0) == EBUSY)
		usleep(1000);
	pthread_create(&t, 0, thread, 0);
	pthread_barrier_wait(&b);
	for (long i = 0; i < 10000 && old_kill(t, 0) == 0; i++)
		usleep(1000);
	printf("ended: %d %d\n", old_kill(t, 0) == ESRCH, old_kill(t, SIGURG) == ESRCH);
	pthread_join(t, 0);
	printf("self: %d\n", old_kill(pthread_self(), SIGUSR1));
	printf("got: %d\n", got == SIGUSR1);
	printf("wrong: %d\n", old_kill(pthread_self(), 12345) == EINVAL);
	return 0;
}

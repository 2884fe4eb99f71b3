/* Threads that are cancelled while they compute, or in system(). */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long counted;

static void cleaned(void *what)
{
	printf("cleaned up after %s\n", (const char *)what);
	fflush(stdout);
}

static void *computes(void *what)
{
	pthread_cleanup_push(cleaned, what);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
	write(1, "computes\n", 9);
	for (;;)
		counted++;
	pthread_cleanup_pop(0);
	return 0;
}

/* What came meanwhile comes when it may. */
static void *defers(void *what)
{
	int i;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, 0);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
	for (i = 0; i < 30000000; i++)
		counted++;
	printf("counted\n");
	fflush(stdout);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, 0);
	for (;;)
		counted++;
	return what;
}

static void *commands(void *what)
{
	pthread_cleanup_push(cleaned, what);
	printf("%d\n", system(what));
	pthread_cleanup_pop(0);
	return 0;
}

static void cancel(void *(*routine)(void *), void *what, int us)
{
	pthread_t t;
	void *r;
	pthread_create(&t, 0, routine, what);
	usleep(us);
	printf("%d\n", pthread_cancel(t));
	pthread_join(t, &r);
	printf("cancelled %d\n", r == PTHREAD_CANCELED);
}

int main(void)
{
	int r;
	cancel(computes, "computing", 50000);
	cancel(defers, "nothing", 20000);
	cancel(commands, "exec sleep 100", 200000);
	r = waitpid(-1, 0, WNOHANG);
	printf("%d %d\n", r, r < 0 ? errno : 0);
	printf("%d\n", system("exit 3"));
	return 0;
}

// What can be asked of and set for a thread.
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <threads.h>

static int blocked(void)
{
	sigset_t now;
	pthread_sigmask(SIG_SETMASK, 0, &now);
	return sigismember(&now, SIGUSR1) * 10 + sigismember(&now, SIGUSR2);
}

static void *says(void *what)
{
	printf("%s %d\n", (char *)what, blocked());
	return 0;
}

static int says_too(void *what)
{
	says(what);
	return 0;
}

static void make(const pthread_attr_t *a)
{
	pthread_t t;
	thrd_t c;
	pthread_create(&t, a, says, "thread");
	pthread_join(t, 0);
	if (!a) {
		thrd_create(&c, says_too, "C11 thread");
		thrd_join(c, 0);
	}
}

/* Threads begin with their creator's mask, their attribute's, or what is set for those without one. */
static void masks(void)
{
	pthread_attr_t a, was;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, 0);
	pthread_attr_init(&a);
	make(0);
	make(&a);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_attr_setsigmask_np(&a, &set);
	make(0);
	make(&a);
	pthread_getattr_default_np(&was);
	printf("default %d\n", pthread_setattr_default_np(&a));
	make(0);
	pthread_setattr_default_np(&was);
	make(0);
	pthread_attr_destroy(&a);
	pthread_attr_destroy(&was);
}

int main(void)
{
	char name[16] = "";
	struct sched_param p = {0};
	int policy = -1;
	pthread_t me = pthread_self();
	printf("set %d\n", pthread_setname_np(me, "worker"));
	printf("get %d", pthread_getname_np(me, name, sizeof name));
	printf(" %s\n", name);
	printf("long %d\n", pthread_setname_np(me, "a name that is much too long") == ERANGE);
	printf("short %d\n", pthread_getname_np(me, name, 3) == ERANGE);
	printf("getsched %d", pthread_getschedparam(me, &policy, &p));
	printf(" %d %d\n", policy == SCHED_OTHER, p.sched_priority);
	printf("setsched %d\n", pthread_setschedparam(me, SCHED_OTHER, &p));
	p.sched_priority = 50;
	printf("invalid %d\n", pthread_setschedparam(me, SCHED_OTHER, &p) == EINVAL);
	printf("prio %d %d\n", pthread_setschedprio(me, 0), pthread_setschedprio(me, 99) == EINVAL);
	masks();
	return 0;
}

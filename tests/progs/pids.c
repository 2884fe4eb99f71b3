/* Chooses ids of threads and processes from many threads and processes at once, by the library's own code: pids PAGE FIRST [UID]. */
#include "../../shim/pids.c"
#include "../../shim/minlibc.c"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where the page lies does not matter here. */
u64 shim_apart(u64 len)
{
	(void)len;
	return 0;
}

enum { THREADS = 4, EACH = 40 };
static int first, wrong, refused, *ready;

static void *leaf(void *out)
{
	*(int *)out = (int)syscall(SYS_gettid);
	return 0;
}

static void one(u32 want, int fork_it)
{
	int r, got = -1;
	pthread_t th;
	if (shim_pid_want(want) != 0) {
		__atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
		return;
	}
	if (fork_it) {
		pid_t p = fork();
		if (p == 0)
			_exit(0);
		r = shim_pid_done(p);
		waitpid(p, 0, 0);
		got = p;
	} else {
		pthread_create(&th, 0, leaf, &got);
		shim_pid_done(0);
		pthread_join(th, 0);
		r = 1;
	}
	if (!r || got != (int)want)
		__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

static void *work(void *p)
{
	int i, me = (int)(long)p;
	/* Who makes a thread unasked may get the number that another has just chosen. */
	__atomic_fetch_add(ready, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(ready, __ATOMIC_SEQ_CST) < 2 * THREADS)
		usleep(100);
	for (i = 0; i < EACH; i++)
		one((u32)(first + me * EACH + i), i & 1);
	return 0;
}

static void all(int base)
{
	pthread_t th[THREADS];
	long i;
	first = base;
	for (i = 0; i < THREADS; i++)
		pthread_create(&th[i], 0, work, (void *)i);
	for (i = 0; i < THREADS; i++)
		pthread_join(th[i], 0);
}

int main(int argc, char **argv)
{
	int status, base = atoi(argv[2]);
	pid_t p;
	ready = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shim_pid_want(77) != -ENOENT || shim_pids_open(argv[1]) != 0)
		return 1;
	if (argc > 3 && setuid(atoi(argv[3])) != 0)
		return 2;
	if (shim_pid_want(1) != -EINVAL || shim_pid_want(getpid()) != -EEXIST)
		return 3;
	/* What follows unasked, threads of all(), comes far below those that are wanted. */
	if (shim_pid_want(base - 500) != 0 || shim_pid_want(base - 400) != -EDEADLK)
		return 4;
	shim_pid_done(-1);
	p = fork(); /* dies with the lock */
	if (p == 0) {
		shim_pid_want(base - 490);
		_exit(0);
	}
	waitpid(p, 0, 0);
	if (shim_pid_want(base - 300) != 0) /* the lock of a dead one is free again */
		return 5;
	p = fork();
	if (p == 0)
		_exit(0);
	if (!shim_pid_done(p))
		return 6;
	waitpid(p, 0, 0);
	p = fork(); /* two processes at once */
	all(base + (p ? 0 : 1000));
	if (p == 0)
		_exit(wrong * 16 + refused);
	waitpid(p, &status, 0);
	printf("wrong %d, refused %d, in the child %d\n", wrong, refused, WEXITSTATUS(status));
	return 0;
}

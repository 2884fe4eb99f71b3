// Trees of forks; handlers; children that record nothing; a fork from a threaded process.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern pid_t __fork(void);
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int prepared, parents, children;

static void prepare(void)
{
	pthread_mutex_lock(&m);
	prepared++;
	if (write(1, "", 0))
		;
}

static void parent(void)
{
	parents++;
	pthread_mutex_unlock(&m);
}

static void child(void)
{
	children++;
	pthread_mutex_unlock(&m);
}

static int ended(pid_t p)
{
	int st = -1;
	waitpid(p, &st, 0);
	return WIFEXITED(st) ? WEXITSTATUS(st) : -WTERMSIG(st);
}

static int tree(int depth)
{
	int sum = 1, i;
	for (i = 0; depth && i < 2; i++) {
		pid_t p = fork();
		if (p == 0)
			_exit(tree(depth - 1));
		sum += ended(p);
	}
	return sum;
}

static void *busy(void *p)
{
	int over;
	do {
		pthread_mutex_lock(&m);
		over = *(int *)p;
		pthread_mutex_unlock(&m);
	} while (!over);
	return 0;
}

int main(void)
{
	pthread_t t[2];
	volatile int stop = 0;
	pid_t p;
	int i, sum = 0;
	printf("tree %d\n", tree(4));
	p = __fork();
	if (p == 0)
		_exit(5);
	printf("__fork %d\n", ended(p));
	p = _Fork();
	if (p == 0) {
		pthread_mutex_lock(&m);
		_exit(6);
	}
	printf("_Fork %d\n", ended(p));
	p = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (p == 0) {
		pthread_mutex_lock(&m);
		_exit(7);
	}
	printf("raw %d\n", ended(p));
	pthread_atfork(prepare, parent, child);
	fflush(stdout);
	p = fork();
	if (p == 0) {
		printf("child %d %d %d\n", prepared, parents, children);
		exit(8);
	}
	printf("handlers %d %d %d %d\n", ended(p), prepared, parents, children);
	fflush(stdout);
	p = fork();
	if (p == 0)
		syscall(SYS_exit_group, 9);
	printf("silent %d\n", ended(p));
	for (i = 0; i < 2; i++)
		pthread_create(&t[i], 0, busy, (void *)&stop);
	for (i = 0; i < 200; i++) {
		p = fork();
		if (p == 0) {
			pthread_t u;
			int one = 1;
			if (i % 4 == 0) {
				pthread_create(&u, 0, busy, &one);
				pthread_join(u, 0);
			}
			_exit(1);
		}
		sum += ended(p);
	}
	pthread_mutex_lock(&m);
	stop = 1;
	pthread_mutex_unlock(&m);
	for (i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	printf("threaded %d\n", sum);
	return 0;
}

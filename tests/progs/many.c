// Very many threads at once, each with little stack, all with something to record; argv: how many.
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int here, go;

static void *run(void *a)
{
	pthread_mutex_lock(&m);
	here++;
	while (!go)
		pthread_cond_wait(&c, &m);
	pthread_mutex_unlock(&m);
	return 0;
}

int main(int argc, char **argv)
{
	int i, n = atoi(argv[1]), r;
	pthread_t *t = calloc(n, sizeof *t);
	pthread_attr_t a;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, PTHREAD_STACK_MIN + 8192);
	for (i = 0; i < n; i++)
		if ((r = pthread_create(&t[i], &a, run, 0)))
			return printf("thread %d: %s\n", i, strerror(r)), 1;
	pthread_mutex_lock(&m);
	while (here < n) {
		pthread_mutex_unlock(&m);
		usleep(1000);
		pthread_mutex_lock(&m);
	}
	go = 1;
	pthread_cond_broadcast(&c);
	pthread_mutex_unlock(&m);
	for (i = 0; i < n; i++)
		pthread_join(t[i], 0);
	printf("%d threads\n", here);
	return 0;
}

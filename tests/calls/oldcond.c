/* The condition variables that binaries from before 2003 call, where the C library still has them. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#ifdef __x86_64__
#define OLD(ret, name, ...)                                                   \
	__asm__(".symver old_" #name ", pthread_cond_" #name "@GLIBC_2.2.5"); \
	extern ret old_##name(__VA_ARGS__)
#else
#define OLD(ret, name, ...) static ret (*old_##name)() = (void *)pthread_cond_##name
#endif
OLD(int, wait, void *, pthread_mutex_t *);
OLD(int, timedwait, void *, pthread_mutex_t *, const struct timespec *);
OLD(int, signal, void *);
OLD(int, broadcast, void *);
OLD(int, init, void *, const pthread_condattr_t *);
OLD(int, destroy, void *);

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *c[8]; /* the condition is a pointer, and what follows must be left alone */
static int turn;

static void *player(void *who)
{
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&m);
		while (turn % 2 != (long)who)
			old_wait(&c[3], &m);
		turn++;
		if (i & 1)
			old_signal(&c[3]);
		else
			old_broadcast(&c[3]);
		pthread_mutex_unlock(&m);
	}
	return 0;
}

static void *cancelled(void *arg)
{
	pthread_mutex_lock(&m);
	pthread_cleanup_push((void (*)(void *))pthread_mutex_unlock, &m);
	for (;;)
		old_wait(&c[3], &m);
	pthread_cleanup_pop(1);
	return 0;
}

int main(void)
{
	struct timespec past = {1, 0};
	pthread_t th[2];
	void *r;
	printf("init %d\n", old_init(&c[3], 0));
	for (long i = 0; i < 2; i++)
		pthread_create(&th[i], 0, player, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(th[i], 0);
	printf("turns %d\n", turn);
	pthread_mutex_lock(&m);
	printf("timed %s\n", strerror(old_timedwait(&c[3], &m, &past)));
	pthread_mutex_unlock(&m);
	pthread_create(&th[0], 0, cancelled, 0);
	pthread_cancel(th[0]);
	pthread_join(th[0], &r);
	printf("cancelled %d try %d\n", r == PTHREAD_CANCELED, pthread_mutex_trylock(&m));
	printf("destroy %d\n", old_destroy(&c[3]));
	for (int i = 0; i < 8; i++)
		if (i != 3 && c[i])
			printf("word %d was written\n", i);
	return 0;
}

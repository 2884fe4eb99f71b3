/* C11 threads: mutexes, conditions, once, yield. */
#include <stdio.h>
#include <threads.h>
#include <time.h>

static mtx_t m, timed;
static cnd_t c;
static once_flag once = ONCE_FLAG_INIT;
static int turn, runs;

static void run(void)
{
	runs++;
}

static int player(void *who)
{
	call_once(&once, run);
	for (int i = 0; i < 500; i++) {
		mtx_lock(&m);
		while (turn % 2 != (long)who)
			cnd_wait(&c, &m);
		turn++;
		if (i & 1)
			cnd_signal(&c);
		else
			cnd_broadcast(&c);
		mtx_unlock(&m);
		thrd_yield();
	}
	return 0;
}

static int tries(void *arg)
{
	struct timespec t;
	int r;
	r = mtx_trylock(&timed);
	printf("try %s\n", r == thrd_busy ? "busy" : "odd");
	timespec_get(&t, TIME_UTC);
	t.tv_nsec = (t.tv_nsec + 20000000) % 1000000000;
	t.tv_sec -= 1;
	r = mtx_timedlock(&timed, &t);
	printf("timed %s\n", r == thrd_timedout ? "out" : "odd");
	return 0;
}

static int flag;

static int raises(void *arg)
{
	mtx_lock(&m);
	flag = 1;
	cnd_signal(&c);
	mtx_unlock(&m);
	return 0;
}

int main(void)
{
	thrd_t th[2];
	struct timespec t;
	int r;
	printf("init %d %d %d\n", mtx_init(&m, mtx_plain), mtx_init(&timed, mtx_timed | mtx_recursive), cnd_init(&c));
	for (long i = 0; i < 2; i++)
		thrd_create(&th[i], player, (void *)i);
	for (int i = 0; i < 2; i++)
		thrd_join(th[i], 0);
	printf("turns %d runs %d\n", turn, runs);
	mtx_lock(&m);
	thrd_create(&th[0], raises, 0);
	while (!flag) /* cannot be raised before we wait */
		cnd_wait(&c, &m);
	mtx_unlock(&m);
	thrd_join(th[0], 0);
	mtx_lock(&timed);
	printf("again %d\n", mtx_lock(&timed));
	mtx_unlock(&timed);
	thrd_create(&th[0], tries, 0);
	thrd_join(th[0], 0);
	mtx_unlock(&timed);
	timespec_get(&t, TIME_UTC);
	mtx_lock(&m);
	r = cnd_timedwait(&c, &m, &t);
	printf("cnd timed %s\n", r == thrd_timedout ? "out" : "odd");
	mtx_unlock(&m);
	timespec_get(&t, TIME_UTC);
	t.tv_sec += 5;
	printf("free %d try %d\n", mtx_timedlock(&timed, &t), mtx_trylock(&timed));
	mtx_unlock(&timed);
	mtx_unlock(&timed);
	cnd_destroy(&c);
	mtx_destroy(&m);
	mtx_destroy(&timed);
	return 0;
}

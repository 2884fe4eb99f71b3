// A lock made of two flags that are looked at before they are set. Guarded: no, needs --serial. Fails: exit status 1,
// "both inside".
#include <pthread.h>
#include <stdio.h>
#include <stdatomic.h>
#include <time.h>

static atomic_int x, y;
static volatile int in, worst;

static void *f(void *a)
{
	atomic_int *me = a ? &x : &y, *you = a ? &y : &x;
	for (int i = 0; i < 50; i++) {
		struct timespec t;
		if (atomic_load_explicit(you, memory_order_relaxed) == 0) {
			clock_gettime(CLOCK_MONOTONIC, &t);
			atomic_store_explicit(me, 1, memory_order_relaxed);
			in++;
			clock_gettime(CLOCK_MONOTONIC, &t);
			if (in > 1)
				worst++;
			in--;
			atomic_store(me, 0);
		}
	}
	return 0;
}

int main(void)
{
	pthread_t t[2];
	pthread_create(&t[0], 0, f, 0);
	pthread_create(&t[1], 0, f, (void *)1);
	pthread_join(t[0], 0);
	pthread_join(t[1], 0);
	if (worst)
		printf("both inside %d times\n", worst);
	return worst != 0;
}

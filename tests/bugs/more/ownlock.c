// A spin lock of the program's own, held across a call, and a counter that it does not guard. Guarded: no, needs --serial,
// where spinning threads are pre-empted. Fails: exit status 1, "lost".
#include <pthread.h>
#include <stdio.h>
#include <stdatomic.h>
#include <time.h>

static atomic_flag l = ATOMIC_FLAG_INIT;
static int n;
static volatile int m;

static void *f(void *a)
{
	struct timespec t;
	for (int i = 0; i < 3; i++) {
		while (atomic_flag_test_and_set(&l))
			;
		n++;
		clock_gettime(CLOCK_MONOTONIC, &t);
		atomic_flag_clear(&l);
		int k = m;
		clock_gettime(CLOCK_MONOTONIC, &t);
		m = k + 1;
	}
	return 0;
}

int main(void)
{
	pthread_t t[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], 0, f, 0);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	if (m != 9)
		printf("lost %d\n", 9 - m);
	return m != 9;
}

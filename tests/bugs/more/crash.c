// A pointer that is looked at under the lock, and used when another thread has taken it away. Guarded: yes, re-executes
// under order alone. Fails: killed by SIGSEGV, while others go on.
#include <pthread.h>
#include <stdlib.h>
#include <sched.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int *p;
static long n;

static int *get(void)
{
	pthread_mutex_lock(&m);
	int *q = p;
	pthread_mutex_unlock(&m);
	return q;
}

static void *use(void *a)
{
	for (int i = 0; i < 50; i++) {
		if (get()) {
			*get() = i;
		}
	}
	return 0;
}

static void *toggle(void *a)
{
	static int v;
	for (int i = 0; i < 50; i++) {
		pthread_mutex_lock(&m);
		p = i & 1 ? 0 : &v;
		pthread_mutex_unlock(&m);
	}
	return 0;
}

static void *other(void *a)
{
	for (int i = 0; i < 200; i++) {
		pthread_mutex_lock(&m);
		n++;
		pthread_mutex_unlock(&m);
	}
	return 0;
}

int main(void)
{
	static int v;
	p = &v;
	pthread_t t[5];
	for (int i = 0; i < 5; i++)
		pthread_create(&t[i], 0, i < 2 ? use : i < 3 ? toggle : other, 0);
	for (int i = 0; i < 5; i++)
		pthread_join(t[i], 0);
	return 0;
}

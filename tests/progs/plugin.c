// A library that is loaded and unloaded while its constructor, its thread and its destructor call what we intercept.
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_t t;
static int stop;

static void *run(void *a)
{
	for (;;) {
		pthread_mutex_lock(&m);
		int s = stop;
		pthread_mutex_unlock(&m);
		if (s)
			return 0;
	}
}
__attribute__((constructor)) static void begin(void)
{
	write(1, "loaded\n", 7);
	pthread_create(&t, 0, run, 0);
}
__attribute__((destructor)) static void end(void)
{
	pthread_mutex_lock(&m);
	stop = 1;
	pthread_mutex_unlock(&m);
	pthread_join(t, 0);
	write(1, "unloaded\n", 9);
}
int plugin(int x)
{
	pthread_mutex_lock(&m);
	pthread_mutex_unlock(&m);
	return x + 1;
}

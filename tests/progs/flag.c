/* A thread that waits for memory to change, and one that computes. Usage: flag spin|compute. */
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int flag;

static void *sets(void *arg)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	flag = 1;
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;
	if (argc > 1 && !strcmp(argv[1], "compute")) {
		volatile unsigned long n;
		getpid();
		for (n = 0; n < 400000000; n++)
			;
		return write(1, "computed\n", 9) != 9;
	}
	if (pthread_create(&t, 0, sets, 0) != 0)
		return 1;
	while (!flag)
		;
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	pthread_join(t, 0);
	return write(1, "set\n", 4) != 4;
}

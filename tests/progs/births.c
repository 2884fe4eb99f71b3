// Threads or forked children, one after the other, each with an event or two; argv: which, how many.
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *thread(void *arg)
{
	pthread_mutex_lock(&m);
	pthread_mutex_unlock(&m);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;
	for (int i = atoi(argv[2]); i > 0; i--) {
		if (argv[1][0] == 't') {
			pthread_create(&t, 0, thread, 0);
			pthread_join(t, 0);
		} else {
			if (!fork()) {
				getppid();
				_exit(0);
			}
			wait(0);
		}
	}
	return 0;
}

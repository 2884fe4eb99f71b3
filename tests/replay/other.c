// Locks one of two mutexes at last: which, its argument says.
#include <pthread.h>

int main(int argc, char **argv)
{
	pthread_mutex_t m[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
	int i;
	for (i = 0; i < 5; i++) {
		pthread_mutex_lock(&m[i == 0]);
		pthread_mutex_unlock(&m[i == 0]);
	}
	i = argc > 1 && argv[1][0] == '1';
	pthread_mutex_lock(&m[i]);
	pthread_mutex_unlock(&m[i]);
	return 0;
}

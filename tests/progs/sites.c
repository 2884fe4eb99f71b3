/* Places of a program that take turns at one mutex, so that an event's place in its order is not the one that its key predicts: each
 * time one of them has come, the other comes so often. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

int main(void)
{
	static const int often[] = {1, 2, 3, 62, 63, 64, 65, 66, 200, 8189, 8190, 8191, 8192, 8193, 10000};
	long events = 0;
	for (unsigned i = 0; i < sizeof often / sizeof *often; i++)
		for (int round = 0; round < 6; round++) {
			pthread_mutex_lock(&m);
			pthread_mutex_unlock(&m);
			for (int k = 0; k < often[i]; k++) {
				pthread_mutex_lock(&m);
				pthread_mutex_unlock(&m);
			}
			events += 2 + 2 * often[i];
		}
	for (int i = 0; i < 30000; i++) {
		pthread_mutex_lock(&m);
		pthread_mutex_unlock(&m);
		pthread_mutex_lock(&m);
		pthread_mutex_unlock(&m);
		events += 4;
	}
	printf("%ld events\n", events);
	return 0;
}

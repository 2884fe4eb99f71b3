/* More objects than a chunk has keys, used in ways that most events predict: 700 mutexes, locked in growing rings, so
 * that keys of one and of two bytes and keys that lost their place are all met on the quick path. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t all[700];

int main(void)
{
	long events = 0;
	for (int i = 0; i < 700; i++)
		pthread_mutex_init(&all[i], NULL);
	for (int many = 1; many <= 700; many += many < 16 ? 1 : 37)
		for (int round = 0; round < 40; round++)
			for (int i = 0; i < many; i++) {
				pthread_mutex_lock(&all[i]);
				pthread_mutex_unlock(&all[i]);
				events += 2;
			}
	printf("%ld events\n", events);
	return 0;
}

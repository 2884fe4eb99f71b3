// A buffer whose room is looked at before the lock is taken again: it is written past its end, and the heap is broken.
// Guarded: yes, re-executes under order alone. Fails: killed by SIGABRT.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { room = 24 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static char *buffer, *next;
static int used;

static void *add(void *a)
{
	for (int i = 0; i < 3; i++) {
		pthread_mutex_lock(&m);
		int fits = used + 8 <= room;
		pthread_mutex_unlock(&m);
		if (fits) {
			pthread_mutex_lock(&m);
			memset(buffer + used, 0xff, 8);
			used += 8;
			pthread_mutex_unlock(&m);
		}
	}
	return 0;
}

int main(void)
{
	buffer = malloc(room);
	next = malloc(40);
	free(next);
	next = malloc(200);
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], 0, add, 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], 0);
	free(buffer);
	free(next);
	free(malloc(30));
	return 0;
}

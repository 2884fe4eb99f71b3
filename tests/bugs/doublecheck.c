// Double-checked initialisation: the object can be seen, without the lock, before it is filled. Guarded: no, needs
// --serial. Fails: exit status 1, "half an object".
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct object {
	struct timespec born;
	volatile int ready;
};
static struct object *volatile object;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *get(void *a)
{
	if (!object) {
		pthread_mutex_lock(&m);
		if (!object) {
			object = calloc(1, sizeof *object);
			clock_gettime(CLOCK_MONOTONIC, &object->born);
			object->ready = 1;
		}
		pthread_mutex_unlock(&m);
	}
	return (void *)(long)!object->ready;
}

int main(void)
{
	struct timespec now;
	pthread_t t[2];
	void *r;
	int i, failed = 0;
	clock_gettime(CLOCK_MONOTONIC, &now);
	for (i = 0; i < 2; i++)
		pthread_create(&t[i], 0, get, 0);
	for (i = 0; i < 2; i++) {
		pthread_join(t[i], &r);
		failed |= r != 0;
	}
	if (failed)
		printf("half an object\n");
	return failed;
}

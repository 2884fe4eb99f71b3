/* Threads that share a stream and a generator of random numbers, with tries: what comes out is who came when. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *shared;

static void *work(void *p)
{
	int me = (int)(long)p, i;
	for (i = 0; i < 200; i++) {
		long draw = random(), drew = lrand48();
		int got = ftrylockfile(shared);
		if (got == 0) {
			fprintf(shared, "%d got it ", me);
			funlockfile(shared);
		}
		fprintf(shared, "%d drew %ld %ld\n", me, draw, drew);
		if (i % 50 == 0)
			printf("%d at %d\n", me, i);
	}
	return 0;
}

int main(int argc, char **argv)
{
	int i, c, n = argc > 1 ? atoi(argv[1]) : 2;
	unsigned long sum = 0;
	pthread_t t[64];
	shared = fopen("shared", "w+");
	for (i = 0; i < n; i++)
		pthread_create(&t[i], 0, work, (void *)(long)i);
	for (i = 0; i < n; i++)
		pthread_join(t[i], 0);
	rewind(shared);
	while ((c = getc(shared)) != EOF)
		sum = sum * 31 + (unsigned long)c;
	printf("%lx\n", sum);
	return 0;
}

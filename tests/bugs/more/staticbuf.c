// Functions with one buffer for all threads. Guarded: no, needs --serial. Fails: exit status, "bad".
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static volatile int bad;

static void *f(void *a)
{
	for (int k = 0; k < 5 && !bad; k++) {
		char s[40];
		int n = 0;
		struct timespec t;
		strcpy(s, a);
		for (char *p = strtok(s, ","); p; p = strtok(0, ",")) {
			n++;
			if (p < s || p >= s + 40)
				bad = 1;
			clock_gettime(CLOCK_MONOTONIC, &t);
		}
		if (n != 5)
			bad = 1;
	}
	return 0;
}

static void *g(void *a)
{
	for (int k = 0; k < 5 && !bad; k++) {
		time_t x = (long)a;
		struct tm *t = localtime(&x);
		struct timespec ts;
		clock_gettime(CLOCK_MONOTONIC, &ts);
		char *c = asctime(t);
		if (mktime(t) != x)
			bad = 2;
		if (c[0] == 0)
			bad = 3;
	}
	return 0;
}

int main(void)
{
	pthread_t t[4];
	pthread_create(&t[0], 0, f, "a,b,c,d,e");
	pthread_create(&t[1], 0, f, "1,2,3,4,5");
	pthread_create(&t[2], 0, g, (void *)1000000);
	pthread_create(&t[3], 0, g, (void *)2000000000L);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], 0);
	if (bad)
		printf("bad %d\n", bad);
	return bad;
}

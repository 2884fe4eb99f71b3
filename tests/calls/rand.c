/* Random numbers: those that a seed determines are printed; threads draw from one generator, handlers too. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static long sum[4];

static void *draws(void *p)
{
	int i;
	for (i = 0; i < 20000; i++)
		sum[(long)p] += random() & 1023;
	return 0;
}

static void handler(int s)
{
	(void)s;
	lrand48();
}

int main(void)
{
	int i;
	long n, total = 0;
	char state[256], small[8];
	unsigned short x[3] = {1, 2, 3}, p[7] = {1, 2, 3, 4, 5, 6, 7};
	unsigned seed = 5;
	struct random_data rd = {0};
	struct drand48_data dd;
	char rs[64], buf[4096] = {0}, zero[4096] = {0};
	int32_t v;
	double d;
	pthread_t t[4];
	struct sigaction sa = {.sa_handler = handler};
	struct itimerval it = {{0, 200}, {0, 200}};
	printf("%d", rand());
	srand(7);
	printf(" %d %d %d\n", rand(), rand(), rand());
	srandom(8);
	printf("%ld %ld\n", random(), random());
	printf("initstate %d", initstate(9, state, sizeof state) != 0);
	printf(" %ld", random());
	printf(" small %d", initstate(9, small, 4) == 0);
	printf(" setstate %d %ld\n", setstate(state) != 0, random());
	printf("%.17g %ld %ld\n", drand48(), lrand48(), mrand48());
	srand48(77);
	printf("%.17g %ld %ld\n", drand48(), lrand48(), mrand48());
	printf("seed48 %d", seed48(x)[0]);
	printf(" %ld", lrand48());
	lcong48(p);
	printf(" %ld\n", mrand48());
	printf("%d %.17g %ld %ld\n", rand_r(&seed), erand48(x), nrand48(x), jrand48(x));
	printf("initstate_r %d", initstate_r(3, rs, sizeof rs, &rd));
	printf(" srandom_r %d", srandom_r(4, &rd));
	printf(" random_r %d", random_r(&rd, &v));
	printf(" %d", v);
	printf(" setstate_r %d\n", setstate_r(rs, &rd));
	printf("srand48_r %d", srand48_r(6, &dd));
	drand48_r(&dd, &d);
	printf(" %.17g", d);
	lrand48_r(&dd, &n);
	printf(" %ld", n);
	mrand48_r(&dd, &n);
	printf(" %ld", n);
	erand48_r(x, &dd, &d);
	printf(" %.17g", d);
	nrand48_r(x, &dd, &n);
	printf(" %ld", n);
	jrand48_r(x, &dd, &n);
	printf(" %ld", n);
	seed48_r(x, &dd);
	lcong48_r(p, &dd);
	mrand48_r(&dd, &n);
	printf(" %ld\n", n);
	printf("getrandom %zd", getrandom(buf, sizeof buf, 0));
	printf(" %d", memcmp(buf, zero, sizeof buf) != 0);
	printf(" none %zd", getrandom(buf, 0, 0));
	printf(" bad %zd", getrandom(buf, 5, 77));
	printf(" %d", errno);
	printf(" nowhere %zd", getrandom((void *)8, 5, 0));
	printf(" %d\n", errno);
	printf("getentropy %d", getentropy(buf, 16));
	printf(" %d", getentropy(buf, 257));
	printf(" %d\n", errno);
	arc4random();
	arc4random_buf(buf, 100);
	arc4random_buf(buf, 0);
	printf("uniform %u %d\n", arc4random_uniform(1), arc4random_uniform(10) < 10);
	srandom(1);
	for (i = 0; i < 4; i++)
		pthread_create(&t[i], 0, draws, (void *)(long)i);
	for (i = 0; i < 4; i++)
		pthread_join(t[i], 0);
	for (i = 0; i < 4; i++)
		total += sum[i];
	printf("threads together %ld then %ld\n", total, random());
	sigaction(SIGALRM, &sa, 0);
	setitimer(ITIMER_REAL, &it, 0);
	for (i = 0; i < 300000; i++) /* another generator than the handler's: the C library's lock is not one for handlers */
		random();
	memset(&it, 0, sizeof it);
	setitimer(ITIMER_REAL, &it, 0);
	fflush(stdout);
	if (fork() == 0) {
		printf("child %ld\n", random());
		exit(0);
	}
	wait(0);
	printf("parent %ld\n", random());
	return 0;
}

// Changing user, in pairs and for good, in a process with threads: every thread changes, and calls go on.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_barrier_t b;
static void *thread(void *arg)
{
	pthread_barrier_wait(&b);
	pthread_barrier_wait(&b);
	return (void *)(long)syscall(SYS_geteuid);
}

int main(void)
{
	pthread_t t[4];
	void *r;
	int i, bad = 0;
	for (i = 0; i < 1000; i++) {
		bad += seteuid(65534) != 0;
		bad += geteuid() != 65534;
		bad += seteuid(0) != 0;
	}
	printf("pairs %d\n", bad);
	pthread_barrier_init(&b, 0, 5);
	for (i = 0; i < 4; i++)
		pthread_create(&t[i], 0, thread, 0);
	pthread_barrier_wait(&b);
	printf("setuid %d\n", setresuid(65534, 65534, 65534));
	pthread_barrier_wait(&b);
	for (i = 0; i < 4; i++) {
		pthread_join(t[i], &r);
		printf("thread has %ld\n", (long)r);
	}
	struct rlimit l = {1, 1};
	printf("nproc %d\n", setrlimit(RLIMIT_NPROC, &l));
	i = pthread_create(&t[0], 0, thread, 0);
	printf("create %s\n", i ? strerror(i) : "worked");
	for (i = 0; i < 100000; i++)
		bad += write(1, "", 0) != 0;
	printf("end %d\n", bad);
	return bad;
}

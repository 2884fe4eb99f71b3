// Calls in atexit functions and destructors, of the program and of a thread: after main and after all of ours.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void say(const char *s, int n)
{
	pthread_mutex_lock(&m);
	write(1, s, n);
	pthread_mutex_unlock(&m);
}
static void at1(void)
{
	say("at1\n", 4);
}
static void at2(void)
{
	say("at2\n", 4);
	atexit(at1);
}
__attribute__((destructor)) static void d(void)
{
	say("destructor\n", 11);
}
__attribute__((destructor(101))) static void last(void)
{
	say("last\n", 5);
}
static void after(void)
{
	say("fini\n", 5);
}
__attribute__((section(".fini_array"), used)) static void (*fini)(void) = after;

static void *busy(void *arg)
{
	for (;;) {
		pthread_mutex_lock(&m);
		pthread_mutex_unlock(&m);
	}
}

int main(int argc, char **argv)
{
	pthread_t t;
	atexit(at2);
	if (argc > 1)
		pthread_create(&t, 0, busy, 0);
	printf("main\n");
	exit(3);
}

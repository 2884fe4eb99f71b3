// Calls before any constructor: preinit_array of the program comes before all of them.
#include <pthread.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int locked, got, n;

static void pre(int argc, char **argv, char **envp)
{
	struct timespec ts;
	char c;
	int fd = open("/dev/zero", O_RDONLY);
	locked += pthread_mutex_lock(&m) == 0;
	locked += pthread_mutex_trylock(&m) != 0;
	got = read(fd, &c, 1);
	n = clock_gettime(CLOCK_MONOTONIC, &ts);
	pthread_mutex_unlock(&m);
	write(1, "early\n", 6);
	close(fd);
}
__attribute__((section(".preinit_array"), used)) static void (*preinit)(int, char **, char **) = pre;
__attribute__((constructor(101))) static void constructor(void)
{
	write(1, "constructor\n", 12);
}
int earlylib(void);
__attribute__((weak)) int earlylib(void)
{
	return -1;
}

int main(void)
{
	printf("locked %d, read %d, clock %d, lib %d, main can lock: %d\n", locked, got, n, earlylib(), pthread_mutex_lock(&m));
	return 0;
}

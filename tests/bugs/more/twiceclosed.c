// A descriptor that is closed twice; in between its number is another thread's file. Guarded: yes (numbers are recorded),
// re-executes under order alone. Fails: exit status 1, "not mine".
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int bad;

static void *sloppy(void *a)
{
	for (int i = 0; i < 30; i++) {
		int fd = open("/dev/null", O_RDONLY);
		close(fd);
		close(fd);
	}
	return 0;
}

static void *other(void *a)
{
	for (int i = 0; i < 30; i++) {
		int fd = open("/dev/null", O_WRONLY);
		if (write(fd, "x", 1) != 1)
			bad++;
		close(fd);
	}
	return 0;
}

int main(void)
{
	pthread_t t[2];
	pthread_create(&t[0], 0, sloppy, 0);
	pthread_create(&t[1], 0, other, 0);
	pthread_join(t[0], 0);
	pthread_join(t[1], 0);
	if (bad) {
		printf("not mine: %d\n", bad);
		return 1;
	}
	return 0;
}

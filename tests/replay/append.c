// Streams that are opened to append, which the C library asks for their size before they have the number that they had, while other
// threads open and close.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *opens(void *a)
{
	for (int i = 0; i < 400; i++) {
		int fd = open("/dev/null", O_RDONLY);
		if (fd < 0)
			abort();
		close(fd);
	}
	return a;
}

int main(void)
{
	pthread_t t[2];
	char name[] = "/tmp/append-XXXXXX";
	long size = 0;
	int fd = mkstemp(name);
	close(fd);
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], 0, opens, 0);
	for (int i = 0; i < 400; i++) {
		FILE *f = fopen(name, "a");
		if (!f)
			abort();
		fprintf(f, "%d\n", i);
		size += ftell(f);
		fclose(f);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	unlink(name);
	printf("%ld\n", size);
	return 0;
}

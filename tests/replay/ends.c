// Who writes what to one channel, and when: threads that write at will, and children that have made no call at all when the C library
// writes as they end what they printed. The first goes to a pipe that the program inherits, and to one of its own, the second to a file, too.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 6
#define THREADS 4

static int to;

static void *writes(void *which)
{
	char line[64];
	int i, n;
	for (i = 0; i < 10; i++) {
		n = snprintf(line, sizeof line, "thread %ld line %d\n", (long)which, i);
		if (write(to, line, (size_t)n) != n)
			abort();
	}
	return 0;
}

static void threads(void)
{
	pthread_t t[THREADS];
	long i;
	for (i = 0; i < THREADS; i++)
		pthread_create(&t[i], 0, writes, (void *)i);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], 0);
}

/* Each comes back in the child, too, which returns from main. */
static int children(FILE *f)
{
	static char room[1 << 16];
	int i, k;
	setvbuf(f, room, _IOFBF, sizeof room);
	for (i = 0; i < CHILDREN; i++)
		if (fork() == 0) {
			for (k = 0; k < 100 + i * 30; k++)
				fprintf(f, "child %d line %d\n", i, k);
			return 1;
		}
	while (wait(0) > 0)
		;
	return 0;
}

/* What has come, to stdout. */
static void shows(int fd)
{
	static char all[1 << 16];
	ssize_t n = 0, r;
	while (n < (ssize_t)sizeof all && (r = read(fd, all + n, sizeof all - (size_t)n)) > 0)
		n += r;
	if (write(1, all, (size_t)n) != n)
		abort();
}

int main(int argc, char **argv)
{
	int p[2];
	FILE *f;
	if (argc < 3 || pipe(p))
		return 2;
	if (!strcmp(argv[2], "inherited")) {
		to = 1;
		f = stdout;
	} else if (!strcmp(argv[2], "own")) {
		to = p[1];
		f = fdopen(p[1], "w");
	} else {
		f = fopen(argv[2], "w+");
		to = fileno(f);
	}
	if (!strcmp(argv[1], "threads"))
		threads();
	else if (children(f))
		return 0;
	if (to == p[1]) {
		close(p[1]);
		shows(p[0]);
	} else if (to != 1) {
		lseek(to, 0, SEEK_SET);
		shows(to);
	}
	return 0;
}

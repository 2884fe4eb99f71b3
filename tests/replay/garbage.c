// Prints sums of memory that it never set: what calls have left on the stack.
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static __attribute__((noinline)) unsigned garbage(void)
{
	volatile unsigned char b[6000];
	unsigned i, sum = 0;
	for (i = 0; i < sizeof b; i++)
		sum = sum * 31 + b[i];
	return sum;
}

static void *begins(void *sum)
{
	*(unsigned *)sum = garbage();
	usleep(1000);
	return 0;
}

#define LOOK(call)                                            \
	do {                                                  \
		call;                                         \
		sums[n++] = garbage();                        \
		same += strcasecmp("ABCDEFGHIJKLMNOPQRS", a); \
		sums[n++] = garbage();                        \
	} while (0)

int main(void)
{
	unsigned sums[64], n = 0, i;
	char a[64], line[4096], *volatile name = "abcdefghijklmnopqrs";
	int fd, same = 0, pipes[2];
	struct timespec t;
	struct stat st;
	struct addrinfo *list;
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	struct pollfd p = {0};
	pthread_t threads[6];
	strcpy(a, name);
	LOOK(clock_gettime(CLOCK_REALTIME, &t));
	LOOK(time(0));
	LOOK(stat("/etc/passwd", &st));
	fd = open("/etc/passwd", O_RDONLY);
	LOOK(read(fd, line, sizeof line));
	LOOK(close(fd));
	LOOK(getaddrinfo("localhost", "80", 0, &list));
	pthread_mutex_lock(&m);
	pthread_mutex_unlock(&m);
	LOOK(pipe(pipes));
	LOOK(write(pipes[1], a, 9));
	p.fd = pipes[0];
	p.events = POLLIN;
	LOOK(poll(&p, 1, 1000));
	LOOK(read(pipes[0], a, 9));
	LOOK(usleep(100));
	LOOK(getpid());
	LOOK(gethostname(line, sizeof line));
	for (i = 0; i < 6; i++) { /* on stacks that were used, too */
		pthread_create(&threads[i], 0, begins, &sums[n++]);
		if (i % 2)
			pthread_join(threads[i], 0);
	}
	for (i = 0; i < 6; i += 2)
		pthread_join(threads[i], 0);
	for (i = 0; i < n; i++)
		printf("%08x%s", sums[i], i % 8 == 7 ? "\n" : " ");
	printf("%d\n", same);
	return 0;
}

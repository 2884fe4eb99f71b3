// Threads that make and close descriptors of all kinds as fast as they can, so that numbers go from one to the other. Each
// adds up the numbers it got; the kinds' sums are printed. argv: threads, rounds.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

static int rounds;

static void *work(void *arg)
{
	unsigned long sum = 0, seed = (unsigned long)arg;
	int i;
	for (i = 0; i < rounds; i++) {
		int fd[2] = {-1, -1};
		FILE *f = 0;
		switch ((seed = seed * 6364136223846793005ul + 1442695040888963407ul) >> 60) {
		case 0 ... 3:
			fd[0] = open("/dev/null", O_RDONLY);
			break;
		case 4 ... 5:
			pipe(fd);
			break;
		case 6:
			socketpair(AF_UNIX, SOCK_STREAM, 0, fd);
			break;
		case 7:
			fd[0] = eventfd(0, 0);
			break;
		case 8:
			fd[0] = epoll_create1(0);
			break;
		case 9 ... 10:
			fd[0] = dup(0);
			break;
		case 11:
			fd[0] = fcntl(0, F_DUPFD, 5);
			break;
		case 12 ... 13:
			fd[0] = socket(AF_INET, SOCK_DGRAM, 0);
			break;
		default:
			f = fopen("/dev/null", "r");
			sum = sum * 31 + (unsigned long)fileno(f);
			fclose(f);
			continue;
		}
		sum = sum * 31 + (unsigned long)fd[0] * 1000 + (unsigned long)(fd[1] + 1);
		if (seed >> 40 & 1)
			usleep(1);
		close(fd[0]);
		if (fd[1] >= 0)
			close(fd[1]);
	}
	return (void *)sum;
}

int main(int argc, char **argv)
{
	int n = atoi(argv[1]), i;
	pthread_t t[64];
	void *sum;
	rounds = atoi(argv[2]);
	for (i = 0; i < n; i++)
		pthread_create(&t[i], 0, work, (void *)(long)(i + 1));
	for (i = 0; i < n; i++) {
		pthread_join(t[i], &sum);
		printf("%d: %lx\n", i, (unsigned long)sum);
	}
	return 0;
}

// A client asks a server of another process over TCP, both computing a little; what is sent takes its time on a slow link.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ASKED = 64, ANSWER = 32 << 10 };
static char data[ANSWER];
static volatile unsigned long sink;

static void burn(unsigned n)
{
	unsigned long x = n;
	for (unsigned k = 0; k < n; k++)
		x = x * 6364136223846793005ul + 1;
	sink = x;
}

static int whole(int fd, size_t size, int out)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = out ? send(fd, data + done, size - done, MSG_NOSIGNAL) : recv(fd, data + done, size - done, 0);
		if (n <= 0)
			return 1;
		done += (size_t)n;
	}
	return 0;
}

static int serve(int s)
{
	int fd = accept(s, NULL, NULL), one = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	while (!whole(fd, ASKED, 0)) {
		burn(200000);
		if (whole(fd, ANSWER, 1))
			return 1;
	}
	return close(fd);
}

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 100, one = 1, status = 0;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof a;
	int s = socket(AF_INET, SOCK_STREAM, 0);
	if (s < 0 || bind(s, (struct sockaddr *)&a, sizeof a) || listen(s, 1) || getsockname(s, (struct sockaddr *)&a, &len))
		return 1;
	pid_t pid = fork();
	if (!pid)
		_exit(serve(s));
	close(s);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (struct sockaddr *)&a, sizeof a))
		return 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	for (int i = 0; i < times; i++) {
		burn(200000);
		if (whole(fd, ASKED, 1) || whole(fd, ANSWER, 0))
			return 1;
	}
	close(fd);
	waitpid(pid, &status, 0);
	return status != 0;
}

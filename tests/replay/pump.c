// One thread, or process, writes pieces of odd lengths, another has the kernel move them on, and the first of all reads what comes.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEN (300 << 10)

static char data[LEN];
static const char *how;
static int in[2], out[2], file, null;

static int is(const char *what)
{
	return !strcmp(how, what);
}

static long once(long at)
{
	loff_t off = at;
	struct iovec v = {data + at, LEN - at < 20000 ? (size_t)(LEN - at) : 20000};
	long r, left, n;
	if (is("file"))
		return splice(file, &off, out[1], 0, 40000, SPLICE_F_MORE);
	if (is("sendfile"))
		return sendfile(out[1], file, &off, 30000);
	if (is("vmsplice"))
		return at < LEN ? vmsplice(out[1], &v, 1, 0) : 0;
	if (!is("tee"))
		return splice(in[0], 0, out[1], 0, 50000, SPLICE_F_MOVE);
	r = tee(in[0], out[1], 8192, 0);
	for (left = r; left > 0; left -= n)
		if ((n = splice(in[0], 0, null, 0, (size_t)left, 0)) <= 0)
			return -1;
	return r;
}

static void *pump(void *times)
{
	long r, at = 0;
	while ((r = once(at)) > 0) {
		at += r;
		++*(long *)times;
	}
	close(out[1]);
	return 0;
}

static void *feed(void *unused)
{
	long at, r, n, i = 0;
	for (at = 0; at < LEN; at += r) {
		n = 100 + i++ * 7919 % 9000;
		if ((r = write(in[1], data + at, (size_t)(LEN - at < n ? LEN - at : n))) <= 0)
			break;
	}
	close(in[1]);
	return unused;
}

int main(int argc, char **argv)
{
	unsigned long sum = 0, n = 0, seed = 7;
	long i, r, times = 0;
	pthread_t t[2];
	char b[3000];
	how = argv[1];
	signal(SIGPIPE, SIG_IGN);
	for (i = 0; i < LEN; i++)
		data[i] = (char)((seed = seed * 1664525 + 1013904223) >> 24);
	file = memfd_create("pumped", 0);
	null = open("/dev/null", O_WRONLY);
	if (write(file, data, LEN) != LEN || (is("from socket") ? socketpair(AF_UNIX, SOCK_STREAM, 0, in) : pipe(in)) ||
	    (is("to socket") ? socketpair(AF_UNIX, SOCK_STREAM, 0, out) : pipe(out)))
		return 2;
	if (argc > 2) {
		if (fork() == 0) {
			close(in[0]);
			feed(0);
			_exit(0);
		}
		close(in[1]);
		if (fork() == 0) {
			close(out[0]);
			pump(&times);
			_exit(0);
		}
		close(in[0]);
		close(out[1]);
	} else {
		pthread_create(&t[0], 0, feed, 0);
		pthread_create(&t[1], 0, pump, &times);
	}
	while ((r = read(out[0], b, sizeof b)) > 0)
		for (i = 0; i < r; i++, n++)
			sum = sum * 33 + (unsigned char)b[i];
	if (argc > 2) {
		while (wait(0) > 0)
			;
	} else {
		if (is("file") || is("sendfile") || is("vmsplice"))
			close(in[0]); /* who feeds is not read */
		pthread_join(t[0], 0);
		pthread_join(t[1], 0);
	}
	printf("%lu %lx %ld\n", n, sum, times);
	return 0;
}

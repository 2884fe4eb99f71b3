// Two threads ask over one connection, each takes whatever answer comes. Guarded: yes (a stream's order is recorded),
// re-executes under order alone. Fails: exit status 1, "another's answer".
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static int s[2], wrong[2];

static void *serve(void *a)
{
	int q;
	while (read(s[1], &q, sizeof q) == sizeof q) {
		q *= 2;
		write(s[1], &q, sizeof q);
	}
	return 0;
}

static void *ask(void *a)
{
	long me = (long)a;
	for (int i = 0; i < 15; i++) {
		int q = me * 1000 + i, r;
		write(s[0], &q, sizeof q);
		read(s[0], &r, sizeof r);
		if (r != 2 * q)
			wrong[me]++;
	}
	return 0;
}

int main(void)
{
	socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s);
	pthread_t t[3];
	pthread_create(&t[2], 0, serve, 0);
	for (long i = 0; i < 2; i++)
		pthread_create(&t[i], 0, ask, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	shutdown(s[0], SHUT_RDWR);
	pthread_join(t[2], 0);
	if (wrong[0] + wrong[1]) {
		printf("another's answer: %d %d\n", wrong[0], wrong[1]);
		return 1;
	}
	return 0;
}

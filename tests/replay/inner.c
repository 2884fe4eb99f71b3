/* Threads in which the C library opens files by itself: who gets which number is a race that no event tells. */
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#define TURNS 40

static void *users(void *a)
{
	struct passwd p, *r;
	char b[4096];
	for (int i = 0; i < TURNS; i++)
		getpwnam_r("nobody", &p, b, sizeof b, &r);
	return a;
}

static void *groups(void *a)
{
	struct group g, *r;
	char b[4096];
	for (int i = 0; i < TURNS; i++)
		getgrnam_r("nogroup", &g, b, sizeof b, &r);
	return a;
}

static void *services(void *a)
{
	struct servent s, *r;
	char b[4096];
	for (int i = 0; i < TURNS; i++)
		getservbyname_r("domain", "udp", &s, b, sizeof b, &r);
	return a;
}

static void *own(void *sum)
{
	for (int i = 0; i < TURNS; i++) {
		int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		*(int *)sum = *(int *)sum * 7 + fd;
		close(fd);
	}
	return 0;
}

int main(void)
{
	void *(*f[4])(void *) = {users, groups, services, own};
	pthread_t t[4];
	int sum = 0;
	users(0); /* what is looked up once for all */
	groups(0);
	services(0);
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], 0, f[i], &sum);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], 0);
	printf("%d\n", sum);
	return 0;
}

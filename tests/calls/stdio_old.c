#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int bad;
#define CHECK(x) ((x) ? (void)0 : (void)(bad = 1, printf("line %d: %s: errno %d\n", __LINE__, #x, errno)))
#define FAILS(x, e) (errno = 0, (x) == -1 && errno == (e) ? (void)0 : (void)(bad = 1, printf("line %d: %s: not " #e " but %d\n", __LINE__, #x, errno)))

#include <pthread.h>

extern char *gets(char *), *__gets_chk(char *, size_t);

static void *all(void *unused)
{
	char b[64];
	FILE *f = fopen("f", "w");
	fputs("one\ntwo\n", f);
	fclose(f);
	CHECK(freopen("f", "r", stdin) != 0);
	CHECK(gets(b) == b && !strcmp(b, "one"));
	CHECK(__gets_chk(b, sizeof b) == b && !strcmp(b, "two"));
	CHECK(gets(b) == 0);
	printf("old\n");
	return 0;
}

int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, all, 0);
	pthread_join(t, 0);
	return bad;
}

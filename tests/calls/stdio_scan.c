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
#include <stdarg.h>

extern int old_scanf(const char *, ...) __asm__("scanf"), old_fscanf(FILE *, const char *, ...) __asm__("fscanf");
extern int old_vscanf(const char *, va_list) __asm__("vscanf"), old_vfscanf(FILE *, const char *, va_list) __asm__("vfscanf");

static int in(FILE *f, int old, const char *s, ...)
{
	va_list ap;
	int r;
	va_start(ap, s);
	r = f ? (old ? old_vfscanf : vfscanf)(f, s, ap) : (old ? old_vscanf : vscanf)(s, ap);
	va_end(ap);
	return r;
}

static void *all(void *unused)
{
	int n;
	FILE *f = fopen("f", "w+");
	fputs("1 2 3 4 x", f);
	rewind(f);
	CHECK(fscanf(f, "%d", &n) == 1 && old_fscanf(f, "%d", &n) == 1 && in(f, 0, "%d", &n) == 1 && in(f, 1, "%d", &n) == 1 && n == 4);
	CHECK(fscanf(f, "%d", &n) == 0);
	rewind(f);
	CHECK(freopen("f", "r", stdin) != 0);
	CHECK(scanf("%d", &n) == 1 && old_scanf("%d", &n) == 1 && in(0, 0, "%d", &n) == 1 && in(0, 1, "%d", &n) == 1 && n == 4);
	printf("scanned\n");
	return 0;
}

int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, all, 0);
	pthread_join(t, 0);
	return bad;
}

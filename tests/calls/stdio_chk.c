// cflags: -D_FORTIFY_SOURCE=2 -O2
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
#include <wchar.h>

extern char *__fgets_chk(char *, size_t, int, FILE *);
extern wchar_t *__fgetws_chk(wchar_t *, size_t, int, FILE *);
extern size_t __fread_chk(void *, size_t, size_t, size_t, FILE *);
extern int __printf_chk(int, const char *, ...), __fprintf_chk(FILE *, int, const char *, ...), __vprintf_chk(int, const char *, va_list),
    __vfprintf_chk(FILE *, int, const char *, va_list);
extern int __wprintf_chk(int, const wchar_t *, ...), __fwprintf_chk(FILE *, int, const wchar_t *, ...), __vwprintf_chk(int, const wchar_t *, va_list),
    __vfwprintf_chk(FILE *, int, const wchar_t *, va_list);

static void narrow(const char *f, ...)
{
	va_list ap;
	va_start(ap, f);
	__vprintf_chk(1, f, ap);
	va_end(ap);
	va_start(ap, f);
	__vfprintf_chk(stdout, 1, f, ap);
	va_end(ap);
}

static FILE *w;

static void wide(const wchar_t *f, ...)
{
	va_list ap;
	va_start(ap, f);
	__vfwprintf_chk(w, 1, f, ap);
	va_end(ap);
	va_start(ap, f);
	__vwprintf_chk(1, f, ap);
	va_end(ap);
}

static void *all(void *unused)
{
	char b[64];
	wchar_t wb[64];
	FILE *f = fopen("f", "w+");
	CHECK(__fprintf_chk(f, 1, "%d\n%d\n", 1, 2) == 4);
	rewind(f);
	CHECK(__fgets_chk(b, sizeof b, 10, f) == b && __fread_chk(b, sizeof b, 1, 2, f) == 2);
	fclose(f);
	CHECK(__printf_chk(1, "%s\n", "checked") == 8);
	narrow("%d\n", 3);
	fflush(stdout);
	w = fopen("w", "w+");
	CHECK(__fwprintf_chk(w, 1, L"%d\n", 4) == 2);
	CHECK(freopen("out", "w", stdout) != 0);
	CHECK(__wprintf_chk(1, L"%d\n", 5) == 2);
	wide(L"%d\n", 6);
	rewind(w);
	CHECK(__fgetws_chk(wb, 64, 10, w) == wb && wb[0] == L'4');
	return 0;
}

int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, all, 0);
	pthread_join(t, 0);
	return bad;
}

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

/* The names that programs of before C99 have, beside those of today. */
extern int old_wscanf(const wchar_t *, ...) __asm__("wscanf"), old_fwscanf(FILE *, const wchar_t *, ...) __asm__("fwscanf");
extern int old_vwscanf(const wchar_t *, va_list) __asm__("vwscanf"), old_vfwscanf(FILE *, const wchar_t *, va_list) __asm__("vfwscanf");

static void out(FILE *f, const wchar_t *s, ...)
{
	va_list ap;
	va_start(ap, s);
	vfwprintf(f, s, ap);
	va_end(ap);
	va_start(ap, s);
	vwprintf(s, ap);
	va_end(ap);
}

static int in(FILE *f, int old, const wchar_t *s, ...)
{
	va_list ap;
	int r;
	va_start(ap, s);
	r = f ? (old ? old_vfwscanf : vfwscanf)(f, s, ap) : (old ? old_vwscanf : vwscanf)(s, ap);
	va_end(ap);
	return r;
}

static void *all(void *unused)
{
	wchar_t b[64];
	int n;
	FILE *f = fopen("f", "w+");
	CHECK(fputwc(L'a', f) == L'a' && putwc(L'b', f) == L'b' && fputws(L"cd\n", f) >= 0 && fwprintf(f, L"%d %d %d %d\n", 1, 2, 3, 4) == 8);
	rewind(f);
	CHECK(fgetwc(f) == L'a' && getwc(f) == L'b' && ungetwc(L'x', f) == L'x' && fgetws(b, 64, f) == b && !wcscmp(b, L"xcd\n"));
	CHECK(fwscanf(f, L"%d", &n) == 1 && n == 1 && old_fwscanf(f, L"%d", &n) == 1 && n == 2);
	CHECK(in(f, 0, L"%d", &n) == 1 && n == 3 && in(f, 1, L"%d", &n) == 1 && n == 4);
	CHECK(fgetwc(f) == L'\n' && fgetwc(f) == WEOF);
	CHECK(putwchar(L'w') == L'w' && wprintf(L" %d\n", 7) == 3);
	out(f, L"%ls\n", L"both");
	rewind(f);
	CHECK(freopen("f", "r", stdin) && getwchar() == L'a' && fgetws(b, 64, stdin));
	CHECK(wscanf(L"%d", &n) == 1 && old_wscanf(L"%d", &n) == 1 && in(0, 0, L"%d", &n) == 1 && in(0, 1, L"%d", &n) == 1 && n == 4);
	return 0;
}

int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, all, 0);
	pthread_join(t, 0);
	return bad;
}

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

static ssize_t take(void *cookie, const char *b, size_t n)
{
	*(int *)cookie += (int)n;
	return (ssize_t)n;
}

static ssize_t no(void *cookie, char *b, size_t n)
{
	return 0;
}

int main(void)
{
	cookie_io_functions_t io = {.read = no, .write = take};
	int count = 0, fd;
	char b[64];
	FILE *f = fopen("a", "wx"), *g;
	CHECK(f && fileno(f) == 3 && fputs("first", f) >= 0 && fclose(f) == 0);
	CHECK(fopen("a", "wx") == 0 && errno == EEXIST);
	CHECK(fopen("none", "r") == 0 && errno == ENOENT);
	CHECK(fopen("a", "q") == 0 && errno == EINVAL);
	CHECK(fopen((char *)8, "w") == 0 && errno == EFAULT);
	CHECK((f = fopen64("a", "a+e")) && fcntl(fileno(f), F_GETFD) == FD_CLOEXEC && fputs(" more", f) >= 0);
	CHECK((g = freopen("b", "w", f)) == f && fileno(g) == 3 && fputs("other", g) >= 0);
	CHECK(freopen64("a", "r", g) == g && fgets(b, sizeof b, g) && !strcmp(b, "first more"));
	CHECK(freopen(0, "r", g) == g && fgets(b, sizeof b, g) && !strcmp(b, "first more"));
	CHECK(freopen("none", "r", g) == 0);
	CHECK((f = tmpfile()) && fputs("x", f) >= 0 && fclose(f) == 0);
	CHECK((f = tmpfile64()) && fclose(f) == 0);
	fd = open("a", O_RDONLY);
	CHECK((f = fdopen(fd, "r")) && fgetc(f) == 'f' && fclose(f) == 0);
	FAILS(close(fd), EBADF);
	CHECK(fdopen(99, "r") == 0 && errno == EBADF);
	CHECK((f = fopencookie(&count, "r+", io)) && fputs("hello", f) >= 0 && fclose(f) == 0 && count == 5);
	CHECK((f = fopen("a", "r+")) && fputs("F", f) >= 0);
	printf("opened\n");
	CHECK(fcloseall() == 0);
	return bad;
}

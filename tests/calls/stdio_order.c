// cflags: -O0
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

extern int _IO_getc(FILE *), _IO_putc(int, FILE *);
extern ssize_t __getdelim(char **, size_t *, int, FILE *);

static FILE *shared;

static void *writer(void *arg)
{
	for (int i = 0; i < 2000; i++)
		fprintf(shared, "%ld %d\n", (long)arg, i);
	return 0;
}

static void format(const char *f, ...)
{
	va_list ap;
	__builtin_va_start(ap, f);
	vprintf(f, ap);
	__builtin_va_end(ap);
	__builtin_va_start(ap, f);
	vfprintf(stdout, f, ap);
	__builtin_va_end(ap);
}

static void *blocked(void *arg)
{
	char b[8];
	FILE *f = arg;
	fread(b, 1, 8, f); /* never comes; left by cancellation */
	return 0;
}

static void *taken(void *arg)
{
	return (void *)(long)ftrylockfile(arg);
}

static void *all(void *unused)
{
	char b[100] = "", *line = 0;
	size_t n = 0;
	fpos_t at;
	fpos64_t at64;
	FILE *f = fopen("f", "w+");
	CHECK(fwrite("ab", 1, 2, f) == 2 && fputs("cd\n", f) >= 0 && fputc('e', f) == 'e' && putc('f', f) == 'f' && _IO_putc('\n', f) == '\n');
	CHECK(putw(42, f) == 0 && fflush(f) == 0 && fflush(0) == 0);
	rewind(f);
	CHECK(fread(b, 1, 1, f) == 1 && fgetc(f) == 'b' && getc(f) == 'c' && ungetc('c', f) == 'c' && _IO_getc(f) == 'c');
	CHECK(fgets(b, sizeof b, f) == b && !strcmp(b, "d\n"));
	CHECK(getline(&line, &n, f) == 3 && !strcmp(line, "ef\n") && getw(f) == 42 && fgetc(f) == EOF && feof(f) && !ferror(f));
	clearerr(f);
	CHECK(!feof(f) && fseek(f, 0, SEEK_SET) == 0 && getdelim(&line, &n, 'c', f) == 3 && __getdelim(&line, &n, '\n', f) == 2);
	CHECK(ftell(f) == 5 && ftello(f) == 5 && ftello64(f) == 5 && fseeko(f, 1, SEEK_SET) == 0 && fseeko64(f, 2, SEEK_SET) == 0);
	CHECK(fgetpos(f, &at) == 0 && fgetpos64(f, &at64) == 0 && fsetpos(f, &at) == 0 && fsetpos64(f, &at64) == 0 && fgetc(f) == 'c');
	CHECK(setvbuf(f, 0, _IOFBF, 4096) == 0);
	setbuf(f, 0);
	setbuffer(f, b, sizeof b);
	setlinebuf(f);
	flockfile(f);
	CHECK(fputs("x", f) >= 0 && ftrylockfile(f) == 0);
	funlockfile(f);
	{
		pthread_t t;
		void *r;
		pthread_create(&t, 0, taken, f);
		pthread_join(t, &r);
		CHECK(r != 0);
	}
	funlockfile(f);
	CHECK(fclose(f) == 0);
	free(line);
	CHECK(puts("to stdout") >= 0 && putchar('p') == 'p' && putchar('\n') == '\n' && printf("%d %s\n", 5, "five") == 7);
	format("%s %d\n", "twice", 2);
	CHECK(getchar() == EOF);
	errno = ENOENT;
	perror("as it should be");
	errno = ENOENT;
	printf("%m\n");
	return 0;
}

int main(void)
{
	pthread_t t[4];
	char b[100];
	int i, n = 0, p[2];
	FILE *f;
	shared = fopen("shared", "w+");
	for (i = 0; i < 4; i++)
		pthread_create(&t[i], 0, writer, (void *)(long)i);
	for (i = 0; i < 4; i++)
		pthread_join(t[i], 0);
	rewind(shared);
	while (fgets(b, sizeof b, shared))
		n++;
	printf("%d lines\n", n);
	fclose(shared);
	pthread_create(&t[0], 0, all, 0);
	pthread_join(t[0], 0);
	pipe(p);
	f = fdopen(p[0], "r");
	pthread_create(&t[0], 0, blocked, f);
	usleep(20000);
	pthread_cancel(t[0]);
	pthread_join(t[0], 0);
	CHECK(ftrylockfile(f) == 0); /* it was given back */
	funlockfile(f);
	write(p[1], "12345678", 8);
	CHECK(fread(b, 1, 8, f) == 8);
	fclose(f);
	return bad;
}

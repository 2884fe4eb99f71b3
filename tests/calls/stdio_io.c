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

int main(void)
{
	char b[100];
	FILE *f = fopen("f", "w+");
	int i;
	for (i = 0; i < 3000; i++)
		fprintf(f, "line %d\n", i);
	rewind(f);
	for (i = 0; fgets(b, sizeof b, f); i++)
		;
	CHECK(i == 3000);
	CHECK(fseek(f, 5000, SEEK_SET) == 0 && fgets(b, sizeof b, f));
	CHECK(fclose(f) == 0);
	f = fopen("/dev/full", "w");
	setvbuf(f, 0, _IONBF, 0);
	errno = 0;
	CHECK(fputs("x", f) == EOF && errno == ENOSPC && ferror(f));
	fclose(f);
	f = fopen("f", "r");
	CHECK(close(fileno(f)) == 0 && fgetc(f) == EOF && errno == EBADF);
	CHECK(fclose(f) == EOF && errno == EBADF);
	f = fopen("f", "rm");
	CHECK(f && fgets(b, sizeof b, f) && !strcmp(b, "line 0\n") && fclose(f) == 0);
	CHECK(dprintf(1, "straight to %d\n", 1) == 14);
	printf("at the end, from a buffer\n");
	return bad;
}

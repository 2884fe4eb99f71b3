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

extern ssize_t __readlink_chk(const char *, char *, size_t, size_t), __readlinkat_chk(int, const char *, char *, size_t, size_t);
extern char *__realpath_chk(const char *, char *, size_t), *__getcwd_chk(char *, size_t, size_t);

static void make(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
}

int main(void)
{
	char b[PATH_MAX], c[PATH_MAX], *p;
	int dir = open(".", O_RDONLY | O_DIRECTORY), old;
	CHECK(umask(027) != 07777 && umask(022) == 027);
	make("a", "A");
	CHECK(rename("a", "b") == 0 && renameat(dir, "b", AT_FDCWD, "c") == 0 && renameat2(dir, "c", dir, "d", RENAME_NOREPLACE) == 0);
	make("e", "E");
	FAILS(renameat2(dir, "e", dir, "d", RENAME_NOREPLACE), EEXIST);
	CHECK(rename("e", "d") == 0);
	FAILS(rename("none", "d"), ENOENT);
	FAILS(rename((char *)8, "d"), EFAULT);
	FAILS(rename("d", (char *)8), EFAULT);
	CHECK(link("d", "h") == 0 && linkat(dir, "d", dir, "i", 0) == 0);
	FAILS(link("d", "h"), EEXIST);
	CHECK(symlink("d", "s") == 0 && symlinkat("i", dir, "t") == 0);
	memset(b, 0, sizeof b);
	CHECK(readlink("s", b, sizeof b) == 1 && *b == 'd' && readlinkat(dir, "t", b, sizeof b) == 1 && *b == 'i');
	CHECK(__readlink_chk("s", b, 10, sizeof b) == 1 && __readlinkat_chk(dir, "t", b, 10, sizeof b) == 1);
	FAILS(readlink("d", b, sizeof b), EINVAL);
	FAILS(readlink("s", (char *)8, 10), EFAULT);
	CHECK(unlink("s") == 0 && unlinkat(dir, "t", 0) == 0 && remove("i") == 0);
	FAILS(unlink("s"), ENOENT);
	FAILS(unlink(0), EFAULT);
	CHECK(mkdir("dir", 0700) == 0 && mkdirat(dir, "dir/in", 0755) == 0);
	FAILS(mkdir("dir", 0700), EEXIST);
	FAILS(rmdir("dir"), ENOTEMPTY);
	CHECK(chdir("dir/in") == 0 && getcwd(b, sizeof b) && !strcmp(strrchr(b, '/'), "/in"));
	CHECK(__getcwd_chk(c, sizeof c, sizeof c) == c && !strcmp(b, c));
	errno = 0;
	CHECK(getcwd(b, 2) == 0 && errno == ERANGE);
	CHECK((p = getcwd(0, 0)) && !strcmp(p, c));
	free(p);
	CHECK((p = get_current_dir_name()) && !strcmp(p, c));
	free(p);
	CHECK(realpath("..", b) == b && !strcmp(strrchr(b, '/'), "/dir"));
	CHECK(__realpath_chk("../..", b, sizeof b) == b);
	CHECK((p = realpath(".", 0)) && !strcmp(p, c));
	free(p);
	CHECK((p = canonicalize_file_name("./.././in")) && !strcmp(p, c));
	free(p);
	CHECK(realpath("none/x", b) == 0 && errno == ENOENT);
	CHECK(realpath(0, b) == 0 && errno == EINVAL);
	CHECK(fchdir(dir) == 0 && rmdir("dir/in") == 0 && unlinkat(dir, "dir", AT_REMOVEDIR) == 0);
	FAILS(chdir("dir"), ENOENT);
	FAILS(fchdir(99), EBADF);
	CHECK(mkfifo("p", 0600) == 0 && mkfifoat(dir, "q", 0600) == 0 && mknod("r", S_IFIFO | 0600, 0) == 0 && mknodat(dir, "o", S_IFREG | 0600, 0) == 0);
	CHECK(remove("p") == 0 && remove("q") == 0 && remove("r") == 0 && remove("o") == 0);
	FAILS(remove("p"), ENOENT);
	/* A file that is gone by name and open still has no links. */
	make("gone", "xyz");
	{
		struct stat st;
		old = open("gone", O_RDWR);
		CHECK(unlink("gone") == 0 && fstat(old, &st) == 0 && st.st_nlink == 0);
	}
	printf("named\n");
	return bad;
}

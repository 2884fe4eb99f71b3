/* Stand-ins for what opens a file by its name. It is really opened, as the world has it, and gets the number that it had.
 *
 * The kernel's own files (/proc) are the exception: which of them there are, and who may open them, is the machine's.
 * Processes outside of the run are not in the world at all, but what was read of them is in the trace. So where such
 * a file cannot be opened now, or could not be then, the trace is right: another file of the kernel's holds the number,
 * and all that is asked of it is answered from the trace.
 */
#include "channel.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdlib.h>

int __open(const char *path, int flags, ...);
int __open64(const char *path, int flags, ...);
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);

static const char proc[] = "/proc/", a_file[] = "/proc/version", a_dir[] = "/proc/tty", no_file[] = "/proc/0";

static int is_proc(int dirfd, const char *path)
{
	struct statfs fs;
	if (*path == '/')
		return shim_starts(path, proc) != 0;
	return (dirfd == AT_FDCWD ? sys(SYS_statfs, ".", &fs) : sys(SYS_fstatfs, dirfd, &fs)) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* Whether it was refused for what its name leads to, which says that the name can be read. */
static int refused(const struct expect *x)
{
	return x->ret == -EACCES || x->ret == -EPERM || x->ret == -ENOENT || x->ret == -ESRCH;
}

/* Whether a name of the kernel's is a directory of a process: its number, or one in it. */
static int is_dir(const char *path)
{
	static const char *const dirs[] = {"task", "fd", "fdinfo", "ns", "net", "attr", "map_files"};
	const char *last = path, *p;
	u32 i;
	for (p = path; *p; p++)
		if (*p == '/' && p[1])
			last = p + 1;
	for (p = last; *p >= '0' && *p <= '9'; p++)
		;
	if (p > last && (!*p || *p == '/'))
		return 1;
	for (i = 0; i < sizeof dirs / sizeof *dirs; i++)
		if (shim_same(last, dirs[i]))
			return 1;
	return 0;
}

/* Opening gave r: another where it failed and had not. */
static int instead(int r, int dirfd, const char *path, int flags)
{
	if (likely(r >= 0) || (flags & O_ACCMODE) != O_RDONLY || flags & O_CREAT || !is_proc(dirfd, path))
		return r;
	r = (int)sys(SYS_openat, AT_FDCWD, flags & O_DIRECTORY || is_dir(path) ? a_dir : a_file, flags, 0);
	if (r < 0) {
		errno = -r;
		return -1;
	}
	return r;
}

/* What failed does so again at once. */
#define OPENS(name, dir, args)                      \
	struct expect *x = shim_re_of(CALL_##name); \
	if (!x)                                     \
		return TRUE(name) args;             \
	if (x->ret < 0)                             \
		return (int)shim_re_ret(x);         \
	shim_re_fd_turn(x->ret);                    \
	return shim_re_fd(instead(TRUE(name) args, dir, path, flags), x->ret)

#define OPEN(name)                                                           \
	static int re_##name(const char *path, int flags, ...)               \
	{                                                                    \
		SHIM_MODE(flags) OPENS(name, AT_FDCWD, (path, flags, mode)); \
	}                                                                    \
	STANDIN(name, re_##name)
OPEN(open)
OPEN(open64)
OPEN(__open)
OPEN(__open64)

#define OPENAT(name)                                                             \
	static int re_##name(int dirfd, const char *path, int flags, ...)        \
	{                                                                        \
		SHIM_MODE(flags) OPENS(name, dirfd, (dirfd, path, flags, mode)); \
	}                                                                        \
	STANDIN(name, re_##name)
OPENAT(openat)
OPENAT(openat64)

#define OPEN_2(name, params, args, dir) \
	static int re_##name params     \
	{                               \
		OPENS(name, dir, args); \
	}                               \
	STANDIN(name, re_##name)
OPEN_2(__open_2, (const char *path, int flags), (path, flags), AT_FDCWD)
OPEN_2(__open64_2, (const char *path, int flags), (path, flags), AT_FDCWD)
OPEN_2(__openat_2, (int dirfd, const char *path, int flags), (dirfd, path, flags), dirfd)
OPEN_2(__openat64_2, (int dirfd, const char *path, int flags), (dirfd, path, flags), dirfd)

/* A stream's descriptor is a field of it. */
static FILE *stream(const struct expect *x, FILE *f)
{
	if (f && x->ret > 0)
		f->_fileno = shim_re_fd(f->_fileno, (i64)feed_tail(x, 0));
	return f;
}

#define STREAM(name, params, args, how)                        \
	static FILE *re_##name params                          \
	{                                                      \
		struct expect *x = shim_re_of(CALL_##name);    \
		if (!x)                                        \
			return TRUE(name) args;                \
		if (shim_re_again(x)) {                        \
			shim_re_ret(x);                        \
			return 0;                              \
		}                                              \
		if (x->ret > 0)                                \
			shim_re_fd_turn((i64)feed_tail(x, 0)); \
		return stream(x, how);                         \
	}                                                      \
	STANDIN(name, re_##name)

/* The C library has allocated the stream before it learns that there is no such file. */
static FILE *named(const struct expect *x, FILE *(*real)(const char *, const char *), const char *path, const char *mode)
{
	FILE *f;
	if (refused(x) && is_proc(AT_FDCWD, path)) {
		real(no_file, mode);
		shim_re_ret(x);
		return 0;
	}
	f = real(path, mode);
	return f || x->ret <= 0 || *mode != 'r' || !is_proc(AT_FDCWD, path) ? f : real(a_file, mode);
}

STREAM(fopen, (const char *path, const char *mode), (path, mode), named(x, TRUE(fopen), path, mode))
STREAM(fopen64, (const char *path, const char *mode), (path, mode), named(x, TRUE(fopen64), path, mode))
STREAM(tmpfile, (void), (), TRUE(tmpfile)())
STREAM(tmpfile64, (void), (), TRUE(tmpfile64)())

static DIR *re_opendir(const char *path)
{
	struct expect *x = shim_re_of(CALL_opendir);
	DIR *d;
	if (x && refused(x) && is_proc(AT_FDCWD, path)) {
		shim_re_ret(x);
		return 0;
	}
	d = TRUE(opendir)(path);
	return d || !x || x->ret <= 0 || !is_proc(AT_FDCWD, path) ? d : TRUE(opendir)(a_dir);
}
STANDIN(opendir, re_opendir)

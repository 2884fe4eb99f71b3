/* Helpers of the steps `obj`, `input`, `pre`, `do` and `post` of Rec (cabi/calls.go) for descriptors and files: what
 * comes to be, what goes, what is kept before it changes, and results in a form that is the same on all machines.
 */
#ifndef SHIM_STEPS_DISK_H
#define SHIM_STEPS_DISK_H

#include "wrap.h"
#include "keep.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <pty.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <stdio.h>
#include <termios.h>
#include <utime.h>

/* Flags of open as amd64 numbers them. */
static inline u64 shim_open_flags(u64 f)
{
	u64 known = (u64)(O_DIRECT | (O_DIRECTORY) | O_NOFOLLOW | SHIM_O_LARGEFILE);
	return (f & ~known) | (f & O_DIRECT ? 040000u : 0) | (f & SHIM_O_LARGEFILE ? 0100000u : 0) | (f & (O_DIRECTORY) ? 0200000u : 0) |
	       (f & O_NOFOLLOW ? 0400000u : 0);
}

static inline int shim_opens_with_mode(int flags)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

/* The mode of a function of last, …: passed, or not to be read. Its file includes stdarg.h. */
#define SHIM_MODE(last)                              \
	mode_t mode = 0;                             \
	if (shim_opens_with_mode(flags)) {           \
		va_list ap;                          \
		va_start(ap, last);                  \
		mode = (mode_t)va_arg(ap, unsigned); \
		va_end(ap);                          \
	}

static inline int shim_opens_to_write(int flags)
{
	return !(flags & O_PATH) && ((flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC);
}

/* The directory that a path is relative to; none for the current one. */
static inline u64 shim_obj_dirfd(struct thr *t, int fd)
{
	return fd == AT_FDCWD ? 0 : shim_obj_fd(t, fd);
}

/* post newfd r: the call made a descriptor, and its event says which. */
static inline void shim_post_newfd(struct ev *e, i64 fd)
{
	if (fd >= 0)
		shim_fd_new(e->t, (int)fd, "");
}

/* post opened r FLAGS: newfd, and what is kept of a file that is open for writing. */
static inline void shim_post_opened(struct ev *e, int fd, int flags)
{
	if (fd < 0)
		return;
	shim_fd_new(e->t, fd, "");
	if (shim_opens_to_write(flags))
		shim_keep_opened(e->t, fd, flags);
	if (unlikely(e->t->ours))
		shim_ours(e->t, e->end);
}

static inline void shim_pre_opens(struct ev *e, int dirfd, const char *path, int flags)
{
	if (likely(!(flags & (O_TRUNC | O_CREAT))) || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		return;
	if (flags & O_TRUNC)
		shim_keep_before(e->t, dirfd, path, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0, 0);
	else
		shim_keep_empty(e->t, dirfd, path, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0);
	shim_began(e);
}

/* pre keepname DIRFD PATH: the name goes, or becomes another file's. pre keeppath PATH, pre keepfd FD: it is cut. */
static inline void shim_pre_keepname(struct ev *e, int dirfd, const char *path)
{
	shim_keep_before(e->t, dirfd, path, AT_SYMLINK_NOFOLLOW, 1);
	shim_began(e);
}

static inline void shim_pre_keeppath(struct ev *e, const char *path)
{
	shim_keep_before(e->t, AT_FDCWD, path, 0, 0);
	shim_began(e);
}

static inline void shim_pre_keepfd(struct ev *e, int fd)
{
	shim_keep_fd(e->t, fd);
	shim_began(e);
}

/* pre keepattr FD PATH ATFLAGS: mode, owner or times change. */
static inline void shim_pre_keepattr(struct ev *e, int fd, const char *path, int at_flags)
{
	shim_keep_attributes(e->t, fd, path, at_flags & AT_SYMLINK_NOFOLLOW);
	shim_began(e);
}

/* The call got a lock of the file: its place in the order of them. e->obj, the descriptor, moves to f3. */
HIDDEN void shim_file_locked(struct ev *e, int fd);

static inline void shim_post_locked(struct ev *e, i64 r, int fd)
{
	(void)e;
	if (r == 0)
		shim_keep_locked(fd);
}

/* The name of an attribute: where the path was refused, older kernels had not looked at it. */
static inline const char *shim_attribute(i64 r, const char *name)
{
	if (r >= 0 || errno == ENODATA || errno == ENOTSUP || errno == ERANGE || (name && shim_readable(name, 1)))
		return name;
	return "";
}

/* An offset that the call moved, when it succeeded. */
static inline i64 shim_offset(i64 r, const off_t *at)
{
	return r >= 0 && at ? *at : -1;
}

/* struct stat and struct stat64 are the same on the machines that we know. */
#define STAT(st) ((struct stat *)(void *)(st))
#define STATFS(st) ((const struct statfs *)(const void *)(st))
#define STATVFS(st) ((const struct statvfs *)(const void *)(st))
_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one struct stat");

static inline void shim_pre_keepover(struct ev *e, int dirfd, const char *path, unsigned flags)
{
	if (!(flags & (RENAME_EXCHANGE | RENAME_NOREPLACE)))
		shim_pre_keepname(e, dirfd, path);
}

static inline void shim_post_newpair(struct ev *e, i64 r, const int *a, const int *b)
{
	if (r == 0) {
		shim_post_newfd(e, *a);
		shim_post_newfd(e, *b);
	}
}

/* Times asked for, in ns; 0 for now, ~0 for one to be left alone. Read only when the kernel has. */
static inline u64 shim_utime(i64 r, const struct utimbuf *t, int i)
{
	return r == 0 && t ? (u64)(i ? t->modtime : t->actime) * 1000000000u : 0;
}

static inline u64 shim_utimes(i64 r, const struct timeval *t, int i)
{
	return r == 0 && t ? (u64)t[i].tv_sec * 1000000000u + (u64)t[i].tv_usec * 1000u : 0;
}

static inline u64 shim_utimens(i64 r, const struct timespec *t, int i)
{
	if (r != 0 || !t || t[i].tv_nsec == UTIME_NOW)
		return 0;
	return t[i].tv_nsec == UTIME_OMIT ? ~0ull : (u64)t[i].tv_sec * 1000000000u + (u64)t[i].tv_nsec;
}

HIDDEN void shim_input_stat(struct ev *e, i64 r, struct stat *st); /* device and inode may become those that the program knows: family.h */
HIDDEN void shim_input_statx(struct ev *e, i64 r, struct statx *st);
HIDDEN void shim_input_statfs(struct ev *e, i64 r, const struct statfs *st);
HIDDEN void shim_input_statvfs(struct ev *e, i64 r, const struct statvfs *st);
HIDDEN void shim_input_text(struct ev *e, const void *text, i64 n); /* n bytes, or what fits */
HIDDEN void shim_input_cstr(struct ev *e, const char *text); /* up to its NUL; may be NULL */
HIDDEN void shim_input_flock(struct ev *e, const struct flock *l);
HIDDEN void shim_input_dirent(struct ev *e, const struct dirent64 *d);

/* The C library's own table by name of the DIR's descriptor. */
HIDDEN int shim_dir_fd(DIR *d);

static inline void shim_post_newdir(struct ev *e, DIR *d)
{
	if (d)
		shim_fd_new(e->t, shim_dir_fd(d), "");
}

/* do statted r FD STAT: the program has asked what we would have asked when data first comes through. */
static inline void shim_do_statted(struct ev *e, i64 r, int fd, const struct stat *st)
{
	struct fdinfo *i = r == 0 ? shim_fdinfo(fd) : 0;
	(void)e;
	if (i && i->obj && i->kind == FD_UNKNOWN)
		shim_fd_is(fd, st);
}

#endif

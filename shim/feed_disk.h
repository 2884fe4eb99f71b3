/* The inverse of what steps_disk.c writes: results of calls on files, given back to the caller. Each returns whether the
 * trace has all of it.
 */
#ifndef SHIM_FEED_DISK_H
#define SHIM_FEED_DISK_H

#include "replay.h"
#include "wrap_all.h"

HIDDEN void feed_stat(const struct expect *x, void *st, int dirfd, const char *path, int flags); /* of that file, or descriptor */
HIDDEN void feed_statx(const struct expect *x, struct statx *st, int dirfd, const char *path, int flags);
HIDDEN void feed_statfs(const struct expect *x, void *st);
HIDDEN void feed_statvfs(const struct expect *x, void *st);
HIDDEN int feed_text(const struct expect *x, void *buf, u64 room); /* 0: the trace has not all of it */
HIDDEN char *feed_cstr(const struct expect *x, char *buf, u64 room); /* buf NULL: in memory of the program's; NULL: not in the trace */
HIDDEN char *feed_cwd(const struct expect *x, char *buf, u64 room); /* of getcwd */
HIDDEN void feed_flock(const struct expect *x, struct flock *l);
HIDDEN int feed_dirent(const struct expect *x, struct dirent64 *d);

/* Flags of open as this machine numbers them: the inverse of shim_open_flags. */
static inline int feed_open_flags(u64 f)
{
	u64 known = 040000u | 0100000u | 0200000u | 0400000u;
	return (int)((f & ~known) | (f & 040000u ? O_DIRECT : 0) | (f & 0100000u ? SHIM_O_LARGEFILE : 0) | (f & 0200000u ? O_DIRECTORY : 0) |
		     (f & 0400000u ? O_NOFOLLOW : 0));
}

#endif

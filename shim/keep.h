/* Which files the run has written, and what they held before: so that the run can start from it again.
 *
 * A file is known from the moment the run creates it, or opens it for writing, truncates, replaces or removes it; the
 * set of known files is in the control mapping, shared by all processes of the run, one word a file, added to by
 * compare-and-exchange and never taken from. Who adds an existing file keeps its content, in the trace's directory
 * kept/, before it can change: so a file that the run opened for writing and that has no KEPT was made by the run. Nothing here may make the program fail: what cannot be kept is said in the trace.
 *
 * Transient descriptors are taken with signals blocked, and never of a file through which this process holds a POSIX
 * lock, as closing them would drop the lock.
 */
#ifndef SHIM_KEEP_H
#define SHIM_KEEP_H

#include "thread.h"

struct stat;

HIDDEN u64 shim_file_id(u64 dev, u64 ino);
HIDDEN int shim_file_known(u64 id);
HIDDEN int shim_file_add(u64 id); /* 1: was not known; 0: known; -1: no room */

HIDDEN u32 shim_files_known(void); /* how many */

static inline int shim_keeping(void)
{
	return shim_ctl.inputs && shim_ctl.level & 1u << CLASS_disk && shim_run.state == RUN_ON;
}

HIDDEN void shim_keep_before(struct thr *t, int dirfd, const char *path, int at_flags, int gone); /* it may be truncated, or its name go */
HIDDEN void shim_keep_empty(struct thr *t, int dirfd, const char *path, int at_flags); /* may be opened, or made */
HIDDEN void shim_keep_attributes(struct thr *t, int fd, const char *path, int at_flags); /* mode, owner or times change; path NULL: of fd itself */
HIDDEN void shim_keep_opened(struct thr *t, int fd, int flags); /* for writing, just now */
HIDDEN void shim_keep_fd(struct thr *t, int fd); /* will be changed through fd */
HIDDEN void shim_keep_locked(int fd); /* a POSIX lock was taken through it */

#endif

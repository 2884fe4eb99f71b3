/* Calls that open a file: mode is read only where the flags say that it was passed, what the call may cut is kept
 * before it, and the new descriptor becomes known after.
 */
#include "wrap_all.h"
#include <stdarg.h>

struct opening {
	int dirfd, flags;
	mode_t mode;
	const char *path;
};

static void before(struct ev *e, const struct opening *o)
{
	shim_pre_opens(e, o->dirfd, o->path, o->flags);
}

static void after(struct ev *e, const struct opening *o, int r)
{
	shim_end(e, WRAP_BLOCK);
	e->ret = shim_ret_errno(r);
	e->obj = shim_obj_dirfd(e->t, o->dirfd);
	e->f1 = shim_open_flags((u64)(u32)o->flags);
	e->f2 = o->mode;
	shim_tail_text(e, o->path, PART_PATH);
	shim_done(e);
	shim_post_opened(e, r, o->flags);
}

/* Not recorded, but the number is another file's now. */
static int unseen(int r)
{
	if (r >= 0)
		shim_fd_gone(r);
	return r;
}

#define OPENS(name, dir, call)                                                                                                         \
	struct opening o = {dir, flags, mode, path};                                                                                   \
	struct ev e;                                                                                                                   \
	int r;                                                                                                                         \
	if (!shim_begin_fd(&e, CALL_##name, CLASS_disk, CALLER(), unlikely(shim_ctl.serial) ? shim_serial_opens(dir, path) : FD_NONE)) \
		return unseen(REAL(name) call);                                                                                        \
	before(&e, &o);                                                                                                                \
	r = REAL(name) call;                                                                                                           \
	after(&e, &o, r);                                                                                                              \
	return r;

#define OPEN(name)                                             \
	EXPORT LEAP int name(const char *path, int flags, ...) \
	{                                                      \
		SHIM_MODE(flags)                               \
		OPENS(name, AT_FDCWD, (path, flags, mode))     \
	}
OPEN(open)
OPEN(open64)
OPEN(__open)
OPEN(__open64)

#define OPENAT(name)                                                      \
	EXPORT LEAP int name(int dirfd, const char *path, int flags, ...) \
	{                                                                 \
		SHIM_MODE(flags)                                          \
		OPENS(name, dirfd, (dirfd, path, flags, mode))            \
	}
OPENAT(openat)
OPENAT(openat64)

/* Of fortified programs: they end the program when a mode is needed. */
#define OPEN_2(name)                                      \
	EXPORT LEAP int name(const char *path, int flags) \
	{                                                 \
		mode_t mode = 0;                          \
		OPENS(name, AT_FDCWD, (path, flags))      \
	}
OPEN_2(__open_2)
OPEN_2(__open64_2)

#define OPENAT_2(name)                                               \
	EXPORT LEAP int name(int dirfd, const char *path, int flags) \
	{                                                            \
		mode_t mode = 0;                                     \
		OPENS(name, dirfd, (dirfd, path, flags))             \
	}
OPENAT_2(__openat_2)
OPENAT_2(__openat64_2)

#define CREAT(name)                                       \
	EXPORT int name(const char *path, mode_t mode)    \
	{                                                 \
		int flags = O_CREAT | O_WRONLY | O_TRUNC; \
		OPENS(name, AT_FDCWD, (path, mode))       \
	}
CREAT(creat)
CREAT(creat64)

/* The name is known when the call is over. */
#define TEMP(name, args, call, extra)                                                           \
	EXPORT int name args                                                                    \
	{                                                                                       \
		struct opening o = {AT_FDCWD, O_RDWR | O_CREAT | O_EXCL | (extra), 0600, path}; \
		struct ev e;                                                                    \
		int r;                                                                          \
		if (!shim_begin(&e, CALL_##name, CLASS_disk, CALLER()))                         \
			return unseen(REAL(name) call);                                         \
		r = REAL(name) call;                                                            \
		after(&e, &o, r);                                                               \
		return r;                                                                       \
	}
TEMP(mkstemp, (char *path), (path), 0)
TEMP(mkstemp64, (char *path), (path), 0)
TEMP(mkostemp, (char *path, int flags), (path, flags), flags & ~O_ACCMODE)
TEMP(mkostemp64, (char *path, int flags), (path, flags), flags & ~O_ACCMODE)
TEMP(mkstemps, (char *path, int suffix), (path, suffix), 0)
TEMP(mkstemps64, (char *path, int suffix), (path, suffix), 0)
TEMP(mkostemps, (char *path, int suffix, int flags), (path, suffix, flags), flags & ~O_ACCMODE)
TEMP(mkostemps64, (char *path, int suffix, int flags), (path, suffix, flags), flags & ~O_ACCMODE)

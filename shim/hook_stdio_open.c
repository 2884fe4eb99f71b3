/* Streams that come and go. The C library opens their files by itself, so what open's wrapper does is done here. */
#include "wrap_all.h"
#include "streams.h"
#include <stdio.h>

/* The flags that a mode stands for; glibc looks no further than seven characters, or a comma. */
static int mode_flags(const char *m)
{
	int flags = *m == 'w' ? O_WRONLY | O_CREAT | O_TRUNC : *m == 'a' ? O_WRONLY | O_CREAT | O_APPEND : O_RDONLY, i;
	for (i = 1; i < 7 && m[i] && m[i] != ','; i++) {
		if (m[i] == '+')
			flags = (flags & ~O_ACCMODE) | O_RDWR;
		else if (m[i] == 'x')
			flags |= O_EXCL;
	}
	return flags;
}

static void opened(struct ev *e, FILE *fp, const char *path, const char *mode, int flags)
{
	int fd = fp ? fp->_fileno : -1;
	shim_end(e, WRAP_BLOCK);
	e->ret = shim_ret_ptr(fp);
	shim_tail_num(e, (u64)(fd < 0 ? 0 : fd));
	if (mode)
		shim_tail_bytes(e, mode, shim_len(mode), PART_STR);
	if (path)
		shim_tail_text(e, path, PART_PATH);
	shim_done(e);
	shim_post_opened(e, fd, flags);
}

static FILE *unseen(FILE *fp)
{
	if (fp)
		shim_fd_gone(fp->_fileno);
	return fp;
}

#define FOPEN(name)                                                                                                                                 \
	EXPORT FILE *name(const char *path, const char *mode)                                                                                       \
	{                                                                                                                                           \
		struct ev e;                                                                                                                        \
		FILE *r;                                                                                                                            \
		int flags;                                                                                                                          \
		if (!shim_begin_fd(&e, CALL_##name, CLASS_disk, CALLER(), unlikely(shim_ctl.serial) ? shim_serial_opens(AT_FDCWD, path) : FD_NONE)) \
			return unseen(REAL(name)(path, mode));                                                                                      \
		shim_pre_nested(&e);                                                                                                                \
		flags = mode_flags(mode);                                                                                                           \
		shim_pre_opens(&e, AT_FDCWD, path, flags);                                                                                          \
		r = REAL(name)(path, mode);                                                                                                         \
		opened(&e, r, path, mode, flags);                                                                                                   \
		return r;                                                                                                                           \
	}
FOPEN(fopen)
FOPEN(fopen64)

/* The old descriptor goes, and the new file may get its number. */
#define FREOPEN(name)                                                   \
	EXPORT FILE *name(const char *path, const char *mode, FILE *fp) \
	{                                                               \
		struct ev e;                                            \
		FILE *r;                                                \
		int flags;                                              \
		shim_fd_gone(fp->_fileno);                              \
		if (!shim_begin(&e, CALL_##name, CLASS_disk, CALLER())) \
			return unseen(REAL(name)(path, mode, fp));      \
		shim_pre_nested(&e);                                    \
		flags = mode_flags(mode);                               \
		if (path)                                               \
			shim_pre_opens(&e, AT_FDCWD, path, flags);      \
		r = REAL(name)(path, mode, fp);                         \
		opened(&e, r, path ? path : "", mode, flags);           \
		return r;                                               \
	}
FREOPEN(freopen)
FREOPEN(freopen64)

#define TMPFILE(name)                                                   \
	EXPORT FILE *name(void)                                         \
	{                                                               \
		struct ev e;                                            \
		FILE *r;                                                \
		if (!shim_begin(&e, CALL_##name, CLASS_disk, CALLER())) \
			return unseen(REAL(name)());                    \
		shim_pre_nested(&e);                                    \
		r = REAL(name)();                                       \
		opened(&e, r, 0, 0, O_RDWR | O_TMPFILE);                \
		return r;                                               \
	}
TMPFILE(tmpfile)
TMPFILE(tmpfile64)

EXPORT FILE *fdopen(int fd, const char *mode)
{
	struct ev e;
	FILE *r;
	if (!shim_begin(&e, CALL_fdopen, CLASS_disk, CALLER()))
		return REAL(fdopen)(fd, mode);
	shim_pre_nested(&e);
	r = REAL(fdopen)(fd, mode);
	shim_end(&e, WRAP_ONCE);
	e.ret = shim_ret_ptr(r);
	e.obj = shim_obj_fd(e.t, fd);
	shim_tail_bytes(&e, mode, shim_len(mode), PART_STR);
	shim_done(&e);
	return r;
}

/* The stream's memory is free for another after the call: its name is given up before. */
EXPORT int fclose(FILE *fp)
{
	struct ev e;
	int r, fd;
	if (!shim_begin_fd(&e, CALL_fclose, CLASS_stdio, CALLER(), fp->_fileno < 0 ? FD_NONE : fp->_fileno)) {
		shim_object_gone(PROPHET_ObjStdio, fp);
		return REAL(fclose)(fp);
	}
	shim_pre_nested(&e);
	fd = fp->_fileno;
	shim_stdio_leaving(&e, fp);
	shim_object_gone(PROPHET_ObjStdio, fp);
	r = REAL(fclose)(fp);
	shim_end(&e, WRAP_BLOCK);
	e.ret = shim_ret_errno(r);
	e.f1 = (u64)(i64)fd;
	shim_done(&e);
	return r;
}

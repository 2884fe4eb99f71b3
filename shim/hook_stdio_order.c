/* The order of a stream's lock. glibc takes the lock inside of each call; where several threads share a stream, who
 * came first decides what comes out. The wrapper takes the lock before (it is recursive), notes the place in the
 * order, and leaves it after, also when the call is left by cancellation. While the process has one thread there is
 * nothing to order: the wrapper goes straight to the real function.
 *
 * What reaches the kernel is recorded under it, in hook_stdio_io.c.
 */
#include "platform.h"
#include <features.h>
#undef __GLIBC_USE_DEPRECATED_SCANF
#define __GLIBC_USE_DEPRECATED_SCANF 1 /* or scanf would be another name of __isoc99_scanf here */
#include "wrap_all.h"
#include "streams.h"
#include <stdarg.h>
#include <sys/single_threaded.h>
#include <wchar.h>

#define USER_LOCK 0x8000 /* in _flags: the program locks by itself (__fsetlocking) */

static void drop(FILE **held)
{
	if (unlikely(*held != 0))
		REAL(funlockfile)(*held);
}

#define HELD __attribute__((cleanup(drop))) FILE *held = 0

/* Begins the event and takes the lock; 0: not recorded, and nothing is held. */
static NOINLINE int take(struct ev *e, u32 call, FILE *fp, void *pc, FILE **held)
{
	if (!fp || fp->_flags & USER_LOCK || !shim_begin(e, call, CLASS_stdio, pc))
		return 0;
	e->t->slot->call = 0; /* what it asks of the kernel is an event of its own */
	if (unlikely(e->t->re != 0))
		shim_re_stream(e->x, fp);
	if (REAL(ftrylockfile)(fp) != 0) {
		e->note |= PROPHET_NoteWaited;
		REAL(flockfile)(fp);
		e->end = shim_ticks();
	} else {
		e->end = e->begin;
	}
	*held = fp;
	return 1;
}

/* The place in the order, while the lock is held. */
static void place(struct ev *e, FILE *fp)
{
	struct object_entry *o = shim_object(e->t, PROPHET_ObjStdio, fp);
	e->obj = o->id;
	e->seq = __atomic_add_fetch(&o->seq, 1, __ATOMIC_RELAXED);
}

static NOINLINE void give(struct ev *e, i64 ret, FILE **held)
{
	FILE *fp = *held;
	u64 end = e->end;
	place(e, fp);
	*held = 0;
	REAL(funlockfile)(fp);
	shim_end(e, WRAP_ONCE);
	e->end = end;
	e->ret = ret;
	shim_done(e);
}

void shim_stdio_leaving(struct ev *e, FILE *fp)
{
	HELD;
	if (unlikely(e->t->re != 0))
		shim_re_stream(e->x, fp);
	if (!__libc_single_threaded && !(fp->_flags & USER_LOCK)) {
		REAL(flockfile)(fp);
		held = fp;
	}
	place(e, fp);
}

#define ORDERED(type, name, params, fp, args, ret)               \
	EXPORT type name params                                  \
	{                                                        \
		struct ev e;                                     \
		type r;                                          \
		HELD;                                            \
		if (likely(__libc_single_threaded))              \
			return REAL(name) args;                  \
		if (!take(&e, CALL_##name, fp, CALLER(), &held)) \
			return REAL(name) args;                  \
		r = REAL(name) args;                             \
		give(&e, ret, &held);                            \
		return r;                                        \
	}

#define ORDERED_VOID(name, params, fp, args)                                                 \
	EXPORT void name params                                                              \
	{                                                                                    \
		struct ev e;                                                                 \
		HELD;                                                                        \
		if (__libc_single_threaded || !take(&e, CALL_##name, fp, CALLER(), &held)) { \
			REAL(name) args;                                                     \
			return;                                                              \
		}                                                                            \
		REAL(name) args;                                                             \
		give(&e, 0, &held);                                                          \
	}

/* Calls with a variable list go on to the real function that takes it as a va_list, as they do inside of glibc. */
#define ORDERED_LIST(name, params, fp, args, last, real)                                               \
	EXPORT int name params                                                                         \
	{                                                                                              \
		struct ev e;                                                                           \
		va_list ap;                                                                            \
		int r, rec;                                                                            \
		HELD;                                                                                  \
		rec = unlikely(!__libc_single_threaded) && take(&e, CALL_##name, fp, CALLER(), &held); \
		va_start(ap, last);                                                                    \
		r = REAL(real) args;                                                                   \
		va_end(ap);                                                                            \
		if (rec)                                                                               \
			give(&e, r, &held);                                                            \
		return r;                                                                              \
	}

EXPORT void flockfile(FILE *fp)
{
	struct ev e;
	FILE *held;
	if (__libc_single_threaded || !take(&e, CALL_flockfile, fp, CALLER(), &held)) {
		REAL(flockfile)(fp);
		return;
	}
	place(&e, fp); /* the lock stays taken */
	shim_end(&e, WRAP_ONCE);
	if (e.note & PROPHET_NoteWaited)
		e.end = shim_ticks();
	shim_done(&e);
}

EXPORT int ftrylockfile(FILE *fp)
{
	struct ev e;
	int r;
	if (__libc_single_threaded || !shim_begin(&e, CALL_ftrylockfile, CLASS_stdio, CALLER()))
		return REAL(ftrylockfile)(fp);
	r = REAL(ftrylockfile)(fp);
	shim_end(&e, WRAP_ONCE);
	e.ret = r;
	if (r == 0)
		place(&e, fp);
	else
		e.obj = shim_object(e.t, PROPHET_ObjStdio, fp)->id;
	shim_done(&e);
	return r;
}

EXPORT void funlockfile(FILE *fp)
{
	struct ev e;
	if (__libc_single_threaded || !shim_begin(&e, CALL_funlockfile, CLASS_stdio, CALLER())) {
		REAL(funlockfile)(fp);
		return;
	}
	e.obj = shim_object(e.t, PROPHET_ObjStdio, fp)->id; /* before: another may close it after */
	REAL(funlockfile)(fp);
	shim_end(&e, WRAP_ONCE);
	shim_done(&e);
}

#define ORDERED_BLOCKS(name, params, args)                                                         \
	EXPORT size_t name params                                                                  \
	{                                                                                          \
		struct ev e;                                                                       \
		size_t r;                                                                          \
		HELD;                                                                              \
		if (likely(__libc_single_threaded) || !take(&e, CALL_##name, fp, CALLER(), &held)) \
			return REAL(name) args;                                                    \
		e.f1 = size;                                                                       \
		e.f2 = n;                                                                          \
		r = REAL(name) args;                                                               \
		give(&e, (i64)r, &held);                                                           \
		return r;                                                                          \
	}
ORDERED_BLOCKS(fread, (void *buf, size_t size, size_t n, FILE *fp), (buf, size, n, fp))
ORDERED_BLOCKS(fwrite, (const void *buf, size_t size, size_t n, FILE *fp), (buf, size, n, fp))
ORDERED_BLOCKS(__fread_chk, (void *buf, size_t cap, size_t size, size_t n, FILE *fp), (buf, cap, size, n, fp))

ORDERED(char *, fgets, (char *buf, int n, FILE *fp), fp, (buf, n, fp), r != 0)
ORDERED(char *, __fgets_chk, (char *buf, size_t cap, int n, FILE *fp), fp, (buf, cap, n, fp), r != 0)
ORDERED(int, fgetc, (FILE * fp), fp, (fp), (i64)r)
ORDERED(int, getc, (FILE * fp), fp, (fp), (i64)r)
ORDERED(int, _IO_getc, (FILE * fp), fp, (fp), (i64)r)
ORDERED(int, getchar, (void), stdin, (), (i64)r)
ORDERED(int, fputs, (const char *s, FILE *fp), fp, (s, fp), (i64)r)
ORDERED(int, puts, (const char *s), stdout, (s), (i64)r)
ORDERED(int, fputc, (int c, FILE *fp), fp, (c, fp), (i64)r)
ORDERED(int, putc, (int c, FILE *fp), fp, (c, fp), (i64)r)
ORDERED(int, _IO_putc, (int c, FILE *fp), fp, (c, fp), (i64)r)
ORDERED(int, putchar, (int c), stdout, (c), (i64)r)
ORDERED(int, ungetc, (int c, FILE *fp), fp, (c, fp), (i64)r)
ORDERED(int, getw, (FILE * fp), fp, (fp), (i64)r)
ORDERED(int, putw, (int w, FILE *fp), fp, (w, fp), (i64)r)
ORDERED(ssize_t, getline, (char **line, size_t *n, FILE *fp), fp, (line, n, fp), (i64)r)
ORDERED(ssize_t, getdelim, (char **line, size_t *n, int delim, FILE *fp), fp, (line, n, delim, fp), (i64)r)
ORDERED(ssize_t, __getdelim, (char **line, size_t *n, int delim, FILE *fp), fp, (line, n, delim, fp), (i64)r)
ORDERED(char *, gets, (char *buf), stdin, (buf), r != 0)
ORDERED(char *, __gets_chk, (char *buf, size_t cap), stdin, (buf, cap), r != 0)
ORDERED(int, feof, (FILE * fp), fp, (fp), (i64)r)
ORDERED(int, ferror, (FILE * fp), fp, (fp), (i64)r)
ORDERED(int, fflush, (FILE * fp), fp, (fp), (i64)r)
ORDERED(int, fseek, (FILE * fp, long off, int whence), fp, (fp, off, whence), (i64)r)
ORDERED(int, fseeko, (FILE * fp, off_t off, int whence), fp, (fp, off, whence), (i64)r)
ORDERED(int, fseeko64, (FILE * fp, off_t off, int whence), fp, (fp, off, whence), (i64)r)
ORDERED(long, ftell, (FILE * fp), fp, (fp), (i64)r)
ORDERED(off_t, ftello, (FILE * fp), fp, (fp), (i64)r)
ORDERED(off_t, ftello64, (FILE * fp), fp, (fp), (i64)r)
ORDERED(int, fgetpos, (FILE * fp, fpos_t *at), fp, (fp, at), (i64)r)
ORDERED(int, fgetpos64, (FILE * fp, fpos64_t *at), fp, (fp, at), (i64)r)
ORDERED(int, fsetpos, (FILE * fp, const fpos_t *at), fp, (fp, at), (i64)r)
ORDERED(int, fsetpos64, (FILE * fp, const fpos64_t *at), fp, (fp, at), (i64)r)
ORDERED(int, setvbuf, (FILE * fp, char *buf, int mode, size_t n), fp, (fp, buf, mode, n), (i64)r)
ORDERED(wint_t, fgetwc, (FILE * fp), fp, (fp), (i64)(int)r)
ORDERED(wint_t, getwc, (FILE * fp), fp, (fp), (i64)(int)r)
ORDERED(wint_t, getwchar, (void), stdin, (), (i64)(int)r)
ORDERED(wint_t, fputwc, (wchar_t c, FILE *fp), fp, (c, fp), (i64)(int)r)
ORDERED(wint_t, putwc, (wchar_t c, FILE *fp), fp, (c, fp), (i64)(int)r)
ORDERED(wint_t, putwchar, (wchar_t c), stdout, (c), (i64)(int)r)
ORDERED(wint_t, ungetwc, (wint_t c, FILE *fp), fp, (c, fp), (i64)(int)r)
ORDERED(wchar_t *, fgetws, (wchar_t * buf, int n, FILE *fp), fp, (buf, n, fp), r != 0)
ORDERED(wchar_t *, __fgetws_chk, (wchar_t * buf, size_t cap, int n, FILE *fp), fp, (buf, cap, n, fp), r != 0)
ORDERED(int, fputws, (const wchar_t *s, FILE *fp), fp, (s, fp), (i64)r)
ORDERED(int, vprintf, (const char *format, va_list ap), stdout, (format, ap), (i64)r)
ORDERED(int, vfprintf, (FILE * fp, const char *format, va_list ap), fp, (fp, format, ap), (i64)r)
ORDERED(int, __vprintf_chk, (int flag, const char *format, va_list ap), stdout, (flag, format, ap), (i64)r)
ORDERED(int, __vfprintf_chk, (FILE * fp, int flag, const char *format, va_list ap), fp, (fp, flag, format, ap), (i64)r)
ORDERED(int, vwprintf, (const wchar_t *format, va_list ap), stdout, (format, ap), (i64)r)
ORDERED(int, vfwprintf, (FILE * fp, const wchar_t *format, va_list ap), fp, (fp, format, ap), (i64)r)
ORDERED(int, __vwprintf_chk, (int flag, const wchar_t *format, va_list ap), stdout, (flag, format, ap), (i64)r)
ORDERED(int, __vfwprintf_chk, (FILE * fp, int flag, const wchar_t *format, va_list ap), fp, (fp, flag, format, ap), (i64)r)
ORDERED(int, vscanf, (const char *format, va_list ap), stdin, (format, ap), (i64)r)
ORDERED(int, vfscanf, (FILE * fp, const char *format, va_list ap), fp, (fp, format, ap), (i64)r)
ORDERED(int, vwscanf, (const wchar_t *format, va_list ap), stdin, (format, ap), (i64)r)
ORDERED(int, vfwscanf, (FILE * fp, const wchar_t *format, va_list ap), fp, (fp, format, ap), (i64)r)
ORDERED(int, __isoc99_vscanf, (const char *format, va_list ap), stdin, (format, ap), (i64)r)
ORDERED(int, __isoc99_vfscanf, (FILE * fp, const char *format, va_list ap), fp, (fp, format, ap), (i64)r)
ORDERED(int, __isoc99_vwscanf, (const wchar_t *format, va_list ap), stdin, (format, ap), (i64)r)
ORDERED(int, __isoc99_vfwscanf, (FILE * fp, const wchar_t *format, va_list ap), fp, (fp, format, ap), (i64)r)

ORDERED_VOID(clearerr, (FILE * fp), fp, (fp))
ORDERED_VOID(rewind, (FILE * fp), fp, (fp))
ORDERED_VOID(setbuf, (FILE * fp, char *buf), fp, (fp, buf))
ORDERED_VOID(setbuffer, (FILE * fp, char *buf, size_t n), fp, (fp, buf, n))
ORDERED_VOID(setlinebuf, (FILE * fp), fp, (fp))
ORDERED_VOID(perror, (const char *s), stderr, (s))

ORDERED_LIST(printf, (const char *format, ...), stdout, (format, ap), format, vprintf)
ORDERED_LIST(fprintf, (FILE * fp, const char *format, ...), fp, (fp, format, ap), format, vfprintf)
ORDERED_LIST(__printf_chk, (int flag, const char *format, ...), stdout, (flag, format, ap), format, __vprintf_chk)
ORDERED_LIST(__fprintf_chk, (FILE * fp, int flag, const char *format, ...), fp, (fp, flag, format, ap), format, __vfprintf_chk)
ORDERED_LIST(wprintf, (const wchar_t *format, ...), stdout, (format, ap), format, vwprintf)
ORDERED_LIST(fwprintf, (FILE * fp, const wchar_t *format, ...), fp, (fp, format, ap), format, vfwprintf)
ORDERED_LIST(__wprintf_chk, (int flag, const wchar_t *format, ...), stdout, (flag, format, ap), format, __vwprintf_chk)
ORDERED_LIST(__fwprintf_chk, (FILE * fp, int flag, const wchar_t *format, ...), fp, (fp, flag, format, ap), format, __vfwprintf_chk)
ORDERED_LIST(scanf, (const char *format, ...), stdin, (format, ap), format, vscanf)
ORDERED_LIST(fscanf, (FILE * fp, const char *format, ...), fp, (fp, format, ap), format, vfscanf)
ORDERED_LIST(wscanf, (const wchar_t *format, ...), stdin, (format, ap), format, vwscanf)
ORDERED_LIST(fwscanf, (FILE * fp, const wchar_t *format, ...), fp, (fp, format, ap), format, vfwscanf)
ORDERED_LIST(__isoc99_scanf, (const char *format, ...), stdin, (format, ap), format, __isoc99_vscanf)
ORDERED_LIST(__isoc99_fscanf, (FILE * fp, const char *format, ...), fp, (fp, format, ap), format, __isoc99_vfscanf)
ORDERED_LIST(__isoc99_wscanf, (const wchar_t *format, ...), stdin, (format, ap), format, __isoc99_vwscanf)
ORDERED_LIST(__isoc99_fwscanf, (FILE * fp, const wchar_t *format, ...), fp, (fp, format, ap), format, __isoc99_vfwscanf)

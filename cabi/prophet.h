/* Prophet's C interface. Including this is all: the symbols are weak, so a program that is not run under libprophet.so
 * needs no library to link or to start, and its marks do nothing.
 *
 *	#include <prophet.h>
 *	prophet_begin("load");
 *	…
 *	prophet_end("load");
 *
 * A mark is a record in the calling thread's stream. Names are copied (up to 255 bytes). Async-signal-safe.
 */
#ifndef PROPHET_H
#define PROPHET_H

#ifdef __cplusplus
extern "C" {
#endif

/* A point in time. */
extern void prophet_mark(const char *name) __attribute__((weak));
/* The beginning and the end of something; they nest within a thread. */
extern void prophet_begin(const char *name) __attribute__((weak));
extern void prophet_end(const char *name) __attribute__((weak));
/* 1 when this process is being recorded, now and at a level that keeps marks. */
extern int prophet_recording(void) __attribute__((weak));

#define prophet_mark(name) (prophet_mark ? (prophet_mark)(name) : (void)0)
#define prophet_begin(name) (prophet_begin ? (prophet_begin)(name) : (void)0)
#define prophet_end(name) (prophet_end ? (prophet_end)(name) : (void)0)
#define prophet_recording() (prophet_recording ? (prophet_recording)() : 0)

/* Version of the library and of the Go inside it, such as "0.1.0 go1.26". The Go runtime of the library starts with the
 * first call and not before: not for use in a program that is being recorded. */
extern const char *prophet_version(void) __attribute__((weak));

#ifdef __cplusplus
}
#endif
#endif

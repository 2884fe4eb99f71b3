/* Streams of the C library: what hook_stdio_*.c share, and their part in our start. */
#ifndef SHIM_STREAMS_H
#define SHIM_STREAMS_H

#include "replay.h"
#include <stdio.h>

/* From boot, when recording: the streams' tables of functions get our entries. Takes some microseconds. */
HIDDEN void shim_stdio_boot(struct thr *t);

/* The stream is about to go: its last place in its order. */
HIDDEN void shim_stdio_leaving(struct ev *e, FILE *fp);

/* In a re-execution: waits until the lock of this stream is this call's. */
HIDDEN void shim_re_stream(const struct expect *x, FILE *fp);

#endif

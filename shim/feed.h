/* What the statements of rows' Feed call: each gives the caller a part of what the expected event x has. A program's
 * memory is written only where the recording wrote it.
 */
#ifndef SHIM_FEED_H
#define SHIM_FEED_H

#include "replay.h"
#include "wrap_all.h"
#include <sys/time.h>
#include <time.h>

/* Input data; its length is the recorded one. */
static inline void feed_data(const struct expect *x, void *buf, u64 room)
{
	if (x->data && x->data_len <= room)
		shim_copy(buf, x->data, x->data_len);
}

static inline void feed_timespec(int good, struct timespec *ts, u64 ns)
{
	if (good && ts) {
		ts->tv_sec = (time_t)(ns / 1000000000u);
		ts->tv_nsec = (long)(ns % 1000000000u);
	}
}

static inline void feed_timeval(int good, struct timeval *tv, u64 us)
{
	if (good && tv) {
		tv->tv_sec = (time_t)(us / 1000000u);
		tv->tv_usec = (suseconds_t)(us % 1000000u);
	}
}

/* A sleep takes its time only where that is asked for. */
HIDDEN void shim_re_sleep(const struct expect *x, u64 ns);

static inline u64 feed_tail(const struct expect *x, u32 nth)
{
	const u8 *p = x->tail, *end = p + x->tail_len;
	u64 v = 0;
	if (!x->tail_len)
		return 0;
	do
		v = shim_get_v(&p, end);
	while (nth--);
	return v;
}

static inline double feed_double(u64 bits)
{
	double d;
	__builtin_memcpy(&d, &bits, 8);
	return d;
}

#endif

/* The inverse of what steps_time.c writes: times, use, shape and limits, given back to the caller. */
#ifndef SHIM_FEED_TIME_H
#define SHIM_FEED_TIME_H

#include "replay.h"
#include "wrap_all.h"

HIDDEN void feed_tms(const struct expect *x, struct tms *t);
HIDDEN void feed_rusage(const struct expect *x, struct rusage *u);
HIDDEN void feed_itimerval(const struct expect *x, struct itimerval *it);
HIDDEN void feed_itimerspec(const struct expect *x, struct itimerspec *it);
HIDDEN void feed_sysinfo(const struct expect *x, struct sysinfo *i);
HIDDEN void feed_utsname(const struct expect *x, struct utsname *u);
HIDDEN void feed_loads(const struct expect *x, double *loads, int n);
HIDDEN void feed_cpus(const struct expect *x, cpu_set_t *set, u64 bytes);
HIDDEN void feed_limits(const struct expect *x, void *old);
HIDDEN void feed_limit(const struct expect *x, void *lim);
HIDDEN void feed_name(const struct expect *x, char *buf, u64 room); /* a string that is the whole tail */
HIDDEN void feed_timex(const struct expect *x, struct timex *tx, u64 us);

#endif

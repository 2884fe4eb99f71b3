/* Where between two calls a signal came. See step.c. */
#ifndef SHIM_STEP_H
#define SHIM_STEP_H

#include "replay.h"

#define SHIM_PLACE 5 /* words */

#if SHIM_STEPS
HIDDEN u32 shim_place_told(const void *context, u64 *place); /* what TagPlace says of it; 0: nothing */
HIDDEN int shim_step_begin(struct thr *t, const struct expect *x, u32 ahead); /* the signal x is next, that many records on: 0: it is not waited for here */
HIDDEN void shim_step_again(void *context); /* the same, where a handler returns to */
HIDDEN void shim_step_end(struct thr *t); /* a call begins: it did not come to that */
HIDDEN int shim_step_trap(int sig, const siginfo_t *si, void *context); /* 1: it was one of ours, or came from outside as we were at one */

/* Our part of the call before is over but for its return. */
static inline void shim_step_go(struct thr *t)
{
	if (unlikely(t->re && t->re->step.on && t->re->step.fd < 0))
		shim_traps_on();
}
#else
static inline u32 shim_place_told(const void *context, u64 *place)
{
	(void)context, (void)place;
	return 0;
}

static inline int shim_step_begin(struct thr *t, const struct expect *x, u32 ahead)
{
	(void)t, (void)x, (void)ahead;
	return 0;
}

static inline void shim_step_again(void *context)
{
	(void)context;
}

static inline void shim_step_end(struct thr *t)
{
	(void)t;
}

static inline int shim_step_trap(int sig, const siginfo_t *si, void *context)
{
	(void)sig, (void)si, (void)context;
	return 0;
}

static inline void shim_step_go(struct thr *t)
{
	(void)t;
}
#endif

#endif

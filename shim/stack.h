/* Stacks at events: who called the call site. See stack.c. */
#ifndef SHIM_STACK_H
#define SHIM_STACK_H

#include "ring.h"

extern u64 shim_stack_every HIDDEN; /* ticks between two stacks of a thread; 0: none are taken */

HIDDEN void shim_stack_rate(void); /* from the run's options, once the ticks are known */
HIDDEN void shim_stack_begin(struct thr *t); /* a thread begins to record */
HIDDEN void shim_stack(struct ev *e, u64 pos); /* of an event that has just been committed, up to pos */
HIDDEN void shim_stack_holder(struct thr *t, u32 tid, u64 now); /* t is about to wait for what that thread holds */

/* A wait that began at most this long ago is short. */
#define STACK_WAIT (shim_gap * 25) /* 1 ms */

/* Whether an event calls for a stack: the thread has had none for an interval, was asked for one, or waited for long. */
static inline int shim_stack_due(const struct thr *t, const struct ev *e)
{
	return e->end >= t->stack_at || (unlikely(e->end - e->begin > shim_gap) && e->note & PROPHET_NoteWaited && e->end - e->begin >= STACK_WAIT &&
					 shim_stack_every && t->stack_at - e->end <= shim_stack_every / 4 * 3);
}

#endif

/* Stacks at events: who called the call site. See stack.c. */
#ifndef SHIM_STACK_H
#define SHIM_STACK_H

#include "ring.h"
#include <signal.h>

extern u64 shim_stack_every HIDDEN; /* ticks between two stacks of a thread; 0: none are taken */

HIDDEN void shim_stack_rate(void); /* from the run's options, once the ticks are known */
HIDDEN void shim_stack_begin(struct thr *t); /* a thread begins to record */
HIDDEN void shim_stack(struct ev *e, u64 pos); /* of an event that has just been committed, up to pos */
HIDDEN void shim_stack_holder(struct thr *t, u32 tid, u64 now); /* t is about to wait for what that thread holds */

/* stack_cpu.c */
HIDDEN void shim_stack_sample(struct thr *t, const void *context);
HIDDEN void shim_stack_timer(struct thr *t, const u64 *mask); /* the calling thread has this state, and had this mask */
HIDDEN void shim_stack_timer_end(struct thr *t);
HIDDEN void shim_stack_yield(struct thr *t);
HIDDEN int shim_stack_yields(struct thr *t, int sig, int doing,
			     struct sigaction *mine); /* the program sets what happens at a signal; 1: to the default, and mine is to be set instead */
HIDDEN int shim_stack_guard(const void *handler); /* is ours */
HIDDEN int shim_stack_signal(int sig, const siginfo_t *si); /* it is our timers', late */

/* A wait that began at most this long ago is short. */
#define STACK_WAIT (shim_gap * 25) /* 1 ms */

/* Whether an event calls for a stack: the thread has had none for an interval, was asked for one, or waited for long. */
static inline int shim_stack_due(const struct thr *t, const struct ev *e)
{
	return e->end >= t->stack_at || (unlikely(e->end - e->begin > shim_gap) && e->note & PROPHET_NoteWaited && e->end - e->begin >= STACK_WAIT &&
					 shim_stack_every && t->stack_at - e->end <= shim_stack_every / 4 * 3);
}

#endif

/* On which side of a call a signal of the trace comes in a re-execution: before it, or inside. A signal's records stand before the
 * event of the call that it came in, as that is written when the call is over; so do those of one that came before the call.
 *
 * Rules:
 *	The record says the call that was under way (expect.call): it came inside of that. 0: between two calls, so before the next;
 *	but a quick call does not say that it is under way, so one of those that let others go on may be meant (shim_side_inside).
 *	Inside, most come as the call begins: what it does for nobody else is the same then. Behind what it did come those inside of a call
 *	by which others may have gone on before them (shim_side_lets_first), those that came as the kernel had done it, as the record says (its
 *	place), those that only its mask let through (RE_MASKED), and those that came to who had arrived at a barrier. Of the last two the
 *	stand-in has them delivered.
 *	Numbers decide where there are some: a handler that took a place of the call's object before the call's own place ran before it.
 *	A call that was left by a signal, or for good, did nothing for others: its signals come as it begins.
 * Which it is is told from what lies ahead in the thread's stream alone. It asks nobody and waits for nobody.
 */
#ifndef SHIM_SIDE_H
#define SHIM_SIDE_H

#include "replay.h"

HIDDEN void shim_side_inside(struct thr *t, u32 i); /* the signal that far ahead may have come inside of the call that is next */
HIDDEN int shim_side_lets_first(u32 call); /* others go on because of it before a signal comes that came inside */
HIDDEN int shim_side_over(const struct expect *x, u32 call); /* a signal came as it had been done */
HIDDEN int shim_side_frees(struct thr *t, u32 call); /* the call comes first, then the signals that came in it */
HIDDEN struct expect *shim_side_outer(struct thr *t, u32 call); /* the event of the call that signals came in, which come next; NULL: it has none */

#endif

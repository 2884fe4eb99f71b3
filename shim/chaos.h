/* Chaos: threads are held up at their calls, so that orders that are rare become common. What is done is a matter of the
 * run's seed and the thread's number alone, so a seed tries the same again, as far as the machine lets it.
 *
 * Half of a run's threads or all of them are held up, so that one can fall far behind others that
 * run on. Each of these has a pace, drawn when it begins and anew at change points, which lie at random numbers of its events (one
 * to a thousand: nobody knows how many a run will have). A pace is full speed, short hesitations, long stops here and
 * there, or a stop at each event: the priorities of a randomised scheduler, made without one. Stops are
 * of a length that the run draws once, from 64 µs to 16 ms, since how long a thread must be held
 * up depends on the bug. Threads are held up before a call and after it, where they may have just taken a lock.
 *
 * Nobody waits for anybody here, so nothing can deadlock; a thread is stopped for a third of its life at most, past the
 * first few stops. Nothing that a call returns changes.
 */
#ifndef SHIM_CHAOS_H
#define SHIM_CHAOS_H

#include "ring.h"

HIDDEN int shim_chaos(struct thr *t); /* 1: the calling thread was held up */

#endif

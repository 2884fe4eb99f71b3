/* The token of a serial run (serial.h) in its re-execution: turns come in the order of their numbers.
 *
 * A thread goes on from where it took turn n when all turns before n are over: their holders' next events have begun, or
 * they have ended. Numbers that no stream has are passed over (Replay.Skips). One word says it all (Replay.Token): the
 * turn that is on, and who has come to it. Each change is one compare-and-exchange, by the holder or by who takes the
 * token from it, and calls who waits for the turn that is on then (turn.c).
 *
 * Where the recorded run's holder lost the token, the next one waits until it has begun that turn; then for its death,
 * for it to sleep, or for BESIDE_NS, and goes on beside it, as recorded. Such places are not serial: what two threads do
 * to the same memory there may come otherwise.
 *
 * A thread takes its turn when its event is compared and its place is given on: so nobody waits for a place of who
 * waits for the token.
 */
#ifndef SHIM_TOKEN_H
#define SHIM_TOKEN_H

#include "replay.h"

HIDDEN void shim_token_take(struct thr *t, u64 turn); /* number<<3 | how */
HIDDEN void shim_token_await(struct thr *t, const struct expect *x); /* until the turn that x takes is on, or the first of signals that came as it was over */
HIDDEN int shim_token_here(struct thr *t); /* the trace says that a turn was taken right here: 1 when it was */
HIDDEN void shim_token_give(struct thr *t);

#endif

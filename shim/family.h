/* Who is who in a re-execution: ids of the trace, and what stands for them now. The program sees the recorded ids, the
 * kernel gets its own: each is translated where it goes into a call, and what comes out of calls is the trace's. Where a
 * world of our own gives out the recorded ids (pids.h) both are the same.
 *
 * The table lies in the index, so all processes of the run share it. Who makes a process says who it is, and so does
 * that process itself, whoever comes first; who takes its end takes it off.
 */
#ifndef SHIM_FAMILY_H
#define SHIM_FAMILY_H

#include "replay.h"

HIDDEN void shim_family_begin(const char *index); /* ids can be chosen when the world has a page for that beside its index */
HIDDEN void shim_id_is(u32 kind, u64 was, u64 now);
HIDDEN u64 shim_id_now(u32 kind, u64 was); /* ~0: not known */
HIDDEN void shim_id_gone(u32 kind, u64 was, u64 now);

/* A process or thread. What is not the run's is what it was. */
static inline i64 shim_task_now(i64 was)
{
	u64 now = was > 0 ? shim_id_now(PROPHET_IDTask, (u64)was) : ~0ull;
	return now == ~0ull ? was : (i64)now;
}

/* Of the process that has this recorded id; a pid that became another program has several. NULL: it records nothing. */
HIDDEN struct replayproc *shim_family_proc(u32 was);
HIDDEN u32 shim_family_death(u32 proc); /* the signal that ended this process, by number; 0: none */
HIDDEN int shim_family_dies(u32 proc); /* that, or what replayd is to see to: the first process, which nobody in the run waits for */
HIDDEN void shim_family_came(struct replayproc *p); /* this process is p */

/* The process that this id stands for is ended by the signal that ended it in the recording, once it has done all that
 * it did then. 1: it was sent. */
HIDDEN int shim_family_end(const struct replayproc *p);
HIDDEN int shim_family_over(u32 proc, u32 but); /* every thread of the process, but for this one, has done all that it did */

HIDDEN void shim_family_await(struct thr *t, u32 now); /* until this child of t's has done all that it did: it is about to be killed */

/* Files of a world of our own have other numbers than the recorded ones, and so has the order of their locks. What each is
 * told as is kept, so that it is told the same once the harness is off. */
HIDDEN u64 *shim_moved(u64 a, u64 b, int make); /* the two numbers that stand for those; NULL: none, or no room */

static inline void shim_re_moves(u64 a, u64 b, u64 to, u64 to2)
{
	u64 *m = shim_moved(a, b, 1);
	if (m) {
		__atomic_store_n(&m[0], to, __ATOMIC_RELAXED);
		__atomic_store_n(&m[1], to2, __ATOMIC_RELEASE);
	}
}

/* Around a call that makes a process or thread: asks for its id where that can be had; then remembers who it is, and gives
 * what the program is told. */
HIDDEN int shim_family_want(i64 was);
HIDDEN i64 shim_family_born(int wanted, i64 was, i64 now);

#endif

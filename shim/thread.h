/* Threads of the program as the recorder knows them: where a thread's state comes from, the slow path of the guard,
 * what a forked child finds, and the end of threads and processes.
 */
#ifndef SHIM_THREAD_H
#define SHIM_THREAD_H

#include "run.h"
#include "serial.h"
#include <signal.h>

HIDDEN int shim_thread_boot(int argc, char **argv); /* the main thread; from our constructor */
HIDDEN struct thr *shim_ready_slow(u32 cls); /* see shim_ready */
HIDDEN struct thr *shim_thread_new(struct thr *parent); /* for a thread about to be created; NULL: it will find its own */
HIDDEN void shim_thread_begin(struct thr *t); /* on the new thread */
HIDDEN struct thr *shim_thread_found(u32 nth); /* on one that we did not see start; nth: of the timer that did it (timers.c), 0: it was none; NULL: no room */
HIDDEN void shim_thread_starts(struct thr *t); /* what comes with its first instruction */
HIDDEN void shim_thread_fired(u32 nth, void (*fn)(union sigval), union sigval v); /* the routine of one that a timer has started */
HIDDEN void shim_thread_ending(struct thr *t); /* its routine is over; destructors may still run; shim_reap writes its ring */
HIDDEN void shim_thread_again(struct thr *t); /* its stream begins here, with who it is: a re-execution has become a recording */
HIDDEN void shim_thread_drop(struct thr *t); /* it never came to be */
HIDDEN void shim_reap(void); /* take back what ended threads had */
HIDDEN void shim_forked(void); /* in a forked child, before anything else */
HIDDEN void shim_child(void); /* in a child that a wrapper has made: it becomes a process of the trace at its first event */
/* A fork, or a program to be executed, is about to be tried. */
static inline void shim_child_next(void)
{
	shim_self.nfork++;
	if (!shim_self.thr)
		return;
	if (unlikely(!shim_run.ns))
		shim_ns_known();
	__atomic_store_n(&shim_ctl.spawner, (u64)shim_run.ns << 32 | shim_run.pid, __ATOMIC_RELAXED);
}

HIDDEN void shim_fork_record(struct thr *t, u32 nth, u64 pid, u32 how);
HIDDEN int shim_in_handler(struct thr *t, u64 here); /* a signal handler runs, seen from this place of the stack; forgets those that were left by a jump */
HIDDEN void shim_exit_flush(u32 how, i64 status); /* the process ends, or becomes another program */
HIDDEN void shim_process_over(u32 how, i64 status); /* the same, for good */
HIDDEN void shim_record_no_more(void); /* in this process */
HIDDEN int shim_in_vfork(struct thr *t); /* we run in a vforked child, on its parent's state */
HIDDEN u64 shim_object_new(struct thr *t, u32 type, u64 addr, const char *detail);
HIDDEN void shim_object_say(struct thr *t, u64 id, u32 type, u64 addr, const char *detail); /* again, with what is new of it */

/* The guard: the calling thread's state when an event of this class is to be recorded, else NULL. */
static inline struct thr *shim_ready(u32 cls)
{
	struct thr *t = shim_self.thr;
	if (likely(t && (t->gate & shim_ctl.fast & 1u << cls)))
		return t;
	return shim_ready_slow(cls);
}

#endif

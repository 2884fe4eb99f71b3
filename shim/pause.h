/* Pause and resume of the whole run, and virtual time.
 *
 *   Control.Pause   odd while a pause is wanted or in force. It grows by one at each change, so that it names the
 *                   pause and serves as the futex that parked threads sleep on
 *   a thread        parks before an intercepted call, on return from one before the program sees what it gave, and
 *                   before a signal handler of the program. Slot.Parked then holds the value it sleeps on: as long as Control.Pause
 *                   is that value the thread does nothing for the program
 *   the rest        threads that compute get SIGSTOP with their process, from outside (runtime/pause)
 *   virtual time    the kernel's clock - Control.Clocks[].Offset. Offsets change while Pause is odd alone, when nobody
 *                   uses them: Pause even and the same before and after a reading makes the reading good
 *
 * A call that a pause interrupted, or that expired as the kernel's timeouts do not know of virtual time, is made again
 * with the time that it had left: stand-ins (virtual.c) take the place of the real functions that have timeouts, and
 * printed wrappers of descriptors ask shim_broken. When a call began is enough to know what it missed: Control.Pauses.
 * A call is over, as without us, when a handler of the program ran in it.
 */
#ifndef SHIM_PAUSE_H
#define SHIM_PAUSE_H

#include "ring.h"
#include <signal.h>
#include <time.h>

HIDDEN void shim_park(void); /* returns when no pause is in force */
HIDDEN u64 shim_ran_ns(u64 begin); /* virtual time since these ticks */
HIDDEN int shim_disturbed(u64 begin); /* a pause, or what it does to processes, fell into the call that began then, and no handler of the program did */
HIDDEN int shim_broken_slow(u64 begin, int fd, int out);
HIDDEN int shim_hidden_signal(int sig, siginfo_t *si); /* it is part of a pause and not for the program */
HIDDEN int shim_halts(u32 pid); /* this process was stopped by a pause: how its parent hears of that is not for the program. Its place in the list + 1 */
HIDDEN void *shim_virtual(u32 call, void *real); /* what takes the place of a real function: virtual.c */

typedef long (*syscall_fn)(long, ...);
HIDDEN long shim_virtual_syscall(syscall_fn real, long n, const long *a); /* syscall() */

HIDDEN int shim_clock_index(clockid_t clk); /* in Control.Clocks; -1: a clock of CPU time or of a device */
HIDDEN u64 shim_clock_offset(clockid_t clk);
HIDDEN int shim_clock_read(int (*real)(clockid_t, struct timespec *), clockid_t clk, struct timespec *ts); /* in virtual time */

HIDDEN void *shim_timers_virtual(u32 call, void *real); /* the same of calls that set timers: timers.c */
HIDDEN void shim_timers_boot(void);
HIDDEN void shim_timers_freeze(void); /* of this process, once a pause */
HIDDEN void shim_timers_thaw(void);
HIDDEN struct sigevent *shim_timer_threads(struct sigevent *sev, struct sigevent *room); /* the same, or room: its threads begin in our routine */
HIDDEN void shim_timer_not_made(const struct sigevent *sev, const struct sigevent *room); /* with what that gave: it failed */
HIDDEN void shim_timer_restore(struct sigevent *sev); /* as the program had it, where it is told by what is in its own memory */
HIDDEN int shim_timer_fire(u32 nth); /* what the process's timer of that number, of those with SIGEV_THREAD, has a thread do, by this one; 0: there is none */
HIDDEN int shim_timers_guard(const void *handler); /* this handler of SIGCONT is ours */
HIDDEN void shim_timers_guarded(void); /* the program has set what happens at SIGCONT */

extern u32 shim_guarded HIDDEN;

/* Whether anything can have happened to a call that is not as the kernel has it. */
static inline u32 shim_unquiet(void)
{
	return __atomic_load_n(&shim_ctl.pause, __ATOMIC_ACQUIRE) | shim_guarded;
}

static inline u32 shim_paused(void)
{
	return __atomic_load_n(&shim_ctl.pause, __ATOMIC_ACQUIRE) & 1;
}

/* A call that a wrapper made failed: is it to be made again? */
static inline int shim_broken(u64 begin, int fd, int out)
{
	return shim_unquiet() ? shim_broken_slow(begin, fd, out) : 0;
}

#endif

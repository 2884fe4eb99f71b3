/* Process and thread ids that a re-execution wants: the next fork, clone or new thread gets a number of our choice, by
 * the kernel's ns_last_pid, which is one for all of the pid namespace. So one thread at a time chooses, from
 * shim_pid_want until its child is made: the lock is in a page that all processes of the re-execution share. A holder
 * that dies loses it. A signal handler that interrupts the holder finds it taken by its own thread and is refused.
 *
 * Every refusal is the caller's to deal with: it translates numbers then.
 */
#ifndef SHIM_PIDS_H
#define SHIM_PIDS_H

#include "rules.h"

HIDDEN int shim_pids_open(const char *path); /* the page of this world; 0 or -errno. Children inherit it, a new program opens it again */
HIDDEN int shim_pid_want(u32 id); /* 0: what this thread makes next has this id, and shim_pid_done must follow; else -errno */
HIDDEN int shim_pid_done(i64 id); /* what was made has this id, or none (< 0): 1 when it is the one that was wanted */

#endif

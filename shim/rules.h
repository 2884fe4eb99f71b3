/* The laws of this directory. Everything here runs inside a program that is not ours.
 *
 *  1. The program comes first: a failure of ours is one line on stderr and a LOST record, never a result.
 *  2. errno, signal mask, fds, stack depth: as the real call left them.
 *  3. On the record path no malloc, no stdio, no locale, no lock that the program could hold, no system call, no
 *     Go. Off it, raw system calls (platform.h), with all signals blocked where state changes in more than one
 *     step. No call of ours goes through a symbol that we intercept.
 *  4. One shape for a wrapper: guard (shim_begin), stamp, real call, record (shim_end), return. It is written once,
 *     in wrap.h, and printed for each plain row of the table; hand-written wrappers use the same two calls.
 *  5. One writer a ring. A record becomes part of the stream by one instruction (shim_commit_at on Slot.Pos); until
 *     then it is bytes that nobody reads. A handler must not write where an interrupted writer is still writing: when
 *     it finds one (thr.writing is set, or its pc lies in our text, where fast paths do not set that) it records aside (shim_aside), and the writer's
 *     commit, which then fails, puts that in first and starts over. A handler that jumps away leaves nothing behind.
 *  6. What a writer predicts (keys, last path) is tagged with thr.genx, which changes when a handler begins and
 *     ends and at every flush; a stale store can so only make a prediction miss.
 *  7. State of a thread lives in memory that fork wipes (MADV_WIPEONFORK): the one load of thr.gate tells level,
 *     guard and fork at once.
 *  8. A wrapper may be left by an exception, a jump or cancellation at its real call: it holds nothing there.
 *  9. prophet_ is exported, shim_ across files, nothing for static. Exported through the generated map alone.
 */
#ifndef SHIM_RULES_H
#define SHIM_RULES_H

#include "platform.h"
#include "zlayout.h"
#include "zcalls.h"

#endif

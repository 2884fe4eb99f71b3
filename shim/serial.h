/* Serial: one token for all threads of all processes of the run. A thread has it from the end of one event to the begin
 * of its next, so what lies between two events of a thread overlaps with nothing of any other. Calls that may wait for
 * others, or have an order of their own, happen without it; all others (RE_HOLDS, what is done to files, and what is written to a channel that has
 * room for it) with it, up to their end.
 *
 * Each time that a thread takes the token is a turn, numbered over the whole run (Control.Turns). A thread takes it at
 *
 *	its begin (of a thread, of a program, of a forked child: before its first instruction)
 *	the end of each event
 *	the begin of a signal handler that interrupted it without the token, and of a pthread_once routine
 *	the begin of what the C library still asks for when the process is over, and gives it back at the end of each of that
 *
 * and gives it back when an event begins (one that is made with the token: ends), when such a handler or routine returns, and at its end. A vforked child runs with
 * its parent's token and takes none. So the stream says when turns change, and TagToken which number a turn had: the record
 * stands before the event whose end took it, and for the other places right there (TokenHere). An event without a record
 * took the number after the last one that its stream names; one that took none, as it had the token, has a record that says 0.
 * A handler's records come before the event that it interrupted, so numbers may go back there. A number that no stream
 * has belongs to a thread that was killed, or jumped away, before it could say so.
 *
 * Signals that come when a call is over and waits for its turn come when its event is written: what it did may be what others
 * went on with, so in a re-execution they must not come before it.
 *
 * A holder that died loses the token; so does one that sleeps in a call that we do not see, or that goes on for a second
 * without an event, and for a tenth of that once it has happened. These last two are marked in the record (TokenSlept,
 * TokenSpun) and counted (Control.Broken). The thread is stopped by a signal, and goes on where it was when the token
 * comes to it again (TokenHere): so it spins, or asks for a lock of the C library, in turns of its own, and what it waits
 * for happens in those of others. Where it cannot be stopped it goes on while another runs, up to its next event.
 */
#ifndef SHIM_SERIAL_H
#define SHIM_SERIAL_H

#include "ring.h"

struct iovec;
struct msghdr;

HIDDEN u64 shim_serial_take(int here); /* number<<3 | how; 0: it was ours already. here: not at the end of an event */
HIDDEN void shim_serial_give(void);
HIDDEN int shim_serial_early(int sig, const void *info, void *context); /* 1: its call is over but not written: it comes again then, */
HIDDEN void shim_serial_later(void); /* which is now */
HIDDEN void shim_serial_next(struct ev *e); /* the end of an event that was made with the token */
HIDDEN int shim_serial_holds(const struct ev *e); /* a call that begins */
HIDDEN u64 shim_serial_sum(const struct iovec *v, int n); /* how much all of it is; 0: it is no serial run, or cannot be known */
HIDDEN u64 shim_serial_message(const struct msghdr *m); /* the same; 0, too, where it says to whom */
HIDDEN int shim_serial_opens(int dirfd, const char *path); /* FD_AT_ONCE: to open it waits for nobody */
HIDDEN int shim_sleeps(u32 tid);
HIDDEN int shim_ended(u32 tid); /* nobody need have asked for its status yet */
HIDDEN void shim_serial_boot(void);
HIDDEN void shim_serial_stop(u32 tid); /* who has lost its turn, but has a processor, waits for the next one */
HIDDEN int shim_serial_stopped(int sig, const void *info, const void *context); /* 1: the signal was ours */
HIDDEN int shim_serial_guard(const void *handler); /* is ours */

#endif

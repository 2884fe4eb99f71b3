/* What a call of ours leaves below the stack is not what it leaves in a re-execution, as other code runs there. Programs
 * send, write and hash memory that they never set: so in serial runs, where all that they do is to be the same, nothing
 * is left. What the C library leaves behind in a call that a re-execution answers goes with it, as far down as is known to
 * belong to the stack.
 */
#ifndef SHIM_SCRUB_H
#define SHIM_SCRUB_H

#include "ring.h"

HIDDEN void shim_scrub_boot(void); /* on the first thread's stack */
HIDDEN void shim_scrub(struct ev *e); /* it is written */
HIDDEN void shim_scrub_thread(void); /* its routine is next */
HIDDEN void shim_scrub_guard(void); /* from our constructor: whoever returns to main was compiled without a guard */

#endif

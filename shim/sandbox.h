/* See sandbox.c. */
#ifndef SHIM_SANDBOX_H
#define SHIM_SANDBOX_H

#include "wrap.h"

/* The program is about to install this seccomp filter (NULL: the strict mode). */
HIDDEN void shim_sandbox(const void *program);
/* It is about to call prctl. */
HIDDEN void shim_sandbox_prctl(long option, long a, const void *b);
extern u32 shim_sandboxed HIDDEN; /* it has a filter that may end it for what we have not tried it on */
HIDDEN int shim_sandbox_blind(void); /* this program has been started so that it may not read the time stamp counter */

#endif

/* See sandbox.c. */
#ifndef SHIM_SANDBOX_H
#define SHIM_SANDBOX_H

#include "wrap.h"

/* The program is about to install this seccomp filter (NULL: the strict mode). 1: recording has ended for it. */
HIDDEN int shim_sandbox(const void *program);

#endif

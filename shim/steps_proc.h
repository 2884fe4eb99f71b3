/* Helpers of the steps `obj`, `input`, `pre`, `do` and `post` of Rec (cabi/calls.go) for threads, processes and signals. */
#ifndef SHIM_STEPS_PROC_H
#define SHIM_STEPS_PROC_H

#include "wrap.h"

#endif

/* Helpers of the steps `obj`, `input`, `pre`, `do` and `post` of Rec (cabi/calls.go) for clocks, random sources and the machine's shape. */
#ifndef SHIM_STEPS_TIME_H
#define SHIM_STEPS_TIME_H

#include "wrap.h"

#endif

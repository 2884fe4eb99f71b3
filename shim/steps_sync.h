/* Helpers of the steps `obj`, `input`, `pre`, `do` and `post` of Rec (cabi/calls.go) for synchronisation. */
#ifndef SHIM_STEPS_SYNC_H
#define SHIM_STEPS_SYNC_H

#include "wrap.h"

#endif

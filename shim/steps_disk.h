/* Helpers of the steps `obj`, `input`, `pre`, `do` and `post` of Rec (cabi/calls.go) for descriptors and files: what comes to be, what goes, what is kept before it changes. */
#ifndef SHIM_STEPS_DISK_H
#define SHIM_STEPS_DISK_H

#include "wrap.h"

#endif

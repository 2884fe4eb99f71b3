/* Helpers of the steps `obj`, `input`, `pre`, `do` and `post` of Rec (cabi/calls.go) for sockets and addresses. */
#ifndef SHIM_STEPS_NET_H
#define SHIM_STEPS_NET_H

#include "wrap.h"

#endif

/* What printed wrappers may name: the types of all prototypes, and the helpers of the steps of Rec. */
#ifndef SHIM_WRAP_ALL_H
#define SHIM_WRAP_ALL_H

#include "wrap.h"
#include <sys/types.h>
#include <sys/stat.h>
#include <unistd.h>
#include <fcntl.h>

#define INPUT_ROOM 256 /* longest structured result */

#endif

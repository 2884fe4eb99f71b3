/* What printed wrappers may name: the types of all prototypes, and the helpers of the steps of Rec. */
#ifndef SHIM_WRAP_ALL_H
#define SHIM_WRAP_ALL_H

#include "wrap.h"
#include <aio.h>
#include <sys/types.h>
#include <sys/stat.h>
#include <unistd.h>
#include <fcntl.h>
#include <utmp.h>
#include <utmpx.h>

#define INPUT_ROOM 320 /* longest structured result */

#include "steps_disk.h"
#include "steps_net.h"
#include "steps_time.h"
#include "steps_proc.h"
#include "steps_sync.h"

#endif

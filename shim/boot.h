/* See boot.c. */
#ifndef SHIM_BOOT_H
#define SHIM_BOOT_H

#include "platform.h"

HIDDEN void shim_wake_go(void); /* starts the Go runtime of this library unless it runs */
HIDDEN void shim_boot_early(void); /* a call has come before our constructor */

#endif

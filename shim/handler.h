/* The program's signal handlers: see hook_signal.c. */
#ifndef SHIM_HANDLER_H
#define SHIM_HANDLER_H

#include "wrap.h"

HIDDEN int shim_handled(int sig); /* the program has a handler for it */

#endif

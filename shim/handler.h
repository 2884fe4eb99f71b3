/* The program's signal handlers: see hook_signal.c. */
#ifndef SHIM_HANDLER_H
#define SHIM_HANDLER_H

#include "wrap.h"

/* As the system call takes and gives it. */
struct kernel_action {
	void (*handler)(int);
	unsigned long flags;
	unsigned long rest[2]; /* where a handler returns to, on some machines, and the mask */
};

HIDDEN int shim_handled(int sig); /* the program has a handler for it */
HIDDEN void shim_handler_asked(int sig, struct kernel_action *k); /* what the kernel said that it has becomes what the program gave */
/* What the kernel is to be given of what the program gives. */
HIDDEN const struct kernel_action *shim_handler_given(int sig, const struct kernel_action *k, struct kernel_action *mine);

#endif

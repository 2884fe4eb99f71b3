/* System calls by number that do what a function with a row does, with the same arguments: they are that row's events (Number in
 * cabi/calls*.go, znumber.c). A recording asks the kernel as the program did: not the function, which could be somebody else's, and
 * where a thread could be cancelled. */
#ifndef SHIM_NUMBER_H
#define SHIM_NUMBER_H

#include "wrap_all.h"
#include <sys/syscall.h>

HIDDEN int shim_number(void *pc, long n, const long *a, long *r); /* 0: there is no such row */

static inline long shim_by_number(long n, const long *a)
{
	return ((syscall_fn)shim_real(CALL_syscall))(n, a[0], a[1], a[2], a[3], a[4], a[5]);
}

#endif

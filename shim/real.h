/* The real functions: found in the objects loaded after us, without dlsym.
 *
 * dlsym may allocate, lock and must not run in a signal handler; 700 look-ups would also cost more than starting
 * /bin/true. Instead the ELF hash tables of the objects behind us are read, each function at its first use: no lock,
 * no allocation, no libc. IFUNCs are called as the dynamic linker would.
 */
#ifndef SHIM_REAL_H
#define SHIM_REAL_H

#include "rules.h"

extern HIDDEN void *shim_real_table[];
HIDDEN void *shim_resolve(u32 call); /* fills the table; ends the program loudly if there is no such function */
HIDDEN void *shim_resolve_maybe(u32 call);
HIDDEN void *shim_lookup_late(u32 call); /* also where a library that came by dlopen has it; 0: nowhere */
HIDDEN int shim_from(u32 call, const char *library); /* the real function is of the library whose file name begins so, or there is none */
HIDDEN void *shim_lookup(u32 call); /* leaves the table alone */
HIDDEN void shim_scope_fix(void); /* from our constructor: all objects loaded so far are in the global scope */
HIDDEN int shim_imports(const char *name); /* an object that is loaded calls it */
HIDDEN void *shim_find(const char *name, const char *version);

static inline void *shim_real(u32 call)
{
	void *f = shim_real_table[call];
	if (unlikely(!f))
		f = shim_resolve(call);
	return f;
}

/* NULL where there is none: for functions of libraries that a program need not have. */
static inline void *shim_real_maybe(u32 call)
{
	void *f = shim_real_table[call];
	return likely(f != 0) ? f : shim_resolve_maybe(call);
}

/* Calls whose real function is glibc's own, none that another library put before it. */
extern HIDDEN u8 shim_direct[];
HIDDEN void shim_cancels(void); /* from now on a thread may be cancelled, also the only one: all go through the real functions */

/* REAL(read)(fd, buf, n): call ids have rows' names. */
#define REAL(name) ((__typeof__(&name))shim_real(CALL_##name))

#endif

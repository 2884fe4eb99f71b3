/* Who called: one step up a stack, by the unwind tables of the modules or by frame pointers. See cfi.c. */
#ifndef SHIM_CFI_H
#define SHIM_CFI_H

#include "platform.h"

/* A walk up a stack. All that is read of the stack lies in [low, high), page by page seen to be there. */
struct walk {
	u64 pc, sp, fp, lr; /* lr: where a leaf's caller is kept, 0 when not known */
	u64 low, high;
	u64 page; /* the last one that could be read */
	u32 exact; /* pc is no return address: a signal interrupted there */
	u32 switched; /* stacks changed without a signal, as below Go's calls of C */
	u32 leaf; /* lr counts */
};

enum {
	WALK_ON,
	WALK_END, /* the outermost frame has been seen */
	WALK_LOST, /* nothing tells the caller */
};

HIDDEN void shim_walk_from(struct walk *w, u64 pc, u64 sp, u64 fp, u64 lr, u32 exact);
HIDDEN int shim_walk(struct walk *w);
HIDDEN void shim_cfi_forget(void); /* modules are gone */

#endif

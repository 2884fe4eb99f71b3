/* Modules: what pcs belong to. Known ones are kept so that a pc outside of them asks for another look.
 *
 * Where a module was unloaded another may come to lie. In the trace a pc has the number of its module's generation above
 * its address, in bits that no address of a program has, and so have the module's own place and bias: no two modules of a
 * process lie in one place there. As long as nothing was unloaded it is 0. One that comes back to where it lay is itself again. */
#ifndef SHIM_MODULES_H
#define SHIM_MODULES_H

#include "run.h"

#define MODULES_MAX 512
HIDDEN void shim_modules(struct thr *t); /* look what is loaded now */
HIDDEN void shim_modules_again(void); /* none has been written down */
HIDDEN u32 shim_module_at(u64 pc); /* its number, below MODULES_MAX; ~0: it lies in none that is known */
HIDDEN int shim_module_known(u64 pc); /* the trace has the module that it lies in */
HIDDEN u64 shim_module_pc(u64 pc); /* as it is in the trace: with its module's generation */
#define SHIM_NOWHERE 0xfff /* the generation of a pc where a module was, when nobody knows what is there now */
extern u32 shim_unloads HIDDEN; /* how often modules were found to be gone */
HIDDEN int shim_module_frames(u64 pc, u64 *low, u64 *high, u64 *frames); /* where that is, and its table of frames; 0: it has none */
HIDDEN int shim_module_of(struct thr *t, u64 pc); /* a key is defined for this pc; 1: modules were looked for */

#endif

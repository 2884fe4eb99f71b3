/* Reads of the time stamp counter by the instruction itself, in serial runs. Nothing of the C library is asked there, so
 * each such instruction that is found in a program's code is replaced by a jump to a piece of code that asks us.
 *
 * Found are those whose two halves are put together soon (a shift by 32 bits within 16 bytes) or moved elsewhere at once, and those that the
 * instructions from the start of their function on lead to; and that stand
 * before instructions that mean the same elsewhere: a jump needs five bytes, and the instruction has two, or three (rdtscp). Others are left
 * as they are, and so are those of constructors that run before us. Libraries that are loaded later are looked through when
 * the dynamic linker tells debuggers of them, before they run.
 */
#ifndef SHIM_STAMPS_H
#define SHIM_STAMPS_H

#include "rules.h"

#if SHIM_STAMPS
HIDDEN void shim_stamps_boot(void);
#else
static inline void shim_stamps_boot(void)
{
}
#endif

#endif

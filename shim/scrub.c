/* See scrub.h. */
#include "scrub.h"
#include "step.h"
#include "real.h"
#include "run.h"
#include <sys/auxv.h>
#include <sys/resource.h>

#define DEPTH 16384 /* of a stack whose bounds are known */
#define DEPTH_ANY 1024 /* we have used as much ourselves just now */
#define DEPTH_BEGUN 4096 /* at a thread's beginning: even the smallest stacks have as much */
#define ABOVE 65536 /* of where we are first asked: constructors may run far below main */

static u64 low, high; /* of the first thread's stack */
static u32 wide; /* registers that the C library may have used in the program's call */

void shim_scrub_boot(void)
{
	struct rlimit l = {0, 0};
	u64 sp = (u64)__builtin_frame_address(0), size;
	u32 i;
	if (!shim_ctl.serial)
		return;
	/* A re-execution does not look for those that others stand in for. */
	for (i = 0; i < CALLS_MAX; i++)
		shim_real_maybe(i);
	wide = shim_wide_registers();
	sys(SYS_prlimit64, 0, RLIMIT_STACK, 0, &l);
	size = l.rlim_cur > 8u << 20 ? 8u << 20 : l.rlim_cur;
	if (size < 8 * ABOVE || shim_imports("makecontext")) /* a stack in the middle of this one would have live frames below */
		return;
	high = sp + ABOVE;
	low = sp - size / 2;
}

/* Runs on nothing but registers: n bytes below, beyond the red zone's reach of its caller, and what a call need not keep. */
static NOINLINE void clear(u64 n)
{
	shim_clear_below(n, wide);
}

void shim_scrub(struct ev *e)
{
	u64 sp = (u64)__builtin_frame_address(0);
	e->begin = e->end = e->turn = e->token = e->hash = e->data_len = 0;
	e->data = 0;
	e->x = 0;
	e->note = e->data_kind = e->inlen = e->held = 0;
	clear(sp < high && sp - DEPTH > low && !e->t->depth ? DEPTH : DEPTH_ANY); /* so may a handler's have */
	shim_step_go(e->t);
}

void shim_scrub_thread(void)
{
	if (shim_ctl.serial)
		clear(DEPTH_BEGUN);
}

/* What stands between a frame's buffers and its return address is random, and stays on the stack when the frame is gone. The
 * kernel's random bytes, of which it was made, are there for programs to read. */
void shim_scrub_guard(void)
{
	u64 *random = (u64 *)getauxval(AT_RANDOM), guard = shim_hash64(&shim_run.proc, sizeof shim_run.proc, 0x70726f70);
	if (random) {
		random[0] = guard;
		random[1] = shim_hash64(&guard, sizeof guard, 0);
	}
	SHIM_GUARD_SET(guard & ~0xffull);
	if (high)
		clear(DEPTH); /* what we did at the start */
}

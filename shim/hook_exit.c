/* The end of a process on purpose. Each is written before, as it does not return; then all rings go out. What the
 * program's own handlers record after that goes out at once (thread.c). exit itself needs no more than its event:
 * boot.c's handler is the last that it runs.
 */
#include "wrap.h"
#include "handler.h"
#include "replay.h"
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* A child that has recorded nothing does not begin now. In a serial re-execution it has begun, as its turn is in its stream. */
static int unheard(u32 call)
{
	struct thr *t = shim_self.thr;
	const struct expect *x;
	if (!shim_wiped->alive)
		return 1;
	if (likely(!shim_replays) || !shim_ctl.serial || shim_run.how != PROPHET_ProcForked || !t || !t->re || t->tid != shim_run.pid || t->re->th->event)
		return 0;
	x = shim_expect(&t->re->ex);
	return x->kind != EXPECT_EVENT || x->call != call;
}

static void written(u32 call, void *pc, i64 status)
{
	struct ev e;
	if (shim_run.state != RUN_ON || unheard(call))
		return;
	if (!shim_begin(&e, call, CLASS_thread, pc))
		return;
	shim_end(&e, WRAP_ONCE);
	e.f1 = (u64)status;
	shim_done(&e);
}

EXPORT void exit(int status)
{
	written(CALL_exit, CALLER(), status);
	REAL(exit)(status);
	__builtin_unreachable();
}

EXPORT void _exit(int status)
{
	written(CALL__exit, CALLER(), status);
	shim_process_over(PROPHET_ExitQuick, status);
	REAL(_exit)(status);
	__builtin_unreachable();
}

EXPORT void _Exit(int status)
{
	written(CALL__Exit, CALLER(), status);
	shim_process_over(PROPHET_ExitQuick, status);
	REAL(_Exit)(status);
	__builtin_unreachable();
}

EXPORT void quick_exit(int status)
{
	written(CALL_quick_exit, CALLER(), status);
	shim_process_over(PROPHET_ExitQuick, status);
	REAL(quick_exit)(status);
	__builtin_unreachable();
}

/* A handler of SIGABRT may jump away, and the program goes on. Without one nothing survives. */
EXPORT void abort(void)
{
	written(CALL_abort, CALLER(), 0);
	if (shim_run.state == RUN_ON) {
		if (shim_handled(SIGABRT))
			shim_exit_flush(PROPHET_ExitAbort, SIGABRT);
		else
			shim_process_over(PROPHET_ExitAbort, SIGABRT);
	}
	REAL(abort)();
	__builtin_unreachable();
}

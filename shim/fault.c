/* Faults that end a process of a re-execution: who has one waits until the other threads are where they were when the
 * process was killed, then has it again. Only where the program handles it not; queries do not see ours.
 */
#include "replay.h"
#include <signal.h>

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
#define FAULTS (sizeof faults / sizeof *faults)

static void fault(int sig, siginfo_t *si, void *context)
{
	struct thr *t = shim_self.thr;
	struct sigaction a;
	(void)context;
	if (si->si_code > 0 && t && t->begun && t->re && shim_wiped->alive && !shim_in_vfork(t)) {
		struct expect *x = shim_expect(&t->re->ex);
		if (x->kind == EXPECT_END) {
			__atomic_store_n(&t->re->th->state, PROPHET_TurnEnd, __ATOMIC_RELEASE);
			shim_re_await(t);
		}
	}
	shim_zero(&a, sizeof a);
	REAL(sigaction)(sig, &a, 0); /* SIG_DFL */
	if (si->si_code <= 0) /* it does not come again by itself */
		sys(SYS_tgkill, shim_run.pid, sys(SYS_gettid), sig);
}

int shim_fault_guard(const void *handler)
{
	return handler == (const void *)(u64)fault;
}

void shim_fault_boot(void)
{
	u32 i;
	for (i = 0; i < FAULTS; i++) {
		struct sigaction a;
		if (REAL(sigaction)(faults[i], 0, &a) != 0 || a.sa_handler != SIG_DFL)
			continue;
		shim_zero(&a, sizeof a);
		a.sa_sigaction = fault;
		a.sa_flags = SA_SIGINFO | SA_ONSTACK;
		REAL(sigaction)(faults[i], &a, 0);
	}
}

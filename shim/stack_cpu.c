/* Stacks by CPU time (stacks=cpu): each thread has a timer of its own CPU time, whose signal, SIGPROF, finds it computing.
 *
 * What a program sees of it is kept small: the handler is ours while the program has none, and says so to nobody; a call
 * that the signal broke off is made again, as after a pause (pause.h). A program that uses SIGPROF itself comes
 * first: as soon as it installs a handler, ignores the signal, waits for it, or sets a timer that sends it, all of
 * this process's timers go, and the trace says so (TagUnseen). So do they where a signal of ours must not be: a serial run, a
 * run that begins with another disposition than the default, a thread that blocks the signal from its start.
 *
 * The handler writes only where it interrupts no writer; what a thread ran until it could is told by its next
 * sample, as each carries the thread's CPU time.
 */
#include "stack.h"
#include "thread.h"
#include "wrap_all.h"
#include <errno.h>
#include <signal.h>

extern const char __ehdr_start[] HIDDEN, etext[] HIDDEN;

enum { CPU_NEW, CPU_ON, CPU_OFF };
static u32 state; /* of this process; a forked child inherits the handler, but no timers */

#define SIGSET(sig) (1ull << ((sig)-1))
#define COOKIE 0x70726f70 /* what our timers' signals carry */

static FAR int ours(const siginfo_t *si)
{
	return si->si_code == SI_TIMER && si->si_value.sival_int == COOKIE;
}

/* Somebody else sent it, to a program that has the default: that ends the process. */
static FAR void by_default(int sig)
{
	struct sigaction a;
	shim_zero(&a, sizeof a);
	REAL(sigaction)(sig, &a, 0);
	sys(SYS_tgkill, sys(SYS_getpid), sys(SYS_gettid), sig);
}

static FAR void tick(int sig, siginfo_t *si, void *context)
{
	struct thr *t = shim_self.thr;
	int err = errno;
	u64 pc = SHIM_CONTEXT_PC(context);
	if (!ours(si)) {
		by_default(sig);
		return;
	}
	shim_guarded = 1;
	if (!t || !t->begun || t->vfork || shim_run.state != RUN_ON || shim_self.off || !shim_wiped->alive || shim_run.exiting)
		return;
	t->hidden = shim_ticks();
	if (!t->writing && !t->mute && !(pc >= (u64)__ehdr_start && pc < (u64)etext) && shim_ctl.level & 1u << CLASS_sync)
		shim_stack_sample(t, context);
	errno = err;
}

int shim_stack_guard(const void *handler)
{
	return handler == (const void *)(u64)tick;
}

int shim_stack_signal(int sig, const siginfo_t *si)
{
	return sig == SIGPROF && shim_ctl.stackcpu && ours(si);
}

static FAR void handle(struct sigaction *a)
{
	shim_zero(a, sizeof *a);
	a->sa_sigaction = tick;
	a->sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
}

static FAR void start(struct thr *t)
{
	struct sigaction was, mine;
	if (state == CPU_OFF)
		return;
	if (REAL(sigaction)(SIGPROF, 0, &was) != 0)
		return;
	if (was.sa_handler != SIG_DFL && !shim_stack_guard((const void *)was.sa_sigaction)) {
		shim_stack_yield(t);
		return;
	}
	if (was.sa_handler == SIG_DFL) {
		handle(&mine);
		if (REAL(sigaction)(SIGPROF, &mine, 0) != 0)
			return;
	}
	state = CPU_ON;
}

void shim_stack_timer(struct thr *t, const u64 *mask)
{
	struct sigevent ev;
	struct itimerspec at;
	u64 every;
	int id = 0, err = errno;
	if (likely(!shim_ctl.stackcpu) || !shim_stack_every || shim_ctl.serial || *mask & SIGSET(SIGPROF))
		return;
	start(t);
	if (state != CPU_ON)
		return;
	shim_zero(&ev, sizeof ev);
	ev.sigev_notify = SIGEV_THREAD_ID;
	ev.sigev_signo = SIGPROF;
	ev.sigev_value.sival_int = COOKIE;
	ev._sigev_un._tid = (int)t->tid;
	every = 1000000000u / shim_ctl.stackhz;
	at.it_interval.tv_sec = at.it_value.tv_sec = (time_t)(every / 1000000000u);
	at.it_interval.tv_nsec = at.it_value.tv_nsec = (long)(every % 1000000000u);
	if (sys(SYS_timer_create, 3 /* CLOCK_THREAD_CPUTIME_ID */, &ev, &id) == 0) {
		t->cpu_timer = (u32)id + 1;
		sys(SYS_timer_settime, id, 0, &at, 0);
	}
	errno = err;
}

void shim_stack_timer_end(struct thr *t)
{
	u32 id = __atomic_exchange_n(&t->cpu_timer, 0, __ATOMIC_RELAXED);
	if (unlikely(id))
		sys(SYS_timer_delete, id - 1);
}

/* The program wants the signal. */
FAR void shim_stack_yield(struct thr *t)
{
	struct sigaction a, was;
	struct thr *o;
	u8 b[64], *p;
	int err = errno;
	if (__atomic_exchange_n(&state, CPU_OFF, __ATOMIC_RELAXED) == CPU_OFF)
		return;
	shim_lock(&shim_wiped->threads);
	for (o = shim_wiped->list; o; o = o->next)
		shim_stack_timer_end(o);
	shim_unlock(&shim_wiped->threads);
	shim_take_back(SIGSET(SIGPROF));
	if (REAL(sigaction)(SIGPROF, 0, &was) == 0 && shim_stack_guard((const void *)was.sa_sigaction)) {
		shim_zero(&a, sizeof a);
		REAL(sigaction)(SIGPROF, &a, 0);
	}
	if (t && t->begun) {
		p = put_v(b, PROPHET_TagUnseen);
		p = put_v(p, PROPHET_UnseenCPU);
		p = put_v(p, 0);
		p = put_v(p, 0);
		shim_record(t, b, (u32)(p - b));
	}
	errno = err;
}

int shim_stack_yields(struct thr *t, int sig, int doing, struct sigaction *mine)
{
	if (likely(sig != SIGPROF || state != CPU_ON))
		return 0;
	if (doing == 1) { /* the default: as before, as far as anybody can tell */
		handle(mine);
		return 1;
	}
	shim_stack_yield(t);
	return 0;
}

void shim_pre_sigprof_set(struct ev *e, const sigset_t *set)
{
	if (unlikely(state == CPU_ON) && shim_readable(set, 8) && *(const u64 *)set & SIGSET(SIGPROF))
		shim_stack_yield(e->t);
}

void shim_pre_sigprof_timer(struct ev *e, int which)
{
	if (unlikely(state == CPU_ON) && which == ITIMER_PROF)
		shim_stack_yield(e->t);
}

void shim_pre_sigprof_event(struct ev *e, const struct sigevent *ev)
{
	if (unlikely(state == CPU_ON) && ev && shim_readable(ev, sizeof *ev) && ev->sigev_signo == SIGPROF && ev->sigev_notify != SIGEV_NONE)
		shim_stack_yield(e->t);
}

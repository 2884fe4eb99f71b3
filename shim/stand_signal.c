/* Signals and cancellation in a re-execution. A signal of the trace is sent by the thread to itself where its stream has
 * it: before the call that comes next, inside of it, or before a handler returns. One that came while the program only
 * computes comes where it was (step.c), or when it asks for something, or has computed for a while. Real ones are not the program's: each handler
 * is ours (hook_signal.c) and lets through what the trace has; what would end the program, and has no handler, gets one
 * of ours. A fault is never sent: it happens again, or is missed.
 */
#include "family.h"
#include "feed.h"
#include "modules.h"
#include "side.h"
#include "step.h"
#include "steps_proc.h"
#include "steps_time.h"
#include "token.h"
#include <time.h>

#define BIT(sig) (1ull << ((sig)-1))
#define NUDGE_NS 100000000 /* of computing */

static int is_fault(u64 sig, i64 code)
{
	return sig && sig < 65 && BIT(sig) & SHIM_FAULTS && code > 0;
}

int shim_re_is_fault(const struct expect *x)
{
	return is_fault(x->f1, (i64)x->f2);
}

static void untimed(struct re *re)
{
	if (re->timer)
		sys(SYS_timer_delete, re->timer - 1);
	re->timer = 0;
}

/* A signal is next, which no call brings: the thread may wait for it by computing. */
static void timed(struct re *re, u32 sig)
{
	struct sigevent e;
	struct itimerspec when = {{0, NUDGE_NS}, {0, NUDGE_NS}};
	int id = 0;
	shim_zero(&e, sizeof e);
	e.sigev_notify = SIGEV_THREAD_ID;
	e.sigev_signo = (int)sig;
	e._sigev_un._tid = (int)sys(SYS_gettid);
	if (sys(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &e, &id) != 0)
		return;
	re->timer = (u32)id + 1;
	sys(SYS_timer_settime, id, 0, &when, 0);
}

/* What only tells of what has been done. */
static void skip(struct expects *ex)
{
	for (;;) {
		u32 kind = shim_expect(ex)->kind;
		if (kind != EXPECT_FORK && kind != EXPECT_MARK && kind != EXPECT_EXIT && kind != EXPECT_LEFT)
			break;
		shim_expect_drop(ex);
	}
}

/* Whether nothing is asked for any more once the handler of the signal at that place is done: it may not come later. */
static int last(struct expects *ex, u32 i)
{
	u32 depth = 0;
	for (;; i++) {
		const struct expect *x = shim_expect_at(ex, i);
		if (!x)
			return 0;
		if (x->kind == EXPECT_SIGNAL)
			depth++;
		else if (x->kind == EXPECT_SIGRET)
			depth -= depth > 0;
		else if (x->kind == EXPECT_END)
			return 1;
		else if (x->kind == EXPECT_BAD || (x->kind == EXPECT_EVENT && !depth))
			return 0;
	}
}

/* Whether all that is left of a thread may be what unwinding it takes, which begins in libgcc: one that computes without a call can
 * be cancelled there. */
static int unwinds(struct expects *ex, u32 i)
{
	const struct expect *x;
	while ((x = shim_expect_at(ex, i)) && x->kind == EXPECT_TOKEN)
		i++;
	if (!x || x->kind != EXPECT_EVENT || (x->call != CALL_pthread_once && x->call != CALL___pthread_once))
		return 0;
	while ((x = shim_expect_at(ex, ++i)) && x->kind != EXPECT_LEFT && x->kind != EXPECT_BAD)
		if (x->kind == EXPECT_END)
			return 1;
	return 0;
}

/* Whether it came as the thread was about to end: in our code, or the C library's, and not on its way out of the call before. */
static int at_end(const struct re *re, const struct expect *x)
{
	return re->step.returns && x->pc && !shim_expect_told(x) && shim_expect_pc(x) + re->step.moved != re->step.site;
}

/* One that came where its thread had lost its turn comes as the thread is made to wait, or asks for its next call. */
static int turnless(struct expects *ex, u32 i)
{
	const struct expect *next = shim_expect_at(ex, i + 1);
	return next && next->kind == EXPECT_TOKEN;
}

void shim_re_look(struct thr *t)
{
	struct re *re = t->re;
	u32 i, spent = 0;
	for (i = 0;; i++) {
		struct expect *x = shim_expect_at(&re->ex, i);
		if (x && (x->kind == EXPECT_FORK || x->kind == EXPECT_MARK || x->kind == EXPECT_EXIT))
			continue;
		if (x && x->kind == EXPECT_SIGNAL)
			shim_side_inside(t, i);
		if (x && x->kind == EXPECT_END)
			spent = 1;
		else if (x && x->kind == EXPECT_SIGNAL && !x->call && !is_fault(x->f1, (i64)x->f2))
			spent = 2;
		if (spent == 2 && t->begun && last(&re->ex, i) && !at_end(re, x)) {
			skip(&re->ex);
			shim_re_deliver(t);
			if (!(re = t->re) || shim_re_detached())
				return;
			i = ~0u; /* once more */
			spent = 0;
			continue;
		}
		if (spent == 2 && !re->timer && !turnless(&re->ex, i) && !shim_step_begin(t, x, i))
			timed(re, (u32)x->f1);
		break;
	}
	__atomic_store_n(&re->th->spent, spent, __ATOMIC_RELEASE);
	if (spent == 1 || unwinds(&re->ex, i))
		shim_re_may_cancel(t);
}

/* A signal that came in our code below the C library's, before a thread or a handler had come to the program's: those that were
 * pending as they began do. */
static int at_start(const struct expect *x)
{
	return x->kind == EXPECT_SIGNAL && !x->call && x->pc && !shim_expect_told(x) && !shim_re_is_fault(x) &&
	       shim_module_at(shim_expect_pc(x)) == shim_module_at((u64)REAL(sigaction));
}

void shim_re_starts(struct thr *t, const void *handler)
{
	struct re *re;
	while (t->re && !shim_re_detached() && at_start(shim_expect(&t->re->ex)))
		shim_re_deliver(t);
	if (!(re = t->re))
		return;
	if (handler && shim_expect_told(shim_expect(&re->ex))) {
		re->step.site = (u64)handler;
		re->step.returns = re->step.begins = 1;
	}
	shim_re_look(t);
	if (t->re == re)
		re->step.returns = re->step.begins = 0;
}

void shim_re_stopped(struct thr *t)
{
	const struct expect *x;
	while (t->re && !shim_re_detached()) {
		x = shim_expect(&t->re->ex);
		if (!at_start(x) && (x->kind != EXPECT_SIGNAL || x->call || shim_re_is_fault(x) || !turnless(&t->re->ex, 0)))
			return;
		shim_re_deliver(t);
	}
}

static void info(siginfo_t *si, const struct expect *x)
{
	shim_zero(si, sizeof *si);
	si->si_signo = (int)x->f1;
	si->si_code = (int)(i64)x->f2;
	if (x->informed)
		__builtin_memcpy((u8 *)si + 16, x->info, sizeof x->info);
	else
		si->si_pid = (int)x->f3;
}
_Static_assert(offsetof(siginfo_t, si_pid) == 16, "what is behind si_code on 64-bit machines");

void shim_re_nudge(struct thr *t)
{
	const struct expect *x;
	skip(&t->re->ex);
	x = shim_expect(&t->re->ex);
	if (x->kind == EXPECT_SIGNAL && !t->re->timer)
		timed(t->re, (u32)x->f1);
}

void shim_re_queue(struct thr *t)
{
	siginfo_t si;
	skip(&t->re->ex);
	info(&si, shim_expect(&t->re->ex));
	t->re->injected = (u32)si.si_signo;
	sys(SYS_rt_tgsigqueueinfo, sys(SYS_getpid), sys(SYS_gettid), si.si_signo, &si);
}

/* The handler that it runs takes it off the queue. */
void shim_re_deliver(struct thr *t)
{
	struct re *re = t->re;
	const struct expect *x = shim_expect(&re->ex);
	u32 sig = (u32)x->f1, head = re->ex.head, outside = re->delivers;
	u64 bit = sig && sig < 65 ? BIT(sig) : 0, was = 0;
	if (!bit || is_fault(sig, (i64)x->f2)) {
		shim_re_differs(t, x, PROPHET_DiffersSignal, 0, sig, 0, "");
		return;
	}
	if (turnless(&re->ex, 0)) {
		shim_token_give(t);
		shim_token_await(t, shim_expect_at(&re->ex, 1)); /* others may have to set its handler first */
		if (shim_re_detached())
			return;
	}
	re->delivers = t->depth + 1; /* one that is not blocked comes as it is sent */
	shim_re_queue(t);
	sys(SYS_rt_sigprocmask, SIG_UNBLOCK, &bit, &was, 8);
	if (was & bit)
		sys(SYS_rt_sigprocmask, SIG_BLOCK, &bit, 0, 8);
	if (t->re != re)
		return; /* a child that the handler forked */
	re->delivers = outside;
	re->busy = 1;
	re->injected = 0;
	if (re->ex.head == head)
		shim_re_differs(t, shim_expect(&re->ex), PROPHET_DiffersSignal, 0, sig, 0, "");
}

void shim_re_signals(struct thr *t, u32 call)
{
	const struct expect *x;
	u32 inside = 0;
	for (;;) {
		skip(&t->re->ex);
		x = shim_expect(&t->re->ex);
		/* One that came as the handler of such a one was about to return came inside, too: the call's own event is still to come. */
		if (x->kind != EXPECT_SIGNAL || (x->call != call && (x->call || !inside)) || shim_re_detached())
			return;
		inside = 1;
		shim_re_deliver(t);
		if (!t->re)
			return;
	}
}

int shim_re_signal(struct thr *t, int sig, siginfo_t *si)
{
	struct re *re = t->re;
	struct expect *x;
	int fault = is_fault((u64)sig, si->si_code), own = fault || (sig == SIGABRT && si->si_pid == (int)sys(SYS_getpid)); /* abort's */
	if (re->injected != (u32)sig && !own && !(re->timer && si->si_code == SI_TIMER && !re->busy))
		return 0; /* it may have interrupted us: nothing is looked at */
	skip(&re->ex);
	x = shim_expect(&re->ex);
	if (x->kind == EXPECT_SIGNAL && x->f1 == (u64)sig) {
		if (!fault)
			info(si, x);
		if (!x->call && !own)
			__atomic_add_fetch(re->step.there ? &shim_index->placed : &shim_index->signals, 1, __ATOMIC_RELAXED);
		re->step.there = 0;
		re->injected = 0;
		untimed(re);
		re->th->spent = 0;
		re->handlers++;
		shim_expect_drop(&re->ex);
		return 1;
	}
	if (fault) {
		shim_re_differs(t, x, PROPHET_DiffersFault, 0, 0, (u64)sig, "");
		shim_re_off(t); /* it is handled as it came */
	}
	return fault;
}

void shim_re_sigret(struct thr *t, int sig)
{
	struct expect *x;
	t->re->busy = 1;
	for (;;) {
		skip(&t->re->ex);
		x = shim_expect(&t->re->ex);
		if (x->kind != EXPECT_SIGNAL || shim_re_detached())
			break;
		shim_re_deliver(t);
	}
	if (x->kind == EXPECT_SIGRET && x->f1 == (u64)sig) {
		t->re->handlers -= t->re->handlers > 0;
		shim_expect_drop(&t->re->ex);
		/* Who delivered it looks itself what comes next: a storm's handlers would lie on one another. */
		if (t->re->delivers != t->depth && shim_expect(&t->re->ex)->kind != EXPECT_EVENT)
			shim_re_look(t);
	} else if (x->kind != EXPECT_END) {
		shim_re_differs(t, x, PROPHET_DiffersCall, 0, 0, 0, "");
	}
	t->re->busy = 0;
}

/* Ends */

static void default_of(int sig)
{
	struct sigaction a;
	shim_zero(&a, sizeof a);
	TRUE(sigaction)(sig, &a, 0);
}

/* As it was ended then: all has been done. */
static void end_by(u32 sig)
{
	u64 bit = BIT(sig), no_core[2] = {0, 0};
	if (sig != SIGKILL)
		default_of((int)sig);
	sys(SYS_prlimit64, 0, RLIMIT_CORE, no_core, 0);
	sys(SYS_kill, sys(SYS_getpid), sig);
	sys(SYS_rt_sigprocmask, SIG_UNBLOCK, &bit, 0, 8);
}

/* What vfork's parent is told of its child: the signal that ended it. Killed, where nobody asked. */
static u32 told_of(struct thr *t, i64 child)
{
	struct expect *x;
	u32 i, status;
	for (i = 0; (x = shim_expect_at(&t->re->ex, i)) && x->kind != EXPECT_END && x->kind != EXPECT_BAD; i++) {
		if (x->kind != EXPECT_EVENT || x->ret != child)
			continue;
		status = 0;
		if (x->call == CALL_waitpid || x->call == CALL___waitpid || x->call == CALL_wait4)
			status = (u32)x->f3;
		else if (x->call == CALL_wait || x->call == CALL___wait)
			status = (u32)x->f1;
		else if (x->call == CALL_wait3)
			status = (u32)x->f2;
		if (WIFSIGNALED(status))
			return WTERMSIG(status);
	}
	return SIGKILL;
}

void shim_re_vfork_ends(struct thr *t)
{
	end_by(told_of(t, (i64)t->re->vforked));
}

void shim_re_wait_for_end(struct thr *t, u32 state)
{
	struct timespec ts = {0, 1000000};
	u32 death;
	if (state != PROPHET_TurnEnd) {
		TRUE(pause)();
		return;
	}
	shim_re_may_cancel(t);
	TRUE(pthread_testcancel)();
	death = shim_family_death(t->proc);
	if (death && shim_family_over(t->proc, t->uid))
		end_by(death);
	sys(SYS_nanosleep, &ts, 0);
}

/* What would end the process if nobody handled it. */
int shim_re_guarded(int sig)
{
	return shim_replays && sig > 0 && sig < 65 && (SHIM_FAULTS | BIT(SIGABRT) | BIT(SIGPIPE)) & BIT(sig);
}

/* A fault, or an abort inside the C library: the other threads get where they were, then it happens once more. */
void shim_re_guard_signal(int sig, siginfo_t *si, void *context)
{
	struct thr *t = shim_self.thr;
	if (shim_step_trap(sig, si, context))
		return;
	if (sig == SIGPIPE)
		return; /* of a reader who is gone sooner now */
	if (si->si_code <= 0 && (sig != SIGABRT || si->si_pid != (int)sys(SYS_getpid))) {
		if (shim_self.thr && shim_self.thr->re)
			return; /* from outside: what came so is in the trace */
		shim_ready(CLASS_signal); /* who a child is, it may not have asked yet */
		if (!shim_self.thr || !shim_self.thr->re) {
			default_of(sig);
			sys(SYS_kill, sys(SYS_getpid), sig);
		}
		return;
	}
	if (t && t->begun && t->re && !shim_run.exiting) {
		shim_re_look(t);
		if (t->re->th->spent != 1)
			shim_re_differs(t, shim_expect(&t->re->ex), PROPHET_DiffersFault, 0, 0, (u64)sig, "");
		if (!shim_re_detached())
			shim_re_others(t);
	}
	default_of(sig);
}

void shim_re_guards(void)
{
	struct sigaction a, was;
	int sig;
	for (sig = 1; sig < 65; sig++) {
		if (!shim_re_guarded(sig) || TRUE(sigaction)(sig, 0, &was) != 0 || was.sa_handler != SIG_DFL)
			continue;
		shim_zero(&a, sizeof a);
		a.sa_sigaction = shim_re_guard_signal;
		a.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
		TRUE(sigaction)(sig, &a, 0);
	}
}

void shim_re_unguards(void)
{
	struct sigaction a;
	int sig;
	for (sig = 1; sig < 65; sig++)
		if (shim_re_guarded(sig) && TRUE(sigaction)(sig, 0, &a) == 0 && a.sa_sigaction == shim_re_guard_signal)
			default_of(sig);
}

/* Masks: what they let through came inside of the call. */

#define MASK(name, type, params, args)                            \
	static type re_##name params                              \
	{                                                         \
		struct thr *t = shim_self.thr;                    \
		type r = TRUE(name) args;                         \
		int err = errno;                                  \
		if (t && t->re && t->re->th->call == CALL_##name) \
			shim_re_signals(t, CALL_##name);          \
		errno = err;                                      \
		return r;                                         \
	}                                                         \
	STANDIN(name, re_##name)
MASK(sigprocmask, int, (int how, const sigset_t *set, sigset_t *old), (how, set, old))
MASK(pthread_sigmask, int, (int how, const sigset_t *set, sigset_t *old), (how, set, old))
MASK(sigrelse, int, (int sig), (sig))
MASK(sigsetmask, int, (int mask), (mask))
MASK(sigblock, int, (int mask), (mask))

/* Waits for any signal, with another mask for as long. */
static int suspended(struct thr *t, u32 call, u64 mask)
{
	struct expect *x = t->re->x;
	int err = x && x->kind == EXPECT_EVENT && x->ret < 0 ? (int)-x->ret : EINTR;
	u64 was;
	sys(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &was, 8);
	shim_re_signals(t, call);
	sys(SYS_rt_sigprocmask, SIG_SETMASK, &was, 0, 8);
	errno = err;
	return -1;
}

#define SUSPEND(name, type, params, args, mask)                   \
	static int re_##name params                               \
	{                                                         \
		struct thr *t = shim_self.thr;                    \
		if (t && t->re && t->re->th->call == CALL_##name) \
			return suspended(t, CALL_##name, mask);   \
		return ((type)shim_true(CALL_##name))args;        \
	}                                                         \
	STANDIN(name, re_##name)
typedef int (*suspend_fn)(const sigset_t *);
typedef int (*pause2_fn)(int, int);
typedef int (*pause1_fn)(int);

static u64 readable(const sigset_t *s)
{
	return shim_readable(s, 8) ? shim_set(s) : 0;
}

/* The mask without one signal. */
static u64 without(int sig)
{
	u64 now = 0;
	sys(SYS_rt_sigprocmask, SIG_BLOCK, 0, &now, 8);
	return sig > 0 && sig < 65 ? now & ~BIT(sig) : now;
}

SUSPEND(sigsuspend, suspend_fn, (const sigset_t *set), (set), readable(set))
SUSPEND(__sigsuspend, suspend_fn, (const sigset_t *set), (set), readable(set))
SUSPEND(sigpause, pause1_fn, (int mask), (mask), (u64)(u32)mask)
SUSPEND(__sigpause, pause2_fn, (int mask, int is_sig), (mask, is_sig), is_sig ? without(mask) : (u64)(u32)mask)
SUSPEND(__xpg_sigpause, pause1_fn, (int sig), (sig), without(sig))

static int re_siginterrupt(int sig, int flag)
{
	struct expect *x = shim_re_of(CALL_siginterrupt);
	if (!x)
		return TRUE(siginterrupt)(sig, flag);
	if (x->ret == 0)
		shim_re_interrupt(sig, flag);
	return (int)shim_re_ret(x);
}
STANDIN(siginterrupt, re_siginterrupt)

void shim_feed_siginfo(const struct expect *x, siginfo_t *si)
{
	const u8 *p = x->input, *end = p + x->input_len;
	i64 value;
	u64 high;
	if (!x->input_len || !si)
		return;
	shim_zero(si, sizeof *si);
	si->si_signo = (int)shim_get_z(&p, end);
	si->si_code = (int)shim_get_z(&p, end);
	si->si_pid = (pid_t)shim_get_v(&p, end);
	si->si_uid = (uid_t)shim_get_v(&p, end);
	value = shim_get_z(&p, end);
	high = p < end ? shim_get_v(&p, end) : 0;
	if (si->si_signo == SIGCHLD)
		si->si_status = (int)value;
	else
		si->si_value.sival_ptr = (void *)((u64)(u32)value | high << 32);
}

/* Signals: each delivery has its place in its thread's stream.
 *
 * Where the program installs a handler the kernel gets one of our trampolines, with the program's flags and mask;
 * nothing is installed for a signal that the program does not handle, and SIG_DFL and SIG_IGN pass untouched. A
 * signal has several trampolines, used in turn: which one the kernel calls tells which handler it belongs to, so a
 * change of handlers is one step, the kernel's, as without us. Queries give back the program's own handler.
 *
 * A trampoline may run on an alternate stack of the smallest size and inside any wrapper: its frames are small and
 * it touches neither errno nor what the kernel gave the handler. Where the kernel tells handlers the place that they
 * interrupt with SA_SIGINFO only, that is added unseen; so it is in serial runs, where a signal may have to wait (shim_serial_early). thr.under remembers the call that it interrupted.
 */
#include "handler.h"
#include "modules.h"
#include "replay.h"
#include "stack.h"
#include "step.h"
#include "steps_net.h"
#include "steps_proc.h"
#include <stdarg.h>

#define SIGNALS 65
#define TURNS 8 /* trampolines of a signal */

typedef void (*plain_fn)(int);
typedef void (*full_fn)(int, siginfo_t *, void *);

/* Both are the address of a handler; which arguments it takes is its own affair. */
static inline full_fn as_full(plain_fn f)
{
	return (full_fn)(u64)f;
}

static inline plain_fn as_plain(full_fn f)
{
	return (plain_fn)(u64)f;
}

static struct action {
	full_fn fn;
	u32 full; /* the program asked for SA_SIGINFO, or has a siginfo_t in any case */
	u32 info; /* siginfo_t can be read */
	u32 flags; /* that the program did not ask for */
	u32 pad;
} actions[SIGNALS][TURNS];
static u32 turns[SIGNALS];
static u32 defaults[SIGNALS]; /* flags that SIG_DFL was given with, as the kernel tells them: something of ours may stand there instead */
static u32 added[SIGNALS]; /* flags of ours, which stay when the kernel takes a handler away (SA_RESETHAND) */

extern const char __ehdr_start[] HIDDEN, etext[] HIDDEN;

/* The thread's state when there is one that this handler may use. */
static struct thr *current(void)
{
	struct thr *t;
	shim_ready(CLASS_signal); /* makes it, and in a forked child makes it anew */
	t = shim_self.thr;
	return t && t->begun && shim_run.state == RUN_ON && !shim_self.off && !(t->vfork == VFORK_SHARED && shim_in_vfork(t)) ? t : 0;
}

/* What TagPlace says of a call that was under way: the kernel had done it. Only of those that are one system call. */
static u32 over(const struct under *u, const void *context, u64 *place)
{
	u32 flags = shim_re_flags[u->call];
	if (!(flags & RE_FD) || flags & RE_NESTS || !shim_context_over(context))
		return 0;
	shim_zero(place, SHIM_PLACE * sizeof *place);
	place[0] = shim_module_pc(SHIM_CONTEXT_PC(context));
	return SHIM_PLACE;
}

static void begin_record(struct thr *t, const struct under *u, const siginfo_t *si, u32 full, const void *context)
{
	u64 now, pos, place[SHIM_PLACE];
	u32 told = !context ? 0 : u->call ? over(u, context, place) : shim_place_told(context, place), i;
	u8 *p;
	if (told && t->leaves)
		place[1] |= PROPHET_PlaceOut;
	do {
		/* The cursor may not be the stream's, as we may have interrupted a writer: time is absolute. */
		pos = shim_place(t);
		now = shim_ticks();
		p = put_v(t->ring + (u32)pos, PROPHET_TagTime);
		p = put_v(p, now);
		p = put_v(p, PROPHET_TagSignal);
		p = put_v(p, 0);
		p = put_v(p, u->sig);
		p = put_v(p, u->call);
		p = put_z(p, si ? si->si_code : 0);
		p = put_v(p, si && si->si_code <= 0 ? (u64)(u32)si->si_pid : 0);
		if (full && si) {
			u64 rest[4];
			__builtin_memcpy(rest, (const u8 *)si + 16, sizeof rest);
			p = put_v(p, PROPHET_TagSigInfo);
			for (i = 0; i < 4; i++)
				p = put_v(p, rest[i]);
		}
		if (told) {
			p = put_v(p, PROPHET_TagPlace);
			for (i = 0; i < told; i++)
				p = put_v(p, place[i]);
		}
		t->last = now;
	} while (!shim_commit_at(&t->slot->pos, pos, pos + (u64)(p - (t->ring + (u32)pos))));
	t->writing = 0;
	shim_predict_nothing(t);
}

static struct thr *enter(int sig, full_fn fn, const siginfo_t *si, u32 full, const void *context, u64 frame)
{
	struct thr *t = current();
	struct under *u;
	struct slot *slot;
	u64 pc = si || SHIM_CONTEXT_ALWAYS ? SHIM_CONTEXT_PC(context) : (u64)__ehdr_start; /* unknown: perhaps in a writer */
	if (!t)
		return 0;
	if (t->depth)
		shim_in_handler(t, frame);
	t->depth++; /* first, as a nested handler may come at any moment */
	u = &t->under[(t->depth - 1) % UNDER_MAX];
	u->frame = frame;
	slot = t->slot;
	u->begin = slot->begin;
	u->call = slot->call;
	u->sig = (u32)sig;
	u->writing = t->writing;
	u->token = 0;
	t->gate = 0;
	if (t->mute) {
		slot->call = 0;
		return t;
	}
	/* Serial runs take no fast path, whose writers do not say that they write. */
	if (likely(!shim_replays) && (u->writing || (!shim_ctl.serial && pc >= (u64)__ehdr_start && pc < (u64)etext)) &&
	    (t->side_depth || shim_aside(t) != 0)) {
		t->mute = t->depth; /* two writers are interrupted: what this handler does is lost */
		__atomic_fetch_add(&shim_ctl.lost, 1, __ATOMIC_RELAXED);
		return t;
	}
	t->writing = 0;
	if (shim_ctl.level & 1u << CLASS_signal && likely(!shim_replays))
		begin_record(t, u, si, full, si || SHIM_CONTEXT_ALWAYS ? context : 0);
	else
		shim_predict_nothing(t);
	slot->call = 0; /* only now: a signal that comes before this one is told is told first, and it came inside of the same call */
	u->token = shim_ctl.serial && shim_serial_take(1) != 0;
	if (unlikely(t->re != 0))
		shim_re_starts(t, (const void *)(u64)fn); /* as it began */
	return t;
}

static void leave(struct thr *t, int sig, u64 frame)
{
	struct under *u;
	u8 b[32];
	if (shim_self.thr != t)
		return;
	if (!t->begun) { /* a child that the handler forked; what we interrupted needs its state */
		if (!shim_wiped->alive)
			shim_forked();
		return;
	}
	while (t->depth > 1 && t->under[(t->depth - 1) % UNDER_MAX].frame != frame)
		t->depth--; /* handlers inside of us that were left by a jump */
	u = &t->under[(t->depth - 1) % UNDER_MAX];
	if (!t->depth || u->frame != frame)
		return;
	if (t->mute) {
		if (t->mute == t->depth) {
			t->mute = 0;
			t->muted++;
		}
	} else if (unlikely(shim_replays)) {
		shim_re_sigret(t, sig);
	} else if (shim_ctl.level & 1u << CLASS_signal) {
		if (unlikely(t->muted)) {
			u8 *p = put_v(b, PROPHET_TagLost);
			p = put_v(p, PROPHET_LostSignal);
			p = put_v(p, t->muted);
			t->muted = 0;
			shim_record(t, b, (u32)(p - b));
		}
		shim_record_at(t, PROPHET_TagSigRet, b, (u32)(put_v(b, (u64)sig) - b));
	}
	shim_predict_nothing(t);
	t->handled = shim_moment();
	if (u->token)
		shim_serial_give(); /* what we interrupted did not have it */
	if (u->call == CALL_abort)
		shim_process_over(PROPHET_ExitAbort, SIGABRT);
	t->writing = u->writing;
	t->cursor = t->last;
	if (t->side_depth == t->depth)
		shim_aside_over(t);
	t->slot->call = u->call; /* the slot that was in use: the one at the side is in no call */
	t->slot->begin = u->begin;
	t->depth--;
	if (!t->depth && !t->vfork && !shim_run.exiting && shim_run.state == RUN_ON)
		t->gate = ~0u;
}

static inline __attribute__((always_inline)) void deliver(int sig, siginfo_t *si, void *context, u32 turn)
{
	struct action *a = &actions[sig < SIGNALS ? sig : 0][turn];
	full_fn fn = a->fn;
	u64 frame = (u64)__builtin_frame_address(0);
	struct thr *t;
	if (unlikely(shim_ctl.pause) && shim_hidden_signal(sig, a->info ? si : 0))
		return;
	if (unlikely(sig == SIGPROF) && a->info && shim_stack_signal(sig, si))
		return;
	if (unlikely(shim_ctl.serial) && a->info && shim_serial_stopped(sig, si, context))
		return;
	if (unlikely(shim_ctl.serial) && !shim_replays && a->info && shim_serial_early(sig, si, context))
		return;
	if (unlikely(shim_replays) && a->info && shim_step_trap(sig, si, context))
		return;
	if (unlikely(shim_replays) && (t = current()) && !shim_re_signal(t, sig, si))
		return; /* it came from outside; the trace's come when the trace says */
	t = enter(sig, fn, a->info ? si : 0, a->full, context, frame);
	if (unlikely(shim_replays) && t)
		shim_step_go(t);
	fn(sig, si, context);
	if (t)
		leave(t, sig, frame);
	if (unlikely(shim_replays) && t)
		shim_step_again(context);
}

#define TURN(n)                                                    \
	static void turn##n(int sig, siginfo_t *si, void *context) \
	{                                                          \
		deliver(sig, si, context, n);                      \
	}
TURN(0)
TURN(1)
TURN(2)
TURN(3)
TURN(4)
TURN(5)
TURN(6)
TURN(7)

static const full_fn trampolines[TURNS] = {turn0, turn1, turn2, turn3, turn4, turn5, turn6, turn7};

/* The trampoline for a new handler. */
static full_fn wrapped(int sig, full_fn fn, u32 full, u32 info)
{
	u32 turn = __atomic_fetch_add(&turns[sig], 1, __ATOMIC_RELAXED) % TURNS;
	struct action *a = &actions[sig][turn];
	a->full = full;
	a->info = info;
	a->flags = 0;
	__atomic_store_n(&a->fn, fn, __ATOMIC_RELEASE);
	return trampolines[turn];
}

static struct action *action_of(int sig, full_fn kernels)
{
	u32 i;
	for (i = 0; i < TURNS; i++)
		if (kernels == trampolines[i])
			return &actions[sig][i];
	return 0;
}

/* The kernel goes on with a call that a signal from outside interrupted. */
static void restarts(int sig, struct sigaction *mine)
{
	struct action *a = action_of(sig, mine->sa_sigaction);
	a->flags = SA_RESTART & ~(u32)mine->sa_flags;
	mine->sa_flags |= SA_RESTART;
}

void shim_re_interrupt(int sig, int flag)
{
	struct sigaction now;
	struct action *a = REAL(sigaction)(sig, 0, &now) == 0 ? action_of(sig, now.sa_sigaction) : 0;
	if (a)
		a->flags = flag ? SA_RESTART : 0;
}

static int is_handler(plain_fn f)
{
	return f != SIG_DFL && f != SIG_IGN && f != SIG_ERR && f != SIG_HOLD;
}

/* A vforked child has its own table in the kernel but shares ours with its parent: its handlers, which are rare, are
 * its own affair. Nor is anything wrapped in a process that is not recorded. */
static int wraps(int sig)
{
	struct thr *t = shim_self.thr;
	return sig > 0 && sig < SIGNALS && shim_run.state == RUN_ON && !shim_self.off && !(t && t->begun && shim_in_vfork(t));
}

int shim_handled(int sig)
{
	struct sigaction a;
	return REAL(sigaction)(sig, 0, &a) == 0 && is_handler(a.sa_handler);
}

/* What was done, as numbers: 0 asked only, 1 default, 2 ignored, 3 a handler. */
static u64 doing(plain_fn f)
{
	return f == SIG_DFL ? 1 : f == SIG_IGN ? 2 : f == SIG_HOLD ? 4 : 3;
}

/* What the kernel has for a signal, as the program would find it there. */
static void as_asked(int sig, struct sigaction *was)
{
	const struct action *a = action_of(sig, was->sa_sigaction);
	const void *ours = (const void *)was->sa_sigaction;
	if (a) {
		was->sa_sigaction = a->fn;
		if (!a->full)
			was->sa_flags &= ~SA_SIGINFO;
		was->sa_flags &= ~(int)a->flags;
	} else if (shim_timers_guard(ours) || shim_serial_guard(ours) || shim_stack_guard(ours) || was->sa_sigaction == shim_re_guard_signal) {
		shim_zero(was, sizeof *was); /* SIG_DFL */
		was->sa_flags = (int)defaults[sig];
	} else if (was->sa_handler == SIG_DFL) {
		was->sa_flags &= ~(int)added[sig];
	}
}

void shim_handler_asked(int sig, struct kernel_action *k)
{
	struct sigaction was;
	if (sig <= 0 || sig >= SIGNALS || shim_self.off)
		return;
	shim_zero(&was, sizeof was);
	was.sa_handler = k->handler;
	was.sa_flags = (int)k->flags;
	as_asked(sig, &was);
	if (is_handler(k->handler) && !is_handler(was.sa_handler))
		shim_zero(k, sizeof *k);
	k->handler = was.sa_handler;
	k->flags = (k->flags & ~0xfffffffful) | (u32)was.sa_flags;
}

const struct kernel_action *shim_handler_given(int sig, const struct kernel_action *k, struct kernel_action *mine)
{
	struct sigaction a;
	if (!wraps(sig) || sig == 32 || sig == 33 || !shim_may_read(k, sizeof *k) || !is_handler(k->handler))
		return k;
	*mine = *k;
	shim_zero(&a, sizeof a);
	a.sa_sigaction = wrapped(sig, as_full(k->handler), k->flags & SA_SIGINFO, 1);
	a.sa_flags = (int)k->flags | SA_SIGINFO;
	if (unlikely(shim_replays))
		restarts(sig, &a);
	added[sig] = (u32)a.sa_flags & ~(u32)k->flags;
	mine->handler = a.sa_handler;
	mine->flags |= (u32)a.sa_flags;
	return mine;
}

typedef int (*sigaction_fn)(int, const struct sigaction *, struct sigaction *);

static NOINLINE int action(sigaction_fn real, u32 call, void *pc, int sig, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction mine, was;
	struct ev e;
	u64 flags = 0, what = 0, handler = 0;
	int r, on;
	if (sig <= 0 || sig >= SIGNALS || shim_run.state == RUN_NONE || shim_self.off)
		return real(sig, act, old);
	on = shim_begin(&e, call, CLASS_signal, pc);
	if (act) {
		mine = *act;
		flags = (u64)(u32)act->sa_flags;
		what = doing(act->sa_handler);
		handler = what == 3 ? (u64)act->sa_handler : 0;
		if (what == 3 && wraps(sig)) {
			mine.sa_sigaction = wrapped(sig, act->sa_sigaction, act->sa_flags & SA_SIGINFO, 1);
			mine.sa_flags |= SA_SIGINFO;
			if (unlikely(shim_replays)) /* what is not the program's must not be seen by it */
				restarts(sig, &mine);
			added[sig] = (u32)(mine.sa_flags & ~act->sa_flags);
		} else if (what == 1 && unlikely(shim_re_guarded(sig)) && wraps(sig)) {
			mine.sa_sigaction = shim_re_guard_signal;
			mine.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
		}
		if (shim_run.state == RUN_ON)
			shim_stack_yields(shim_self.thr, sig, (int)what, &mine);
	}
	r = real(sig, act ? &mine : 0, old ? &was : 0);
	if (r == 0 && act && what != 3 && wraps(sig))
		added[sig] = 0;
	if (r == 0 && sig == SIGCONT && act)
		shim_timers_guarded();
	if (r == 0 && old) {
		as_asked(sig, &was);
		*old = was;
	}
	if (r == 0 && act)
		defaults[sig] = what == 1 ? (u32)flags | SHIM_SA_RESTORER : 0;
	if (on) {
		shim_end(&e, WRAP_ONCE);
		e.ret = shim_ret_errno(r);
		e.f1 = (u64)sig;
		e.f2 = what;
		e.f3 = flags;
		if (what == 3)
			shim_tail_num(&e, handler);
		shim_done(&e);
	}
	return r;
}

EXPORT int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	return action(REAL(sigaction), CALL_sigaction, CALLER(), sig, act, old);
}

extern int __sigaction(int sig, const struct sigaction *act, struct sigaction *old);
EXPORT int __sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	return action(REAL(__sigaction), CALL___sigaction, CALLER(), sig, act, old);
}

/* The older functions give and take a handler alone. Which flags they set is the C library's affair (siginterrupt). */
typedef plain_fn (*signal_fn)(int, plain_fn);

static NOINLINE plain_fn simple(signal_fn real, u32 call, void *pc, int sig, plain_fn fn)
{
	struct sigaction now;
	struct ev e;
	struct action *a;
	plain_fn r, mine = fn;
	int on, was;
	if (sig <= 0 || sig >= SIGNALS || shim_run.state == RUN_NONE || shim_self.off)
		return real(sig, fn);
	on = shim_begin(&e, call, CLASS_signal, pc);
	if (wraps(sig))
		added[sig] = 0;
	if (is_handler(fn) && wraps(sig))
		mine = as_plain(wrapped(sig, as_full(fn), 0, 0));
	else if (fn == SIG_DFL && unlikely(shim_re_guarded(sig)) && wraps(sig))
		mine = as_plain(shim_re_guard_signal);
	r = shim_run.state == RUN_ON && unlikely(shim_stack_yields(shim_self.thr, sig, (int)doing(fn), &now)) ? SIG_DFL : real(sig, mine);
	if ((!SHIM_CONTEXT_ALWAYS || shim_replays || shim_ctl.serial) && mine != fn && r != SIG_ERR && REAL(sigaction)(sig, 0, &now) == 0 &&
	    now.sa_handler == mine) {
		if (fn != SIG_DFL)
			now.sa_sigaction = wrapped(sig, as_full(fn), 0, 1);
		was = now.sa_flags;
		defaults[sig] = fn == SIG_DFL ? (u32)was : 0;
		now.sa_flags |= SA_SIGINFO;
		if (unlikely(shim_replays) && fn != SIG_DFL)
			restarts(sig, &now);
		added[sig] = (u32)(now.sa_flags & ~was);
		REAL(sigaction)(sig, &now, 0);
	}
	a = r == SIG_ERR ? 0 : action_of(sig, as_full(r));
	if (a)
		r = as_plain(a->fn);
	if ((r != SIG_ERR && shim_serial_guard((const void *)(u64)r)) || r == as_plain(shim_re_guard_signal))
		r = SIG_DFL;
	if (sig == SIGCONT && r != SIG_ERR) {
		if (shim_timers_guard((const void *)(u64)r))
			r = SIG_DFL;
		shim_timers_guarded();
	}
	if (on) {
		shim_end(&e, WRAP_ONCE);
		e.ret = r == SIG_ERR ? -(i64)errno : 0;
		e.f1 = (u64)sig;
		e.f2 = fn == SIG_ERR ? 0 : doing(fn);
		if (is_handler(fn))
			shim_tail_num(&e, (u64)fn);
		shim_done(&e);
	}
	return r;
}

EXPORT plain_fn signal(int sig, plain_fn fn)
{
	return simple(REAL(signal), CALL_signal, CALLER(), sig, fn);
}

extern plain_fn bsd_signal(int sig, plain_fn fn);
EXPORT plain_fn bsd_signal(int sig, plain_fn fn)
{
	return simple(REAL(bsd_signal), CALL_bsd_signal, CALLER(), sig, fn);
}

extern plain_fn sysv_signal(int sig, plain_fn fn);
EXPORT plain_fn sysv_signal(int sig, plain_fn fn)
{
	return simple(REAL(sysv_signal), CALL_sysv_signal, CALLER(), sig, fn);
}

extern plain_fn __sysv_signal(int sig, plain_fn fn);
EXPORT plain_fn __sysv_signal(int sig, plain_fn fn)
{
	return simple(REAL(__sysv_signal), CALL___sysv_signal, CALLER(), sig, fn);
}

EXPORT plain_fn ssignal(int sig, plain_fn fn)
{
	return simple(REAL(ssignal), CALL_ssignal, CALLER(), sig, fn);
}

EXPORT plain_fn sigset(int sig, plain_fn fn)
{
	return simple(REAL(sigset), CALL_sigset, CALLER(), sig, fn);
}

/* The BSD one; <signal.h> calls XPG's by this name. */
extern int bsd_sigpause(int mask) __asm__("sigpause");
EXPORT int bsd_sigpause(int mask)
{
	struct ev e;
	int r;
	if (!shim_begin(&e, CALL_sigpause, CLASS_signal, CALLER()))
		return ((__typeof__(&bsd_sigpause))shim_real(CALL_sigpause))(mask);
	r = ((__typeof__(&bsd_sigpause))shim_real(CALL_sigpause))(mask);
	shim_end(&e, WRAP_BLOCK);
	e.ret = shim_ret_errno(r);
	e.f1 = (u64)(u32)mask;
	shim_done(&e);
	return r;
}

/* Signals that came between two calls, where they came.
 *
 * The recorder tells the place in the program that such a signal interrupted: its pc, stack pointer, and hashes of registers
 * (TagPlace). Where it found the thread in our code or the C library's below it, on its way out of a call, the place is
 * where that returns to.
 *
 * In a re-execution the thread goes there by itself, from the return of the call before, or from where
 * a handler begins: by a breakpoint of the processor's where the kernel gives one (perf_event_open), else by a trap after
 * each instruction. There the signal is queued with all signals blocked, and comes as our handler returns: the program's
 * handler sees what it saw. A loop passes a place more than once: registers tell the passes apart. What the call before left
 * in those that it need not keep was something else in the recording, so they are given values there by which it is seen
 * whether the program has used them since. Where addresses are not the recorded ones, as the stack's below a handler, the first
 * pass is taken.
 *
 * Rules: the traps are the thread's own, on a stack of ours, so that nothing stays on the program's. Not where somebody else has use
 * for SIGTRAP (a handler of the program's, its mask, a debugger), nor on an alternate stack. It ends where the next
 * wrapper is entered; traps also before the kernel is asked for anything but memory and a mask that lets them through, as that might block
 * signals or make threads. LIMIT traps a signal and LIMIT_ALL a run, then the thread goes on freely, and the signal comes
 * as others do (stand_signal.c).
 */
#include "step.h"
#if SHIM_STEPS
#include "cfi.h"
#include "modules.h"
#include "token.h"
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#define BIT(sig) (1ull << ((sig)-1))
#define FRAMES 6 /* of the C library's, below the program */
#define OUR_FRAMES 32 /* ours: an event that fills a chunk calls deeper than others */
#define ROOM 2048 /* what looking for the place may need of a stack: about 900, with what it calls */
#define LIMIT 4096
#define LIMIT_ALL (1u << 19)
#define STACK (64u << 10)
#define FAR_STACK (16ull << 20) /* a stack that is so far from where it lay lies elsewhere */
#define BREAKPOINT 6 /* si_code: TRAP_PERF of newer headers */
#define MARK_OF(i) (0x50726f7068657400ull + (i)*0x101010101ull) /* in a register that the program has not used */
#define OURS_FROM 4000 /* numbers of descriptors that no program has */

extern const char __ehdr_start[] HIDDEN, etext[] HIDDEN;

static int ours(u64 pc)
{
	return pc >= (u64)__ehdr_start && pc < (u64)etext;
}

/* Recording */

static void hashes(const void *context, u64 *out)
{
	u32 i;
	out[0] = out[1] = out[2] = 0;
	for (i = 0; i < SHIM_REGISTERS; i++)
		out[i / 4] |= (*shim_context_register(context, i) * 0x9E3779B97F4A7C15ull >> 48) << i % 4 * 16;
}
_Static_assert(SHIM_REGISTERS == 12, "three words of four hashes");

/* In what wrappers call, or perhaps the program itself: the C library, and what the kernel has of it. */
static int below(u64 pc)
{
	u32 at = shim_module_at(pc);
	return at != ~0u && (at == shim_module_at((u64)REAL(sigaction)) || at == shim_module_at(getauxval(AT_SYSINFO_EHDR)));
}

/* An alternate stack may have been made for the kernel's frame and little more. */
static int cramped(const void *context)
{
	const stack_t *s = &((const ucontext_t *)context)->uc_stack;
	u64 left = (u64)__builtin_frame_address(0) - (u64)s->ss_sp;
	return left < s->ss_size && left < ROOM;
}

FAR u32 shim_place_told(const void *context, u64 *place)
{
	u64 pc = SHIM_CONTEXT_PC(context);
	u32 i;
	struct walk w;
	if (cramped(context))
		return 0;
	place[0] = pc;
	place[1] = SHIM_CONTEXT_SP(context);
	hashes(context, place + 2);
	if (!ours(pc) && !below(pc)) {
		place[0] = shim_module_pc(pc);
		return SHIM_PLACE;
	}
	shim_walk_from(&w, pc, place[1], SHIM_CONTEXT_FP(context), SHIM_CONTEXT_LR(context), 1);
	for (i = 0; i < FRAMES && below(w.pc); i++)
		if (shim_walk(&w) != WALK_ON)
			break;
	if (!ours(w.pc)) {
		place[0] = shim_module_pc(pc);
		return SHIM_PLACE;
	}
	for (i = 0; i < OUR_FRAMES && ours(w.pc); i++)
		if (shim_walk(&w) != WALK_ON)
			return 0;
	if (ours(w.pc))
		return 0;
	place[0] = shim_module_pc(w.pc);
	place[1] = w.sp;
	place[2] = place[3] = place[4] = 0;
	return SHIM_PLACE;
}

/* Re-execution */

/* Whoever traces us would be told of each trap. */
static int traced(void)
{
	static const char name[] = "TracerPid:\t";
	char b[512];
	long fd = sys(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC, 0), r, i;
	if (fd < 0)
		return 1;
	r = sys(SYS_read, fd, b, sizeof b);
	sys(SYS_close, fd);
	for (i = 0; i + (long)sizeof name <= r; i++)
		if (__builtin_memcmp(b + i, name, sizeof name - 1) == 0)
			return b[i + (long)sizeof name - 1] != '0';
	return 1;
}

static int trap_is_free(u64 mask)
{
	struct sigaction a;
	return !(mask & BIT(SIGTRAP)) && REAL(sigaction)(SIGTRAP, 0, &a) == 0 && a.sa_sigaction == shim_re_guard_signal && !traced();
}

/* What the program asks for next, once the handlers of signals before it are done. */
static const struct expect *asks_next(struct expects *ex, u32 i)
{
	u32 depth = 0;
	const struct expect *x;
	for (; (x = shim_expect_at(ex, i)) && x->kind != EXPECT_END && x->kind != EXPECT_BAD; i++) {
		if (x->kind == EXPECT_SIGNAL)
			depth++;
		else if (x->kind == EXPECT_SIGRET)
			depth -= depth > 0;
		else if (x->kind == EXPECT_EVENT && !depth)
			return x;
	}
	return 0;
}

/* Where it is now, and whether it can be found there. */
static int target(struct thr *t, const struct expect *x, u32 ahead)
{
	struct re *re = t->re;
	struct step *s = &re->step;
	const struct expect *next = shim_expect_at(&re->ex, ahead + 1);
	u64 pc = shim_expect_pc(x);
	if (!x->pc || x->pc >> 48 == SHIM_NOWHERE || x->f1 == SIGTRAP || !next || next->kind == EXPECT_TOKEN || t->vfork)
		return 0;
	if (__atomic_load_n(&shim_index->stepped, __ATOMIC_RELAXED) > LIMIT_ALL)
		return 0;
	s->told = (u32)shim_expect_told(x);
	/* On its way out of the call before, or into the next one: it comes there. From the same place again only serial runs know. */
	if (!s->told && !(x->obj & PROPHET_PlaceOut) && (!(next = asks_next(&re->ex, ahead)) || shim_expect_pc(next) == pc)) {
		s->there = next && s->site - s->moved != pc;
		return 0;
	}
	s->pc = pc + s->moved;
	if (s->moved && (shim_module_at(s->pc) == ~0u || shim_module_at(s->pc) != shim_module_at(s->site)))
		return 0;
	s->sp = x->obj & ~(u64)PROPHET_PlaceOut;
	shim_copy(s->registers, x->registers, sizeof s->registers);
	s->taken = 0;
	return 1;
}

static int stack(struct step *s)
{
	long p;
	if (s->stack.ss_sp)
		return 1;
	p = sys(SYS_mmap, shim_apart(STACK), STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p < 0 && p > -4096)
		return 0;
	s->stack.ss_sp = (void *)p;
	s->stack.ss_size = STACK;
	s->stack.ss_flags = (int)(1u << 31); /* SS_AUTODISARM: a handler that runs on it may say what comes after it */
	return 1;
}

static void break_at(struct perf_event_attr *a, u64 pc)
{
	shim_zero(a, sizeof *a);
	a->size = sizeof *a;
	a->type = PERF_TYPE_BREAKPOINT;
	a->bp_type = HW_BREAKPOINT_X;
	a->bp_addr = pc;
	a->bp_len = sizeof(long);
	a->sample_period = 1;
	a->exclude_kernel = a->exclude_hv = 1;
	a->sigtrap = a->remove_on_exec = 1;
}

/* A breakpoint of the processor's for this thread; -1: there is none to be had. */
static int breakpoint(u64 pc)
{
	static u32 refused; /* older kernels, sandboxes, and what the administrator says of ordinary users */
	struct perf_event_attr a;
	long fd, up;
	if (refused)
		return -1;
	break_at(&a, pc);
	fd = sys(SYS_perf_event_open, &a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0) {
		refused = 1;
		return -1;
	}
	up = sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, OURS_FROM);
	sys(SYS_close, fd);
	return up < 0 ? -1 : (int)up;
}

static void broken(struct step *s)
{
	if (s->fd >= 0)
		sys(SYS_close, s->fd);
	s->fd = -1;
	s->on = 0;
	__atomic_add_fetch(&shim_index->stepped, s->taken, __ATOMIC_RELAXED);
}

int shim_step_begin(struct thr *t, const struct expect *x, u32 ahead)
{
	struct step *s = &t->re->step;
	u64 mask = 0;
	if (!s->returns || s->on || !target(t, x, ahead) || !stack(s))
		return 0;
	sys(SYS_rt_sigprocmask, SIG_BLOCK, 0, &mask, 8);
	if (!trap_is_free(mask) || sys(SYS_sigaltstack, &s->stack, &s->old) != 0)
		return 0;
	s->fd = breakpoint(s->site);
	s->out = 0;
	s->bare = s->begins;
	s->on = 1;
	return 1;
}

void shim_step_end(struct thr *t)
{
	struct step *s = &t->re->step;
	if (s->fd < 0)
		shim_traps_off();
	broken(s);
	sys(SYS_sigaltstack, &s->old, 0);
}

/* As it was before, once our handler has returned. */
static void over(struct step *s, ucontext_t *u)
{
	shim_context_traps(u, 0);
	u->uc_stack = s->old;
	broken(s);
}

static void give_up(struct thr *t, ucontext_t *u)
{
	over(&t->re->step, u);
	shim_re_nudge(t);
}

/* The signal comes as our handler returns. */
static void arrived(struct thr *t, ucontext_t *u)
{
	u64 mask;
	__builtin_memcpy(&mask, &u->uc_sigmask, 8);
	if (mask & BIT(shim_expect(&t->re->ex)->f1 & 63)) {
		give_up(t, u);
		return;
	}
	over(&t->re->step, u);
	mask = ~0ull;
	sys(SYS_rt_sigprocmask, SIG_SETMASK, &mask, 0, 8);
	t->re->step.there = 1;
	shim_re_queue(t);
}

/* Whether this is the pass that the signal interrupted. */
static int the_pass(const struct step *s, const ucontext_t *u)
{
	u64 now[3], sp = SHIM_CONTEXT_SP(u);
	u32 i;
	if (sp != s->sp)
		return s->bare || sp - s->sp + FAR_STACK > 2 * FAR_STACK;
	hashes(u, now);
	for (i = 0; s->told && i < SHIM_REGISTERS; i++) {
		u64 v = *shim_context_register(u, i);
		if (SHIM_SCRATCH >> i & 1 ? v == MARK_OF(i) : SHIM_RESULT >> i & 1 && v == s->result)
			continue; /* as it was left */
		if ((now[i / 4] ^ s->registers[i / 4]) >> i % 4 * 16 & 0xffff)
			return 0;
	}
	return 1;
}

static void mark(struct step *s, const ucontext_t *u)
{
	u32 i;
	for (i = 0; i < SHIM_REGISTERS; i++)
		if (SHIM_SCRATCH >> i & 1)
			*shim_context_register(u, i) = MARK_OF(i);
		else if (SHIM_RESULT >> i & 1)
			s->result = *shim_context_register(u, i);
}

/* Whether that change of the mask leaves traps possible. A jump out of a handler sets the mask by itself. */
static int lets_traps(int how, const u64 *set)
{
	return !set || how == SIG_UNBLOCK || (shim_readable(set, 8) && !(*set & BIT(SIGTRAP)));
}

/* The thread is at an instruction of the program's: 1: it is to go on with traps. */
static int stands(struct thr *t, ucontext_t *u)
{
	struct step *s = &t->re->step;
	u64 pc = SHIM_CONTEXT_PC(u), n;
	if (!s->out) { /* the call before has returned */
		s->out = 1;
		if (!s->bare)
			mark(s, u);
		if (s->fd >= 0) {
			struct perf_event_attr a;
			break_at(&a, s->pc);
			if (sys(SYS_ioctl, s->fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &a) != 0)
				return 0;
		}
	}
	if (pc == s->pc && the_pass(s, u)) {
		arrived(t, u);
		return -1;
	}
	if (s->fd >= 0)
		return 1;
	if (s->kept) {
		__builtin_memcpy(&n, (void *)SHIM_CONTEXT_SP(u), 8);
		n &= ~(u64)SHIM_TRAP;
		__builtin_memcpy((void *)SHIM_CONTEXT_SP(u), &n, 8);
	}
	n = shim_instruction((const u8 *)pc);
	s->kept = n == SHIM_KEEPS_FLAGS;
	if (n == SHIM_ASKS_KERNEL) {
		greg_t call = u->uc_mcontext.gregs[REG_RAX];
		if (call == SYS_rt_sigprocmask)
			return lets_traps((int)u->uc_mcontext.gregs[REG_RDI], (const u64 *)(u64)u->uc_mcontext.gregs[REG_RSI]);
		return call == SYS_brk || call == SYS_mmap || call == SYS_munmap || call == SYS_mprotect || call == SYS_mremap || call == SYS_madvise;
	}
	return 1;
}

int shim_step_trap(int sig, const siginfo_t *si, void *context)
{
	struct thr *t = shim_self.thr;
	struct step *s = t && t->begun && t->re ? &t->re->step : 0;
	int on, traps;
	/* From outside, as we were at a trap: seen from our stack the program's handlers that still run look left. */
	if (s && !(BIT(sig) & SHIM_FAULTS) && (u64)__builtin_frame_address(0) - (u64)s->stack.ss_sp < s->stack.ss_size)
		return 1;
	if (sig != SIGTRAP || (si->si_code != TRAP_TRACE && si->si_code != BREAKPOINT))
		return 0;
	traps = shim_context_traps(context, 0);
	if (!s || !s->on)
		return traps || si->si_code == BREAKPOINT;
	if (ours(SHIM_CONTEXT_PC(context)))
		on = !s->out && !t->slot->call;
	else
		on = stands(t, context);
	if (on < 0)
		return 1;
	if (!on || ++s->taken > LIMIT)
		give_up(t, context);
	else
		shim_context_traps(context, s->fd < 0);
	return 1;
}

void shim_step_again(void *context)
{
	struct thr *t = shim_self.thr;
	ucontext_t *u = context;
	struct step *s = t && t->begun && t->re ? &t->re->step : 0;
	const struct expect *x;
	u64 mask, here = (u64)__builtin_frame_address(0), sp = SHIM_CONTEXT_SP(u);
	int on, bound;
	if (!s || s->on || ours(SHIM_CONTEXT_PC(u)) || shim_re_detached())
		return;
	x = shim_expect(&t->re->ex);
	if (x->kind != EXPECT_SIGNAL || x->call || shim_re_is_fault(x) || !target(t, x, 0) || !stack(s))
		return;
	__builtin_memcpy(&mask, &u->uc_sigmask, 8);
	s->old = u->uc_stack;
	/* It came as the handler of the one before was about to return. */
	if (trap_is_free(mask) && shim_readable((void *)s->pc, 16) && SHIM_RETURNS_FROM_SIGNAL(s->pc)) {
		s->fd = -1;
		arrived(t, u);
		return;
	}
	/* What is set while one runs on the program's own does not last, on newer kernels. */
	bound = !(s->old.ss_flags & SS_DISABLE) && (sp - (u64)s->old.ss_sp < s->old.ss_size || here - (u64)s->old.ss_sp < s->old.ss_size);
	if (!trap_is_free(mask) || (bound && !(SHIM_CONTEXT_PC(u) == s->pc && the_pass(s, u))))
		return;
	if (!bound)
		u->uc_stack = s->stack;
	s->fd = bound ? -1 : breakpoint(s->pc);
	s->on = s->out = 1;
	s->kept = 0;
	on = stands(t, u);
	if (on < 0)
		return;
	if (!on)
		give_up(t, u);
	else
		shim_context_traps(u, s->fd < 0);
}
#endif

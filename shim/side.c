/* See side.h. */
#include "side.h"
#include <sys/mman.h>

/* The event of a call, 0: of any, in which signals came first, behind theirs. depth: of handlers that are still running at *i. */
static struct expect *behind(struct expects *q, u32 call, u32 *i, u32 *depth)
{
	struct expect *x;
	for (; (x = shim_expect_at(q, *i)) && x->kind != EXPECT_END && x->kind != EXPECT_BAD; ++*i) {
		if (x->kind == EXPECT_SIGNAL)
			++*depth;
		else if (x->kind == EXPECT_SIGRET)
			*depth -= *depth > 0;
		else if (!*depth && (x->kind == EXPECT_EVENT || x->kind == EXPECT_LEFT) && (!call || x->call == call))
			return x;
	}
	return x;
}

/* The same, when they were more than is looked ahead, but not more than so many: it is looked for in a copy of the queue. */
static int far_behind(struct expects *from, u32 call, u32 i, u32 depth, u32 most, struct expect *found)
{
	struct expect *x = 0;
	struct expects *q;
	long p = sys(SYS_mmap, shim_apart(sizeof *q), sizeof *q, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p < 0 && p > -4096)
		return 0;
	q = (struct expects *)p;
	shim_copy(q, from, sizeof *q);
	while (!x && i <= most) {
		most -= i;
		q->head += i;
		i = 0;
		x = behind(q, call, &i, &depth);
	}
	if (x)
		*found = *x;
	sys(SYS_munmap, p, sizeof *q);
	return x != 0;
}

struct expect *shim_side_outer(struct thr *t, u32 call)
{
	struct re *re = t->re;
	u32 depth = 0, i = 0;
	struct expect *x = behind(&re->ex, call, &i, &depth), *far = &re->far[re->handlers % RE_FAR];
	if (!x)
		x = far_behind(&re->ex, call, i, depth, ~0u, far) ? far : 0;
	return x && (x->kind == EXPECT_EVENT || x->kind == EXPECT_LEFT) ? x : 0;
}

enum {
	TOOK_BEFORE = 1,
	TOOK_AFTER = 2,
};

/* Whether handlers of signals that are written before the event o took numbers of its object before it, or behind it: as far as is looked
 * ahead. */
static u32 numbers(struct expects *q, u32 i, const struct expect *o)
{
	const struct expect *h;
	u32 took = 0;
	for (; (h = shim_expect_at(q, i)) && h != o && h->kind != EXPECT_END && h->kind != EXPECT_BAD; i++)
		if (h->kind == EXPECT_EVENT && h->obj == o->obj && h->seq)
			took |= h->seq < o->seq ? TOOK_BEFORE : TOOK_AFTER;
	return took;
}

/* Whom it made went on before a signal that came at its end: a thread, which is made with signals blocked, and in a serial run anybody. */
int shim_side_lets_first(u32 call)
{
	if (shim_re_flags[call] & RE_FREES || call == CALL_pthread_create || call == CALL_thrd_create)
		return 1;
	return shim_ctl.serial && shim_re_flags[call] & RE_MAKES && call != CALL_syscall;
}

#define INSIDE_FAR (1u << 14) /* records: who is asked for each signal must not look too far */

/* A quick call does not say that it is under way: a signal is told of it that came where it returns to, as of one that came between
 * the call before and it. Of those that let others go on it came inside, unless a number that its handler took says that it was before. */
void shim_side_inside(struct thr *t, u32 i)
{
	struct expects *q = &t->re->ex;
	struct expect *x = shim_expect_at(q, i), far;
	const struct expect *o;
	u32 depth = 0, at = i, took;
	if (x->call || !x->pc || shim_expect_told(x) || shim_re_is_fault(x) || shim_ctl.serial)
		return;
	o = behind(q, 0, &at, &depth);
	if (!o && far_behind(q, 0, at, depth, INSIDE_FAR, &far))
		o = &far;
	if (!o || o->kind != EXPECT_EVENT || !shim_side_lets_first(o->call) || shim_expect_pc(o) != shim_expect_pc(x))
		return;
	took = numbers(q, i, o);
	/* After a call from the same place nothing else tells which of both it was. */
	if (!(took & TOOK_BEFORE) && (took & TOOK_AFTER || t->re->step.site - t->re->step.moved != shim_expect_pc(x)))
		x->call = o->call;
}

int shim_side_over(const struct expect *x, u32 call)
{
	return x->kind == EXPECT_SIGNAL && x->call == call && x->pc && shim_re_flags[call] & RE_FD;
}

/* The call comes before the signals that came inside of it: nothing left it, nor did they come before it had done anything. */
int shim_side_frees(struct thr *t, u32 call)
{
	u32 over = (u32)shim_side_over(shim_expect(&t->re->ex), call);
	const struct expect *x = over || shim_side_lets_first(call) || call == CALL_pthread_barrier_wait ? shim_side_outer(t, call) : 0;
	return x && x->kind == EXPECT_EVENT && (over || (x->ret != ECANCELED && !(numbers(&t->re->ex, 0, x) & TOOK_BEFORE)));
}

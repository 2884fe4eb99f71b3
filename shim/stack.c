/* Stacks at events.
 *
 * A thread's stack is taken at the first event that ends an interval after its last one: what ends there, a call or
 * the computing before it, is what the thread did when the clock struck, so stacks come in proportion to time. The
 * record path pays one comparison of the stamp it has with thr.stack_at. Two things bring a stack forward, to a
 * quarter of the interval at the soonest: a long wait for a lock, and that another thread waits for a lock that this
 * one holds, which takes place at the holder's next event.
 *
 * A stack follows its event in a second commit, which fails when anything came between: it is dropped then, as a
 * record that names the event before it must not name another. Frames are encoded where they will lie in the ring, as
 * handlers run on the smallest of stacks. A stack that the chunk has is named by its number.
 *
 * Rules as of all on the record path (rules.h, 3), but for system calls that ask whether a page is there: a few a stack.
 */
#include "stack.h"
#include "cfi.h"
#include "modules.h"
#include "thread.h"
#include <time.h>

extern const char __ehdr_start[] HIDDEN, etext[] HIDDEN;

u64 shim_stack_every;

void shim_stack_rate(void)
{
	shim_stack_every = shim_ctl.stackhz && !shim_ctl.index[0] ? shim_gap * 25000 / shim_ctl.stackhz : 0; /* shim_gap is 40 µs of ticks */
}

void shim_stack_begin(struct thr *t)
{
	t->stack_at = shim_stack_every ? t->last + shim_stack_every : ~0ull;
	t->stack_asked = 0;
	t->unloads = shim_unloads;
	t->cpu_timer = 0;
}

/* How fast the ticks are is known about, at first: the time since the run began tells. */
static FAR void measure(u64 now)
{
	static u64 known; /* from how many ticks */
	u64 ticks = now - shim_ctl.ticks0, ns;
	struct timespec ts = {0, 0};
	if (now <= shim_ctl.ticks0 || ticks / 16 < known || known > 1ull << 36)
		return;
	known = ticks;
	sys(SYS_clock_gettime, CLOCK_MONOTONIC, &ts);
	ns = (u64)ts.tv_sec * 1000000000u + (u64)ts.tv_nsec - shim_ctl.mono0;
	if (ns >= 5000000 && ns < 1ull << 50 && ticks < 1ull << 40)
		shim_stack_every = ticks * 1000000 / (ns / 1000) / shim_ctl.stackhz;
}

/* A stack in the making. */
struct making {
	u8 *p;
	u64 before; /* the last address */
	u64 unknown; /* an address in no module that the trace has */
	u32 n, bits;
};

static FAR void add(struct making *m, u64 pc)
{
	if (!m->unknown && !shim_module_known(pc))
		m->unknown = pc;
	pc = shim_module_pc(pc);
	m->p = put_z(m->p, (i64)(pc - m->before));
	m->before = pc;
	m->n++;
}

/* Our own frames are none of the program's. A place that a signal interrupted is told as a return address: one more. */
static FAR void climb(struct making *m, struct walk *w, u64 site)
{
	u32 own = 0;
	int r;
	for (;;) {
		u64 pc = w->pc + w->exact;
		if (w->pc >= (u64)__ehdr_start && w->pc < (u64)etext) {
			if (++own > PROPHET_FramesMax)
				break;
		} else if (m->n || pc != site) {
			if (m->n == PROPHET_FramesMax) {
				m->bits |= PROPHET_StackCut;
				break;
			}
			add(m, pc);
		} else {
			site = 0; /* the event names it */
		}
		r = shim_walk(w);
		if (r == WALK_LOST)
			m->bits |= PROPHET_StackLost;
		if (r != WALK_ON)
			break;
	}
}

/* Encodes a stack behind pos: its frames where the chunk does not have them yet, and its number. */
struct named {
	u64 hash;
	u32 number, new;
};

static FAR u8 *put_stack(struct thr *t, u8 *p, struct making *m, struct walk *w, u64 site, struct named *o)
{
	u32 number = t->stack_gen == t->genx ? t->nstacks : 0, len;
	struct seen *s;
	u8 *head = p, *frames;
	u16 v;
	p = put_v(p, PROPHET_TagFrames);
	p = put_v(p, number);
	frames = p + 2;
	m->p = frames;
	climb(m, w, site);
	len = (u32)(m->p - frames);
	o->hash = shim_hash64(frames, len, t->genx); /* so that it is of this chunk alone */
	s = &t->seen[o->hash % SEEN];
	o->new = s->hash != o->hash;
	o->number = o->new ? number : s->number;
	if (!o->new)
		return head;
	v = (u16)(len << 2 | 2); /* a prefix varint of two bytes */
	shim_copy(p, &v, 2);
	return m->p;
}

static FAR void keep(struct thr *t, const struct named *o)
{
	if (!o->new)
		return;
	t->seen[o->hash % SEEN].hash = o->hash;
	t->seen[o->hash % SEEN].number = o->number;
	t->nstacks = o->number + 1;
	t->stack_gen = t->genx;
}

FAR void shim_stack(struct ev *e, u64 pos)
{
	struct thr *t = e->t;
	struct making m = {0, 0, 0, 0, 0};
	struct named o;
	struct walk w;
	u64 pc, sp, fp, lr;
	u32 why = t->stack_asked;
	u8 *p;
	if ((u32)pos > t->limit)
		return; /* the next event is in another chunk */
	if (unlikely(t->unloads != shim_unloads)) { /* what its chunk says of places is no longer so */
		t->unloads = shim_unloads;
		t->stack_at = shim_stack_every ? t->last : ~0ull;
		shim_flush(t, 0);
		return;
	}
	measure(e->end);
	t->stack_at = e->end + shim_stack_every;
	t->stack_asked = 0;
	if (e->note & PROPHET_NoteWaited && e->end - e->begin >= STACK_WAIT)
		why |= PROPHET_StackWait;
	t->writing = 1;
	barrier();
	if (t->slot->pos != pos) {
		t->writing = 0;
		return;
	}
	SHIM_HERE(pc, sp, fp, lr);
	shim_walk_from(&w, pc, sp, fp, lr, 1);
	p = put_stack(t, t->ring + (u32)pos, &m, &w, (u64)e->pc, &o);
	p = put_v(p, PROPHET_TagStack);
	p = put_v(p, o.number);
	p = put_v(p, why | m.bits);
	if (shim_commit_at(&t->slot->pos, pos, pos + (u64)(p - (t->ring + (u32)pos))))
		keep(t, &o);
	else
		m.unknown = 0;
	t->writing = 0;
	if (m.unknown)
		shim_module_of(t, m.unknown);
}

/* A timer of CPU time found the thread at this place. In a call the sample has the time at which the event before ended, as the
 * call's own begins at its stamp. */
FAR void shim_stack_sample(struct thr *t, const void *context)
{
	struct making m = {0, 0, 0, 0, 0};
	struct named o;
	struct walk w;
	struct timespec ts = {0, 0};
	u64 pos, last, now;
	u8 *p;
	sys(SYS_clock_gettime, 3 /* CLOCK_THREAD_CPUTIME_ID */, &ts);
	pos = shim_place(t);
	last = shim_cursor(t);
	now = t->slot->call ? last : shim_ticks();
	if (now < last)
		now = last;
	shim_walk_from(&w, SHIM_CONTEXT_PC(context), SHIM_CONTEXT_SP(context), SHIM_CONTEXT_FP(context), SHIM_CONTEXT_LR(context), 1);
	p = put_stack(t, t->ring + (u32)pos, &m, &w, 0, &o);
	p = put_v(p, PROPHET_TagSample);
	p = put_v(p, now - last);
	p = put_v(p, o.number);
	p = put_v(p, (u64)ts.tv_sec * 1000000000u + (u64)ts.tv_nsec);
	if (shim_commit_at(&t->slot->pos, pos, pos + (u64)(p - (t->ring + (u32)pos)))) {
		t->last = now;
		keep(t, &o);
	}
	t->writing = 0;
}

#define HOLDERS 256 /* threads that are looked at */

FAR void shim_stack_holder(struct thr *t, u32 tid, u64 now)
{
	struct thr *o;
	u32 n;
	if (!shim_stack_every || now < t->holder_at || !tid)
		return;
	t->holder_at = now + shim_stack_every / 4;
	shim_lock(&shim_wiped->threads);
	for (o = shim_wiped->list, n = 0; o && n < HOLDERS; o = o->next, n++)
		if (o->tid == tid) {
			/* The holder may set both at the same time: then this one is lost. */
			if (o->stack_at != ~0ull && (i64)(o->stack_at - now) <= (i64)(shim_stack_every / 4 * 3)) {
				__atomic_store_n(&o->stack_asked, PROPHET_StackHolder, __ATOMIC_RELAXED);
				__atomic_store_n(&o->stack_at, 0, __ATOMIC_RELAXED);
				t->holder_at = now + shim_stack_every;
			}
			break;
		}
	shim_unlock(&shim_wiped->threads);
}

/* The generators that all threads of a process share: rand and random, and the 48-bit family. The C library draws
 * under a lock of its own, which does not tell the order, so with several threads the draw and its number are taken
 * under a lock here. It is the one place where something is held at a real call: a signal handler that draws while
 * its thread holds it goes ahead, a thread that waits 20 ms takes it (its holder was left by a jump or ended), fork
 * wipes it. With one thread there is no lock.
 * Also here: the C++ library's random device, which asks the processor.
 */
#include "feed.h"

enum { RAND, RAND48 };

/* Who holds the lock, by tid, is in shim_wiped->draw. Returns whether it is now ours to let go. */
static int take(u32 which, u32 me)
{
	u32 *w = &shim_wiped->draw[which], holder = 0, turns = 0;
	u64 since = 0;
	for (;;) {
		u32 was = 0;
		if (__atomic_compare_exchange_n(w, &was, me, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return 1;
		if (was == me)
			return 0;
		if (++turns % 64) {
			shim_pause();
			continue;
		}
		if (was != holder) {
			holder = was;
			since = shim_ticks();
		} else if (shim_ticks() - since > shim_gap * 500 && __atomic_compare_exchange_n(w, &was, me, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			return 1;
		}
		sys(SYS_sched_yield);
	}
}

static void let_go(u32 which, u32 me)
{
	__atomic_compare_exchange_n(&shim_wiped->draw[which], &me, 0, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static struct object_entry *generator(struct thr *t, u32 which)
{
	return shim_object(t, PROPHET_ObjRandState, (void *)(u64)(which + 1));
}

struct draw {
	struct ev e;
	u32 which;
	int held;
};

static int draw_begin(struct draw *d, u32 which, u32 call, void *pc)
{
	if (!shim_begin(&d->e, call, CLASS_random, pc))
		return 0;
	d->which = which;
	if (unlikely(d->e.t->re != 0))
		shim_re_turn(d->e.x, generator(d->e.t, which));
	d->held = shim_run.threads > 1 && take(which, d->e.t->tid);
	return 1;
}

static void draw_end(struct draw *d, i64 ret, u64 f1, u64 f2)
{
	struct object_entry *g = generator(d->e.t, d->which);
	d->e.seq = __atomic_add_fetch(&g->seq, 1, __ATOMIC_RELAXED);
	if (d->held)
		let_go(d->which, d->e.t->tid);
	shim_end(&d->e, WRAP_ONCE);
	d->e.obj = g->id;
	d->e.ret = ret;
	d->e.f1 = f1;
	d->e.f2 = f2;
	shim_done(&d->e);
}

/* The thread, when it is the only one and all is as usual. */
static inline struct thr *alone(void)
{
	struct thr *t = shim_self.thr;
	return likely(t && (t->gate & shim_ctl.fast & 1u << CLASS_random) && shim_run.threads < 2) ? t : 0;
}

static NOINLINE void drew_late(struct thr *t, u32 call, void *pc, struct object_entry *g, u64 seq, i64 ret, u64 now)
{
	struct ev e;
	shim_late(&e, t, call, pc, now, now);
	e.obj = g->id;
	e.seq = seq;
	e.ret = ret;
	shim_done(&e);
}

/* shim_quick for what a draw needs most: only the value differs. */
static inline __attribute__((always_inline)) void drew(struct thr *t, u32 which, u32 call, void *pc, i64 ret)
{
	struct object_entry *g = generator(t, which);
	u64 sc = key_sc(pc, call), id = g->id, seq = ++g->seq, now = shim_ticks(), dt, v;
	struct key *k = &t->keys[key_slot(id, sc)];
	struct slot *s = t->slot;
	u64 pos = s->pos;
	u8 *at = t->ring + (u32)pos, *p;
	barrier();
	dt = now - t->last;
	if (unlikely(k->idx != (id ^ t->genx) || k->sc != sc || k->f1 | k->f2 | k->f3 || seq != k->seq + 1 || ret == k->ret ||
		     k->num >= 128 - PROPHET_FirstKey || dt >= 1u << 13 || (u32)pos > t->limit || now >= t->stack_at)) {
		drew_late(t, call, pc, g, seq, ret, now);
		return;
	}
	v = (u64)((PROPHET_FirstKey + k->num) << 1 | 1) | ((dt << 1 | PROPHET_EvMore) << 2 | 2) << 8 | (u64)PROPHET_MaskRet << 24;
	__builtin_memcpy(at, &v, 8);
	p = put_z(at + 4, ret - k->ret);
	t->last = now;
	if (unlikely(!shim_commit_at(&s->pos, pos, pos + (u64)(p - at)))) {
		drew_late(t, call, pc, g, seq, ret, now);
		return;
	}
	k->ret = ret;
	k->seq = seq;
}

#define DRAW(type, name, which)                              \
	static NOINLINE type name##_among(void *pc)          \
	{                                                    \
		struct draw d;                               \
		type r;                                      \
		if (!draw_begin(&d, which, CALL_##name, pc)) \
			return REAL(name)();                 \
		r = REAL(name)();                            \
		draw_end(&d, r, 0, 0);                       \
		return r;                                    \
	}                                                    \
	EXPORT type name(void)                               \
	{                                                    \
		struct thr *t = alone();                     \
		type r;                                      \
		if (unlikely(!t))                            \
			return name##_among(CALLER());       \
		r = REAL(name)();                            \
		drew(t, which, CALL_##name, CALLER(), r);    \
		return r;                                    \
	}

DRAW(int, rand, RAND)
DRAW(long int, random, RAND)
DRAW(long int, lrand48, RAND48)
DRAW(long int, mrand48, RAND48)

EXPORT double drand48(void)
{
	struct draw d;
	double r;
	if (!draw_begin(&d, RAND48, CALL_drand48, CALLER()))
		return REAL(drand48)();
	r = REAL(drand48)();
	draw_end(&d, 0, shim_bits(r), 0);
	return r;
}

EXPORT void srand(unsigned int seed)
{
	struct draw d;
	int on = draw_begin(&d, RAND, CALL_srand, CALLER());
	REAL(srand)(seed);
	if (on)
		draw_end(&d, 0, seed, 0);
}

EXPORT void srandom(unsigned int seed)
{
	struct draw d;
	int on = draw_begin(&d, RAND, CALL_srandom, CALLER());
	REAL(srandom)(seed);
	if (on)
		draw_end(&d, 0, seed, 0);
}

EXPORT char *initstate(unsigned int seed, char *state, size_t n)
{
	struct draw d;
	int on = draw_begin(&d, RAND, CALL_initstate, CALLER());
	char *r = REAL(initstate)(seed, state, n);
	if (on)
		draw_end(&d, shim_ret_ptr(r), seed, n);
	return r;
}

EXPORT char *setstate(char *state)
{
	struct draw d;
	int on = draw_begin(&d, RAND, CALL_setstate, CALLER());
	char *r = REAL(setstate)(state);
	if (on)
		draw_end(&d, shim_ret_ptr(r), 0, 0);
	return r;
}

EXPORT void srand48(long int seed)
{
	struct draw d;
	int on = draw_begin(&d, RAND48, CALL_srand48, CALLER());
	REAL(srand48)(seed);
	if (on)
		draw_end(&d, 0, (u64)seed, 0);
}

static u64 bits48(const unsigned short *x)
{
	return x[0] | (u64)x[1] << 16 | (u64)x[2] << 32;
}

EXPORT unsigned short int *seed48(unsigned short int seed[3])
{
	struct draw d;
	int on = draw_begin(&d, RAND48, CALL_seed48, CALLER());
	unsigned short *r = REAL(seed48)(seed);
	if (on)
		draw_end(&d, 0, bits48(seed), 0);
	return r;
}

EXPORT void lcong48(unsigned short int param[7])
{
	struct draw d;
	int on = draw_begin(&d, RAND48, CALL_lcong48, CALLER());
	REAL(lcong48)(param);
	if (on)
		draw_end(&d, 0, bits48(param), 0);
}

typedef unsigned int device(void *self);

/* The library may have come by dlopen, and can go again: that it is there is known at this moment only. */
static device *device_real(void)
{
	device *f = (device *)shim_real_maybe(CALL__ZNSt13random_device9_M_getvalEv);
	return f ? f : (device *)shim_lookup_late(CALL__ZNSt13random_device9_M_getvalEv);
}

/* The real one is called in a re-execution, too: what it asks of the system is compared like all else. */
EXPORT unsigned int _ZNSt13random_device9_M_getvalEv(void *self)
{
	unsigned int r = device_real()(self);
	struct ev e;
	struct expect *x;
	if (!shim_begin(&e, CALL__ZNSt13random_device9_M_getvalEv, CLASS_random, CALLER()))
		return r;
	x = shim_re_of(CALL__ZNSt13random_device9_M_getvalEv);
	if (x)
		r = (unsigned int)x->ret;
	shim_end(&e, WRAP_ONCE);
	e.ret = r;
	shim_done(&e);
	return r;
}

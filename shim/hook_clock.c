/* Clocks by hand: they are called as often as locks, and cost little more than a stamp themselves. */
#include "wrap.h"
#include <sys/time.h>
#include <time.h>

static NOINLINE void common(struct thr *t, u32 call, void *pc, i64 ret, u64 ns, u64 clk, u64 now)
{
	struct ev e;
	e.t = t;
	e.call = call;
	e.pc = pc;
	e.obj = e.seq = 0;
	e.note = e.nparts = e.data_kind = e.inlen = e.held = 0;
	e.ret = ret;
	e.f1 = ns;
	e.f2 = clk;
	e.f3 = 0;
	e.begin = e.end = now;
	shim_commit(&e);
}

/* shim_quick for what a clock needs most: only the time it told differs, by less than 8 µs. */
static inline __attribute__((always_inline)) int ticked(struct thr *t, u64 sc, u64 ns, u64 clk, u64 now)
{
	struct key *k = &t->keys[key_slot(0, sc)];
	struct slot *s = t->slot;
	u64 pos = s->pos, dt, step, v;
	barrier();
	dt = now - t->last;
	step = ns - k->f1;
	if (unlikely(k->idx != t->genx || k->sc != sc || k->f2 != clk || k->num >= 128 - PROPHET_FirstKey))
		return 0;
	if (unlikely(dt >= 1u << 13 || step >= 1u << 13 || k->ret || k->f3 || (u32)pos > t->limit || now >= t->stack_at))
		return 0;
	v = (u64)((PROPHET_FirstKey + k->num) << 1 | 1) | ((dt << 1 | PROPHET_EvMore) << 2 | 2) << 8 | (u64)PROPHET_MaskF1 << 24 | (step << 1 << 2 | 2) << 32;
	__builtin_memcpy(t->ring + (u32)pos, &v, 8);
	t->last = now;
	if (unlikely(!shim_commit_at(&s->pos, pos, pos + 6)))
		return 0;
	k->f1 = ns;
	return 1;
}

/* Whatever is not as usual: the first event, serial, a pause, a re-execution. */
static NOINLINE int get_event(clockid_t clk, struct timespec *ts, void *pc)
{
	struct ev e;
	int r;
	if (!shim_begin(&e, CALL_clock_gettime, CLASS_time, pc))
		return shim_clock_read(REAL(clock_gettime), clk, ts);
	r = shim_replays ? REAL(clock_gettime)(clk, ts) : shim_clock_read(REAL(clock_gettime), clk, ts);
	shim_end(&e, WRAP_ONCE);
	e.ret = shim_ret_errno(r);
	e.f1 = r == 0 ? (u64)ts->tv_sec * 1000000000u + (u64)ts->tv_nsec : 0;
	e.f2 = (u64)(u32)clk;
	shim_done(&e);
	return r;
}

static inline struct thr *usual(void)
{
	struct thr *t = shim_self.thr;
	return likely(t && (t->gate & shim_ctl.fast & 1u << CLASS_time)) ? t : 0;
}

EXPORT int clock_gettime(clockid_t clk, struct timespec *ts)
{
	struct thr *t = usual();
	u64 ns = 0, now;
	int r;
	if (unlikely(!t))
		return get_event(clk, ts, CALLER());
	r = REAL(clock_gettime)(clk, ts);
	now = shim_ticks();
	if (unlikely(!usual())) /* a pause began meanwhile: what was read may be of a time that the program does not have */
		return get_event(clk, ts, CALLER());
	if (likely(r == 0)) {
		ns = (u64)ts->tv_sec * 1000000000u + (u64)ts->tv_nsec;
		if (likely(ticked(t, key_sc(CALLER(), CALL_clock_gettime), ns, (u64)(u32)clk, now)))
			return 0;
		if (likely(shim_numbers(t, 0, key_sc(CALLER(), CALL_clock_gettime), 0, ns, (u64)(u32)clk, 0, now, now)))
			return 0;
	}
	common(t, CALL_clock_gettime, CALLER(), shim_ret_errno(r), ns, (u64)(u32)clk, now);
	return r;
}

/* The older clock, of which redis and others ask as often: f1 is in µs. */
typedef int (*of_day_fn)(struct timeval *restrict, void *restrict);

static int virtual_day(of_day_fn real, struct timeval *tv, void *tz)
{
	struct timespec ts;
	int r = real(tv, tz);
	if (shim_ctl.pause && r == 0 && tv && shim_clock_read(REAL(clock_gettime), CLOCK_REALTIME, &ts) == 0) {
		tv->tv_sec = ts.tv_sec;
		tv->tv_usec = ts.tv_nsec / 1000;
	}
	return r;
}

static NOINLINE int of_day_event(of_day_fn real, u32 call, void *pc, struct timeval *tv, void *tz)
{
	struct ev e;
	int r;
	if (!shim_begin(&e, call, CLASS_time, pc))
		return virtual_day(real, tv, tz);
	r = shim_replays ? real(tv, tz) : virtual_day(real, tv, tz);
	shim_end(&e, WRAP_ONCE);
	e.ret = shim_ret_errno(r);
	e.f1 = r == 0 && tv ? (u64)tv->tv_sec * 1000000u + (u64)tv->tv_usec : 0;
	shim_done(&e);
	return r;
}

static inline __attribute__((always_inline)) int of_day(of_day_fn real, u32 call, void *pc, struct timeval *tv, void *tz)
{
	struct thr *t = usual();
	u64 us = 0, now;
	int r;
	if (unlikely(!t))
		return of_day_event(real, call, pc, tv, tz);
	r = real(tv, tz);
	now = shim_ticks();
	if (unlikely(!usual()))
		return of_day_event(real, call, pc, tv, tz);
	if (likely(r == 0)) {
		if (tv)
			us = (u64)tv->tv_sec * 1000000u + (u64)tv->tv_usec;
		if (likely(ticked(t, key_sc(pc, call), us, 0, now)))
			return 0;
		if (likely(shim_numbers(t, 0, key_sc(pc, call), 0, us, 0, 0, now, now)))
			return 0;
	}
	common(t, call, pc, shim_ret_errno(r), us, 0, now);
	return r;
}

EXPORT int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
	return of_day(REAL(gettimeofday), CALL_gettimeofday, CALLER(), tv, tz);
}

int __gettimeofday(struct timeval *restrict tv, void *restrict tz);

EXPORT int __gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
	return of_day(REAL(__gettimeofday), CALL___gettimeofday, CALLER(), tv, tz);
}

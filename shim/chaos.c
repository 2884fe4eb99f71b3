/* See chaos.h. */
#include "chaos.h"
#include "thread.h"
#include <linux/futex.h>
#include <time.h>

enum { PACE_FULL, PACE_HESITATES, PACE_STOPS, PACE_CRAWLS };
#define EVENTS_MIN_LOG2 2 /* change points lie up to 2^2 to 2^10 events apart */
#define EVENTS_MAX_LOG2 10
#define HESITATE_LOG2 7 /* 1 to 2^7 µs */
#define STOP_MIN_LOG2 6 /* 2^6 µs to 2^14 µs */
#define STOP_MAX_LOG2 14
#define FREE_STOPS 4 /* that need no share of the thread's life */
#define SHARE 3

static u64 mix(u64 x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static u64 draw(struct thr *t)
{
	return mix(t->chaos.state += 0x9e3779b97f4a7c15ull);
}

/* From 2^from to 2^to, each power of two as likely as the next. */
static u64 draw_log(u64 r, u32 from, u32 to)
{
	u32 bits = from + (u32)(r % (to - from));
	return (1ull << bits) + (r >> 16 & ((1ull << bits) - 1));
}

static u64 us(u64 n)
{
	return n * shim_gap / 40; /* shim_gap is 40 µs of ticks */
}

static void change(struct thr *t)
{
	static const u8 paces[] = {PACE_FULL, PACE_FULL, PACE_FULL, PACE_FULL, PACE_FULL, PACE_HESITATES, PACE_HESITATES, PACE_STOPS, PACE_STOPS, PACE_CRAWLS};
	u32 apart = EVENTS_MIN_LOG2 + (u32)(mix(~shim_ctl.chaosseed) % (EVENTS_MAX_LOG2 - EVENTS_MIN_LOG2 + 1));
	t->chaos.left = (u32)draw_log(draw(t), 0, apart);
	t->chaos.pace = paces[draw(t) % sizeof paces];
}

static void begin(struct thr *t)
{
	t->chaos.state = mix(shim_ctl.chaosseed ^ mix(t->uid)) | 1;
	t->chaos.born = shim_ticks();
	t->chaos.stop = us(draw_log(mix(shim_ctl.chaosseed), STOP_MIN_LOG2, STOP_MAX_LOG2));
	t->chaos.stopped = 0;
	/* Of a run's threads half, or all: an order that one thread's delay makes is unmade by another's. */
	t->chaos.spared = draw(t) % 4 >= 2u << mix(shim_ctl.chaosseed + 1) % 2;
	change(t);
}

/* A sleep takes the kernel some 50 µs more than it is asked for. */
static void hold(struct thr *t, u64 ticks)
{
	static const u32 never;
	u64 from = shim_ticks(), until = from + ticks;
	if (ticks > us(100)) {
		u64 ns = (ticks - us(50)) * 40000 / shim_gap;
		struct timespec ts = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
		sys(SYS_futex, &never, FUTEX_WAIT, 0, &ts, 0, 0);
	} else {
		do
			sys(SYS_sched_yield);
		while (shim_ticks() < until);
	}
	t->chaos.stopped += shim_ticks() - from;
}

int shim_chaos(struct thr *t)
{
	u64 r, n;
	int stop = 0;
	if (t->vfork || __atomic_load_n(&shim_ctl.nextuid, __ATOMIC_RELAXED) < 2) /* nobody to come before or after */
		return 0;
	if (!t->chaos.state)
		begin(t);
	if (t->chaos.spared)
		return 0;
	if (!t->chaos.left--) {
		change(t);
		stop = 1;
	}
	r = draw(t);
	switch (stop ? PACE_CRAWLS : t->chaos.pace) {
	case PACE_HESITATES:
		if (r % 4)
			return 0;
		n = us(draw_log(r >> 2, 0, HESITATE_LOG2));
		break;
	case PACE_STOPS:
		if (r % 8)
			return 0;
		n = t->chaos.stop;
		break;
	case PACE_CRAWLS:
		n = t->chaos.stop;
		break;
	default:
		return 0;
	}
	if (t->chaos.stopped + n > FREE_STOPS * t->chaos.stop + us(1000) + (shim_ticks() - t->chaos.born) / SHARE)
		return 0;
	hold(t, n);
	return 1;
}

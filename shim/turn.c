/* Turns: a thread waits until the place before its own is taken. Who takes a place calls who waits for the next; the
 * daemon is not asked. See replay.h; the pure model of it is runtime/turn.
 *
 * A waiter says at which place it wants to be called: its own, or some places before, as a thread takes longer to wake up
 * than others take for a turn; it then spins. It counts itself, looks once more, then sleeps; who takes a place stores
 * it, then looks for waiters: one of the two sees the other.
 */
#include "replay.h"
#include <linux/futex.h>
#include <time.h>

/* Near its turn a thread looks so often before it sleeps. Every LOOKS it lets others run: who has the turn may need this
 * very processor. That made 16 threads on two processors 4 to 100 times as fast, and two threads no slower. */
#define SPINS 8000
#define STILL 512
#define LOOKS 16
#define EARLY 200 /* places: about as many are taken while a thread wakes up */
/* Where others than ours want the processors, the kernel gives them a whole time slice for each time that a thread lets others
 * run, and it may be behind them for longer when it has its turn. So one that was away so long looks a few times more, sleeps,
 * and does it that way in its next waits. Hand-overs of serial runs beside four busy loops: 30 times as fast. */
#define DEAR (shim_gap * 12) /* 0.5 ms */
#define DEAR_WAITS 200
#define DEAR_STILL 64
#define OTHER 31 /* the bit of those that found no room */
#define SLEEP_NS_MAX 2000000000ull

/* Whether nobody calls who could go on: whoever takes a place calls right after it, unless it has to wait for a processor. */
static int not_called(const u32 *word, u32 was)
{
	struct timespec ts = {0, 1000000};
	u32 i;
	for (i = 0; i < 100 && __atomic_load_n(word, __ATOMIC_ACQUIRE) == was; i++)
		sys(SYS_nanosleep, &ts, 0);
	return i == 100;
}

/* Who took the place may have been kept from calling. */
static int steered(u32 pause)
{
	return pause & 1 || __atomic_load_n(&shim_ctl.pause, __ATOMIC_ACQUIRE) != pause || __atomic_load_n(&shim_index->hold, __ATOMIC_ACQUIRE);
}

static inline u64 wanted(u64 name, u64 place)
{
	return (name * 0x9E3779B97F4A7C15ull ^ place) | 1ull << 63;
}

/* Where a waiter sleeps: in the bucket of its object, or, when that is full, in one that its object and place choose, so
 * that of very many that wait at one object few are woken for each place. */
struct seat {
	struct replayturn *home, *at;
	u32 bit, other; /* other: home is full */
};

static inline struct replayturn *elsewhere(u64 want)
{
	return &shim_index_turns()[want * 0x9E3779B97F4A7C15ull >> 54];
}

static u32 take_bit(struct replayturn *b, u64 want)
{
	u32 i;
	for (i = 0; i < PROPHET_TurnWaiters; i++) {
		u64 none = 0;
		if (!b->want[i] && __atomic_compare_exchange_n(&b->want[i], &none, want, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			return i;
	}
	return OTHER;
}

/* The count that who calls looks at first is the last. */
static struct seat enter(struct replayturn *b, u64 want)
{
	struct seat s = {b, b, take_bit(b, want), 0};
	if (s.bit == OTHER) {
		s.at = elsewhere(want);
		s.other = 1;
		if (s.at != b)
			s.bit = take_bit(s.at, want);
		__atomic_add_fetch(&b->others, 1, __ATOMIC_SEQ_CST);
	}
	__atomic_add_fetch(&b->waiters, 1, __ATOMIC_SEQ_CST);
	return s;
}

static void leave(const struct seat *s)
{
	if (s->bit != OTHER)
		__atomic_store_n(&s->at->want[s->bit], 0, __ATOMIC_SEQ_CST);
	if (s->other)
		__atomic_sub_fetch(&s->home->others, 1, __ATOMIC_SEQ_CST);
	__atomic_sub_fetch(&s->home->waiters, 1, __ATOMIC_SEQ_CST);
}

/* Wakes by itself now and then, to see that the world has stopped: the less often the more do so. */
static int sleep_at(const struct seat *s, u32 was)
{
	u64 ns = 100000000ull * (1 + __atomic_load_n(&s->home->waiters, __ATOMIC_RELAXED) / 64);
	struct timespec until;
	sys(SYS_clock_gettime, CLOCK_MONOTONIC, &until);
	ns = (u64)until.tv_nsec + (ns < SLEEP_NS_MAX ? ns : SLEEP_NS_MAX);
	until.tv_sec += (time_t)(ns / 1000000000);
	until.tv_nsec = (long)(ns % 1000000000);
	return sys(SYS_futex, &s->at->word, FUTEX_WAIT_BITSET, was, &until, 0, 1u << s->bit) == -ETIMEDOUT;
}

/* Lets others run for a moment; 1: that took long. */
static int yields_dearly(struct re *re)
{
	u64 since = shim_ticks();
	sys(SYS_sched_yield);
	if (likely(shim_ticks() - since < DEAR))
		return 0;
	re->dear = DEAR_WAITS;
	return 1;
}

void shim_turn(struct thr *t, const struct expect *x, u64 name, u64 place, turn_fn ready, const void *object)
{
	struct replaythread *th = t->re->th;
	struct replayturn *b = shim_turn_bucket(name);
	struct seat seat;
	u64 away;
	u32 i, still, was = th->state; /* one whose routine is over stays so */
	for (;;) {
		u64 at, nearest = ~0ull;
		u32 dear = t->re->dear;
		for (i = still = 0; (away = ready(object, x)) != 0 && away <= EARLY && i < SPINS && still < (dear ? DEAR_STILL : STILL); i++) {
			still = away < nearest ? 0 : still + 1;
			nearest = away;
			if (dear || i % LOOKS != LOOKS - 1)
				shim_pause();
			else if (yields_dearly(t->re))
				break;
		}
		if (likely(!away))
			break;
		th->object = name;
		th->turn = place;
		th->at = away;
		__atomic_store_n(&th->state, PROPHET_TurnWaits, __ATOMIC_RELEASE);
		at = place > EARLY && away > EARLY && away < 1ull << 32 ? place - EARLY : place; /* that may be far from a first place */
		t->re->dear -= t->re->dear != 0;
		seat = enter(b, wanted(name, at));
		for (;;) {
			u32 word = __atomic_load_n(&seat.at->word, __ATOMIC_ACQUIRE), pause = __atomic_load_n(&shim_ctl.pause, __ATOMIC_ACQUIRE);
			away = ready(object, x);
			if (!away || (at != place && away <= EARLY))
				break;
			if (__atomic_load_n(&shim_index->diverged, __ATOMIC_ACQUIRE)) {
				leave(&seat);
				shim_re_stop(t, PROPHET_TurnWaits);
			}
			if (unlikely(shim_re_detached())) {
				leave(&seat);
				__atomic_store_n(&th->state, was, __ATOMIC_RELEASE);
				return;
			}
			if (sleep_at(&seat, word) && !ready(object, x) && not_called(&seat.at->word, word) && !steered(pause))
				__atomic_add_fetch(&shim_index->missed, 1, __ATOMIC_RELAXED);
			shim_park(); /* what calls us meanwhile is seen by looking */
		}
		leave(&seat);
		__atomic_store_n(&th->state, was, __ATOMIC_RELEASE);
		if (!away)
			break;
	}
}

static void wake(struct replayturn *b, u32 bits)
{
	__atomic_add_fetch(&b->word, 1, __ATOMIC_SEQ_CST);
	sys(SYS_futex, &b->word, FUTEX_WAKE_BITSET, 0x7fffffff, 0, 0, bits);
}

void shim_turn_next(u64 name, u64 place)
{
	struct replayturn *b = shim_turn_bucket(name);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (unlikely(__atomic_load_n(&b->waiters, __ATOMIC_RELAXED)))
		shim_turn_call(b, name, place);
}

/* Those of a bucket that wait for this. */
static u32 called(const struct replayturn *b, u64 want)
{
	u32 i, bits = 0;
	for (i = 0; i < PROPHET_TurnWaiters; i++)
		if (__atomic_load_n(&b->want[i], __ATOMIC_RELAXED) == want)
			bits |= 1u << i;
	return bits;
}

void shim_turn_call(struct replayturn *b, u64 name, u64 place)
{
	u64 want = wanted(name, place + 1);
	u32 bits = called(b, want);
	if (bits)
		wake(b, bits);
	if (unlikely(__atomic_load_n(&b->others, __ATOMIC_RELAXED))) {
		b = elsewhere(want);
		wake(b, called(b, want) | 1u << OTHER);
	}
}

void shim_turn_all(u64 name)
{
	struct replayturn *b = shim_turn_bucket(name);
	u32 i;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (likely(!__atomic_load_n(&b->waiters, __ATOMIC_RELAXED)))
		return;
	wake(b, ~0u);
	if (unlikely(__atomic_load_n(&b->others, __ATOMIC_RELAXED)))
		for (i = 0; i < PROPHET_TurnBuckets; i++)
			wake(&shim_index_turns()[i], ~0u);
}

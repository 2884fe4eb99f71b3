/* Turns: a thread waits until the place before its own is taken. Who takes a place wakes who waits for the next; the
 * daemon is not asked. See replay.h; the pure model of it is runtime/turn.
 *
 * A bucket's word changes with each wake-up that somebody waits for. A waiter counts itself, then looks once more, then
 * sleeps; who takes a place stores it, then looks for waiters: one of the two sees the other.
 */
#include "replay.h"
#include <linux/futex.h>
#include <time.h>

#define SPINS 2000 /* looks, each some 40 cycles: less than a wake-up across cores costs */
#define NEAR 4 /* turns: further away it does not pay to spin */

/* Wakes by itself now and then, to see that the world has stopped. */
static void sleep_at(u32 *word, u32 was, u32 bits)
{
	struct timespec until;
	sys(SYS_clock_gettime, CLOCK_MONOTONIC, &until);
	until.tv_nsec += 100000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	sys(SYS_futex, word, FUTEX_WAIT_BITSET, was, &until, 0, bits);
}

static inline u32 bit(u64 place)
{
	return 1u << (place & 31);
}

void shim_turn(struct thr *t, const struct expect *x, u64 name, u64 place, turn_fn ready, const void *object)
{
	struct replaythread *th = t->re->th;
	struct replayturn *b = shim_turn_bucket(name);
	u64 away;
	u32 i, was;
	for (i = 0; (away = ready(object, x)) != 0 && away <= NEAR && i < SPINS; i++)
		shim_pause();
	if (likely(!away))
		return;
	th->object = name;
	th->turn = place;
	was = th->state; /* one whose routine is over stays so */
	__atomic_store_n(&th->state, PROPHET_TurnWaits, __ATOMIC_RELEASE);
	__atomic_add_fetch(&b->waiters, 1, __ATOMIC_SEQ_CST);
	for (;;) {
		u32 word = __atomic_load_n(&b->word, __ATOMIC_ACQUIRE);
		away = ready(object, x);
		if (!away)
			break;
		if (__atomic_load_n(&shim_index->diverged, __ATOMIC_ACQUIRE)) {
			__atomic_sub_fetch(&b->waiters, 1, __ATOMIC_SEQ_CST);
			shim_re_stop(t, PROPHET_TurnWaits);
		}
		th->at = away;
		sleep_at(&b->word, word, bit(place));
	}
	__atomic_sub_fetch(&b->waiters, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&th->state, was, __ATOMIC_RELEASE);
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
		wake(b, bit(place + 1));
}

void shim_turn_all(u64 name)
{
	struct replayturn *b = shim_turn_bucket(name);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (unlikely(__atomic_load_n(&b->waiters, __ATOMIC_RELAXED)))
		wake(b, ~0u);
}

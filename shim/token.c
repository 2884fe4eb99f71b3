/* See token.h. */
#include "token.h"
#include <time.h>

#define TID_BITS PROPHET_TokenTID
#define LOOK_NS 200000
#define BESIDE_NS 100000000ull /* a spinning thread has come to where it spins long before */
#define DEATH_NS 2000000000ull
#define CALLS_MAX_SKIPPED 16

static inline u64 turn_on(void)
{
	return __atomic_load_n(&shim_index->token, __ATOMIC_ACQUIRE) >> TID_BITS;
}

/* The turn after n that a stream has. */
static u64 after(u64 n)
{
	const struct replayskip *s = (const struct replayskip *)((u8 *)shim_index + shim_index->skipsat);
	u32 low = 0, high = shim_index->skips;
	n++;
	while (low < high) {
		u32 mid = low + (high - low) / 2;
		if (s[mid].past <= n)
			low = mid + 1;
		else
			high = mid;
	}
	return low < shim_index->skips && s[low].from <= n ? s[low].past : n;
}

static u64 token_away(const void *object, const struct expect *x)
{
	u64 n = *(const u64 *)object, on = turn_on();
	(void)x;
	return on < n ? n - on : 0;
}

void shim_token_give(struct thr *t)
{
	u64 n = t->re->turn, next, was, i;
	if (!n)
		return;
	t->re->turn = 0;
	was = n << TID_BITS | t->tid;
	next = after(n);
	if (!__atomic_compare_exchange_n(&shim_index->token, &was, next << TID_BITS, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return; /* it was taken from us, as recorded */
	if (next - n > CALLS_MAX_SKIPPED)
		shim_turn_all(PROPHET_ReplayToken);
	else
		for (i = n; i < next; i++)
			shim_turn_next(PROPHET_ReplayToken, i);
}

/* A thread id from shared memory is believed when a thread of this re-execution says that it is its own. */
static int in_world(u32 tid)
{
	const struct replaythread *th = shim_index_threads();
	u32 i;
	for (i = 1; i < shim_index->threads; i++)
		if (th[i].now == tid)
			return 1;
	return 0;
}

/* Until turn n is on, or its holder has lost the one before as it did in the recorded run. */
static void beside(struct thr *t, u64 n, u32 how)
{
	u64 since = 0, asleep = 0;
	while (turn_on() < n) {
		u64 at = __atomic_load_n(&shim_index->token, __ATOMIC_ACQUIRE), now;
		u32 holder = (u32)(at & ((1u << TID_BITS) - 1));
		struct timespec ts = {0, LOOK_NS};
		if (holder && after(at >> TID_BITS) == n) {
			struct timespec m;
			sys(SYS_clock_gettime, CLOCK_MONOTONIC, &m);
			now = (u64)m.tv_sec * 1000000000u + (u64)m.tv_nsec;
			since = since ? since : now;
			asleep = how == PROPHET_TokenSlept && shim_sleeps(holder) ? asleep + 1 : 0;
			if ((how == PROPHET_TokenDead ? shim_ended(holder) || now - since > DEATH_NS : now - since > BESIDE_NS) || asleep > 5)
				if (__atomic_compare_exchange_n(&shim_index->token, &at, n << TID_BITS, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED) &&
				    how != PROPHET_TokenDead && in_world(holder))
					shim_serial_stop(holder);
		}
		shim_re_nap(t, PROPHET_ReplayToken, n, n - (at >> TID_BITS), &ts);
	}
}

void shim_token_take(struct thr *t, u64 turn)
{
	u64 n = turn >> 3;
	u32 how = turn & 3;
	shim_token_give(t);
	if (how != PROPHET_TokenGiven)
		beside(t, n, how);
	if (likely(!t->re->alone))
		shim_turn(t, 0, PROPHET_ReplayToken, n, token_away, &n);
	t->re->turn = n;
	__atomic_store_n(&shim_index->token, n << TID_BITS | t->tid, __ATOMIC_RELEASE);
}

/* Signals that came as the call x had been done come behind it, and are written before it: it was done by the first turn of theirs. */
static u64 turn_by(struct thr *t, const struct expect *x)
{
	const struct expect *y = shim_expect(&t->re->ex);
	u32 i;
	if (likely(y->kind != EXPECT_SIGNAL))
		return x->token;
	for (i = 1; (y = shim_expect_at(&t->re->ex, i)) && y != x && y->kind != EXPECT_END && y->kind != EXPECT_BAD; i++)
		if ((y->kind == EXPECT_TOKEN || y->kind == EXPECT_EVENT) && y->token)
			return y->token;
	return x->token;
}

void shim_token_await(struct thr *t, const struct expect *x)
{
	u64 turn = turn_by(t, x), n = turn >> 3;
	if (n && (turn & 3) == PROPHET_TokenGiven && !t->re->alone)
		shim_turn(t, 0, PROPHET_ReplayToken, n, token_away, &n);
}

int shim_token_here(struct thr *t)
{
	struct expect *x = shim_expect(&t->re->ex);
	u64 turn = x->token;
	if (x->kind != EXPECT_TOKEN)
		return 0;
	shim_expect_drop(&t->re->ex);
	shim_token_take(t, turn);
	return 1;
}

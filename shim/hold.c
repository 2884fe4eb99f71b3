/* Where threads of a re-execution stand when replayd steers it: before an event that is beyond their limit
 * (ReplayThread.Until), or at a break. Limits and breaks are replayd's to write, and it wakes who stands by Replay.Go. A
 * thread may also stand where its event is about to be counted: it came to the call before the limit was set.
 *
 * A thread that stands counts as parked in a pause that comes meanwhile, as it looks at the pause word before it goes
 * on: it takes Slot.Parked back, then looks; the controller makes the word odd, then looks at Slot.Parked.
 */
#include "replay.h"
#include "modules.h"
#include <linux/futex.h>

static int at_break(const struct thr *t, const struct expect *x)
{
	u32 i, n = __atomic_load_n(&shim_index->breaks, __ATOMIC_ACQUIRE);
	for (i = 0; i < n && i < PROPHET_BreaksMax; i++) {
		const struct replaybreak *b = &shim_index->places[i];
		if (b->uid && b->uid != t->uid)
			continue;
		if (b->call ? b->call == x->call : b->object == x->obj || b->object == x->f2) /* f2: a wait's mutex; no other number looks like a name */
			return 1;
	}
	return 0;
}

/* What it stands for; 0: it may go on. */
static u32 stands(struct thr *t, const struct expect *x)
{
	struct replaythread *th = t->re->th;
	u32 none = 0;
	if (shim_re_detached())
		return 0;
	if (th->event >= __atomic_load_n(&th->until, __ATOMIC_ACQUIRE))
		return PROPHET_TurnHeld;
	if (!x || x->kind != EXPECT_EVENT || __atomic_load_n(&th->pass, __ATOMIC_ACQUIRE) == th->event + 1 || !at_break(t, x))
		return 0;
	__atomic_compare_exchange_n(&shim_index->broke, &none, t->uid, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	return PROPHET_TurnBroke;
}

int shim_re_hold(struct thr *t, const struct expect *x)
{
	struct replaythread *th = t->re->th;
	u32 was = th->state, told = 0, now, go;
	for (;;) {
		go = __atomic_load_n(&shim_index->go, __ATOMIC_ACQUIRE);
		if (__atomic_load_n(&shim_index->hold, __ATOMIC_ACQUIRE) & PROPHET_HoldDiverged)
			shim_re_stop(t, PROPHET_TurnStopped);
		now = stands(t, x);
		if (!now) {
			if (told)
				__atomic_store_n(&t->slot->parked, 0, __ATOMIC_SEQ_CST);
			if (!shim_paused())
				break;
			shim_park();
			told = 0;
			continue;
		}
		__atomic_store_n(&th->state, now, __ATOMIC_RELEASE);
		__atomic_store_n(&t->slot->parked, PROPHET_ParkedHeld, __ATOMIC_SEQ_CST);
		if (told != now) {
			told = now;
			__atomic_add_fetch(&shim_index->stops, 1, __ATOMIC_RELEASE);
			sys(SYS_futex, &shim_index->stops, FUTEX_WAKE, 0x7fffffff, 0, 0, 0);
		}
		sys(SYS_futex, &shim_index->go, FUTEX_WAIT, go, 0, 0, 0);
	}
	__atomic_store_n(&th->state, was, __ATOMIC_RELEASE);
	return shim_re_detached();
}

/* As one that stands by its limit does. Parked is taken back before the pause word is looked at. */
void shim_re_stand(struct thr *t)
{
	struct replaythread *th = t->re->th;
	u32 was = th->state, go;
	__atomic_store_n(&th->state, PROPHET_TurnHeld, __ATOMIC_RELEASE);
	__atomic_store_n(&t->slot->parked, PROPHET_ParkedHeld, __ATOMIC_SEQ_CST);
	for (;;) {
		go = __atomic_load_n(&shim_index->go, __ATOMIC_ACQUIRE);
		if (shim_re_detached())
			break;
		sys(SYS_futex, &shim_index->go, FUTEX_WAIT, go, 0, 0, 0);
	}
	__atomic_store_n(&t->slot->parked, 0, __ATOMIC_SEQ_CST);
	if (shim_paused())
		shim_park();
	__atomic_store_n(&th->state, was, __ATOMIC_RELEASE);
}

void shim_re_end(struct thr *t)
{
	__atomic_store_n(&t->re->th->state, PROPHET_TurnEnd, __ATOMIC_RELEASE);
	__atomic_store_n(&t->slot->parked, PROPHET_ParkedHeld, __ATOMIC_SEQ_CST);
	while (!shim_re_detached()) {
		shim_park();
		shim_re_wait_for_end(t, PROPHET_TurnEnd);
	}
	__atomic_store_n(&t->slot->parked, 0, __ATOMIC_SEQ_CST);
	shim_park();
}

/* All threads go on from where a pause found them: what they have had has happened. A turn that a thread still waits for
 * comes when the object lets it; a wait for a condition returns, as it may at any time. Functions are looked up anew, so
 * that they are the real ones, in virtual time. What the thread had mapped of the trace stays: calls that were begun
 * before still look at it. */
void shim_re_off(struct thr *t)
{
	u64 mask;
	u32 i;
	shim_block(&mask);
	if (__atomic_exchange_n(&shim_replays, 0, __ATOMIC_ACQ_REL)) {
		for (i = 0; i < CALLS_MAX; i++)
			__atomic_store_n(&shim_real_table[i], 0, __ATOMIC_RELEASE);
		shim_modules_again(); /* what is mapped has been seen, but not written down */
	}
	t->re->th->call = 0;
	t->re = 0;
	shim_thread_again(t);
	shim_unblock(&mask);
}

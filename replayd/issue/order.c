/*
 * Orders that are not the target's own: locks in the order that the program's turns say, orders that end the issue where they come
 * otherwise, with the waits for conditions as the program made them; and threads that wait for nobody and think as long as home took.
 *
 * Who calls: a thread at its operations, of programs that were compiled for it (runtime/demand's Path).
 * Rules: an object's turn grows only; who moves it wakes who comes next.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"

enum { SHORTEST_NS = 100000, LATE_NS = 55000 };

/* bit_of tells who waits for a place from who waits for the others near it. */
static u32 bit_of(u64 place)
{
	return 1u << (place & 31);
}

static void wake(struct object *o, u32 bits)
{
	atomic_fetch_add(&o->moved, 1);
	syscall(SYS_futex, &o->moved, FUTEX_WAKE_BITSET, INT_MAX, NULL, NULL, bits);
}

/* turn waits until the places before this one are taken, and so many have read what they may. */
static void turn(struct self *s, struct object *o, u64 place, u64 readers)
{
	u32 relax = atomic_load_explicit(&run.shared->relax, memory_order_relaxed);
	for (;;) {
		u32 was = atomic_load(&o->moved);
		if (atomic_load(&o->turn) + 1 >= place && atomic_load(&o->readers) >= readers)
			return;
		if (atomic_load_explicit(&run.shared->stop, memory_order_relaxed))
			return;
		if (atomic_load_explicit(&run.shared->relax, memory_order_relaxed) != relax) {
			s->state->forced++;
			s->guessed = true;
			return;
		}
		syscall(SYS_futex, &o->moved, FUTEX_WAIT_BITSET, was, NULL, NULL, bit_of(place));
	}
}

static void placed(struct object *o, u64 place)
{
	u64 now = atomic_load(&o->turn);
	if (place) {
		while (now < place && !atomic_compare_exchange_weak(&o->turn, &now, place))
			;
		now = place;
	} else {
		atomic_fetch_add(&o->readers, 1);
	}
	wake(o, bit_of(now + 1));
}

/* think sleeps: what is too short for it is kept, and what it slept too long is taken off what follows. */
static void think(struct self *s, i64 ns)
{
	s->thought += ns;
	if (s->thought < SHORTEST_NS)
		return;
	u64 t = now_ns();
	sleep_for(s->thought - LATE_NS);
	s->thought -= (i64)(now_ns() - t);
}

/* check takes the next place, where that is what the program has. */
static void check(struct self *s, struct object *o, u64 place, u64 readers)
{
	if (!place) {
		if (atomic_load(&o->turn) != readers)
			diverge(s);
		else
			placed(o, 0);
		return;
	}
	u64 last = place - 1;
	if (atomic_load(&o->readers) != readers || !atomic_compare_exchange_strong(&o->turn, &last, place))
		diverge(s);
	else
		wake(o, bit_of(place + 1));
}

void order_wake(struct object *c, bool all)
{
	u32 woken = atomic_load(&c->woken), to, arrived;
	do {
		arrived = atomic_load(&c->arrived);
		to = all ? arrived : woken + 1 + atomic_load(&c->gone);
		if (to > arrived)
			to = arrived;
		if (to <= woken)
			return;
	} while (!atomic_compare_exchange_weak(&c->woken, &woken, to));
	atomic_store(&c->gone, 0);
	wake(c, FUTEX_BITSET_MATCH_ANY);
}

/* doze waits until the nth wait is woken, or its time is over: -ETIMEDOUT; or the issue: 1. */
static i64 doze(struct object *c, u32 nth, i64 ns)
{
	u64 end = ns > 0 ? now_ns() + (u64)ns : 0;
	for (;;) {
		u32 was = atomic_load(&c->moved);
		if (nth < atomic_load(&c->woken))
			return 0;
		if (atomic_load_explicit(&run.shared->stop, memory_order_relaxed))
			return 1;
		if (end && now_ns() >= end)
			return -ETIMEDOUT;
		struct timespec t = {(time_t)(end / 1000000000), (long)(end % 1000000000)};
		syscall(SYS_futex, &c->moved, FUTEX_WAIT_BITSET, was, end ? &t : NULL, NULL, FUTEX_BITSET_MATCH_ANY);
	}
}

/* condwait is a wait as the program made it: it returns in its turn, or is woken. Waits are woken as they came. */
static void condwait(struct self *s, const struct progop *op)
{
	const struct progop *more = op + 1;
	struct object *c = object_of(op->obj), *m = object_of((u32)op->a);
	u32 nth = atomic_fetch_add(&c->arrived, 1);
	pthread_mutex_unlock(&m->mutex);
	if (op->b > 0 || more->b > 0) /* it goes on by itself */
		atomic_store_explicit(&s->state->code, PROPHET_OpSleep, memory_order_relaxed);
	if (op->flags & PROPHET_OpMust) {
		s->result = doze(c, nth, op->b);
	} else {
		sleep_for(more->b);
	}
	atomic_store_explicit(&s->state->code, op->code, memory_order_relaxed);
	turn(s, &run.common[(u32)op->a], (u64)more->a, 0);
	if (s->result > 0 || atomic_load_explicit(&run.shared->stop, memory_order_relaxed)) {
		s->stopped = true;
		return;
	}
	pthread_mutex_lock(&m->mutex);
	if (nth >= atomic_load(&c->woken))
		atomic_fetch_add(&c->gone, 1);
	s->seq = atomic_fetch_add_explicit(&m->seq, 1, memory_order_relaxed) + 1;
}

void order_issue(struct self *s, const struct progop *op)
{
	switch (op->code) {
	case PROPHET_OpTurn:
		turn(s, &run.common[op->obj], (u64)op->a, (u64)op->b);
		break;
	case PROPHET_OpPlaced:
		placed(&run.common[op->obj], (u64)op->a);
		break;
	case PROPHET_OpThink:
		think(s, op->a);
		break;
	case PROPHET_OpCheck:
		check(s, &run.common[op->obj], (u64)op->a, (u64)op->b);
		break;
	case PROPHET_OpCondwait:
		condwait(s, op);
		break;
	}
}

/* order_relax lets who waits for a turn see that nothing else moves. */
void order_relax(void)
{
	for (u32 i = 0; i < run.head->objects; i++)
		if (atomic_load(&run.common[i].moved))
			wake(&run.common[i], FUTEX_BITSET_MATCH_ANY);
}

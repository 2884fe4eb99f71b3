/*
 * What predictions are compared with: every lock in home's order (the program's turns say which), and threads that wait for
 * nobody and think as long as home took.
 *
 * Who calls: a thread at its operations, of programs that were compiled for it (runtime/demand's Path).
 * Rules: an object's turn grows only; who moves it wakes who comes next.
 */
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
	}
}

/* order_relax lets who waits for a turn see that nothing else moves. */
void order_relax(void)
{
	for (u32 i = 0; i < run.head->objects; i++)
		if (atomic_load(&run.common[i].moved))
			wake(&run.common[i], FUTEX_BITSET_MATCH_ANY);
}

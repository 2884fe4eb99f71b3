/* Which way a thread goes on when an operation had another result than at home. */
#include <errno.h>

#include "engine.h"

enum { FORWARD = 4096, LOCKS = 8 };

static i64 kind(i64 result)
{
	return result < 0 ? result : 0;
}

enum { COUNT_BITS = 6, COUNT = (1 << COUNT_BITS) - 1 };

/* trail adds a choice to those before it, in four times 16 bits: what it was, and how often it was made again at once, as who tries
   again does other things each time. runtime/demand's Trail is the same. */
static u64 trail(u64 hash, u32 site, i64 result)
{
	u16 h = ((u16)((site * 2654435761u) >> 16) ^ (u16)(kind(result) * 40503)) & ~COUNT;
	if (hash && (u16)(hash & 0xffff & ~COUNT) == h)
		return (hash & COUNT) < COUNT ? hash + 1 : hash;
	return hash << 16 | h;
}

/* may_skip tells whether an operation does nothing that others depend on: of such are the ways of trying again. */
static bool may_skip(const struct progop *op)
{
	switch (op->code) {
	case PROPHET_OpNop:
	case PROPHET_OpCPU:
	case PROPHET_OpSleep:
	case PROPHET_OpYield:
	case PROPHET_OpMore:
	case PROPHET_OpFstat:
	case PROPHET_OpLseek:
	case PROPHET_OpStat:
	case PROPHET_OpAccess:
	case PROPHET_OpResident:
	case PROPHET_OpRead:
	case PROPHET_OpPread:
		return true;
	}
	return op->flags & PROPHET_OpChoice && op->code != PROPHET_OpOpen && op->code != PROPHET_OpUnlink;
}

/* ahead finds where further on the same operation had this result: it tried again there. ~0: nowhere near. A thread's last
   operation may not be skipped. What failed is only looked for where as many tries had failed before. */
static u64 ahead(u64 at, i64 got, u64 hash)
{
	u64 there = hash;
	struct {
		u32 obj;
		int depth;
	} held[LOCKS];
	u32 locks = 0;
	int uneven = 0;
	for (u64 i = at + 1; i < run.head->ops && i < at + FORWARD; i++) {
		const struct progop *op = &run.ops[i];
		if (run.ops[i - 1].flags & PROPHET_OpChoice)
			there = trail(there, run.ops[i - 1].site, run.ops[i - 1].want);
		if (op->site == run.ops[at].site && op->flags & PROPHET_OpChoice && kind(op->want) == got && !uneven && (got >= 0 || !(u16)(there ^ hash)))
			return i;
		if (op->code == PROPHET_OpLock || op->code == PROPHET_OpUnlock) {
			u32 k = 0;
			while (k < locks && held[k].obj != op->obj)
				k++;
			if (k == LOCKS)
				return ~0ull;
			if (k == locks) {
				held[k].obj = op->obj;
				held[k].depth = 0;
				locks++;
			}
			uneven -= held[k].depth != 0;
			held[k].depth += op->code == PROPHET_OpLock ? 1 : -1;
			uneven += held[k].depth != 0;
		} else if (!may_skip(op)) {
			return ~0ull;
		}
	}
	return ~0ull;
}

/* unknown_way says in the log, too, that nobody went on so at home. */
void unknown_way(struct self *s)
{
	s->state->unknown++;
	if (s->logged)
		s->log[s->logged - 1].op |= PROPHET_LogUnknown;
}

/* alike tells how much two trails have in common: the latest choice counts most. */
static int alike(u64 a, u64 b)
{
	int sum = 0;
	for (int shift = 21; shift >= 0; shift -= 7, a >>= 16, b >>= 16) {
		if ((a ^ b) & 0xffff & ~COUNT)
			break;
		int far = (int)(a & COUNT) - (int)(b & COUNT);
		sum += (COUNT + 1 - (far < 0 ? -far : far)) << shift;
	}
	return sum;
}

/* donor finds what some thread did after this result here, after choices as alike as can be. */
static const struct progjump *donor(const struct self *s, u32 site, i64 got)
{
	u64 low = 0, high = run.head->jumps;
	while (low < high) {
		u64 mid = (low + high) / 2;
		const struct progjump *j = &run.jumps[mid];
		if (j->site < site || (j->site == site && j->result < got))
			low = mid + 1;
		else
			high = mid;
	}
	const struct progjump *best = NULL;
	int how = -1;
	for (; low < run.head->jumps && run.jumps[low].site == site && run.jumps[low].result == got; low++) {
		const struct progjump *j = &run.jumps[low];
		int a = (alike(j->hash, s->hash) << 1) + (run.threads[j->thread].proc == s->proc);
		if (a > how) {
			best = j;
			how = a;
		}
	}
	return best;
}

u64 way_on(struct self *s, u64 at)
{
	const struct progop *op = &run.ops[at];
	i64 got = kind(s->result);
	u64 next = ~0ull;
	/* Away from its own way: back to it where what it could not do at last went as at home. */
	if (s->home && op->site == s->home->site && got == kind(s->home->want)) {
		next = (u64)(s->home - run.ops) + 1;
		s->home = NULL;
	} else if (got == kind(op->want)) {
		next = at + 1;
	} else if (!s->home && (next = ahead(at, got, s->hash)) != ~0ull) {
		s->state->other++;
		next++;
	}
	if (next == ~0ull) {
		const struct progjump *j = donor(s, op->site, got);
		if (j) {
			s->state->other++;
			if (!s->home)
				s->home = op;
			next = j->at;
		} else {
			unknown_way(s);
			next = at + 1;
		}
	}
	s->hash = trail(s->hash, op->site, got);
	return next;
}

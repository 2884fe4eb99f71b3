/*
 * What operations cost the engine itself, measured before it issues anything: taken off the CPU demand that follows them (owe),
 * as the program had no such cost. The operations are issued here as they are later, of a program that lies in this file.
 */
#include <stdlib.h>
#include <string.h>

#include "engine.h"

enum { PAIRS = 128, TRIES = 15, KINDS = 6 };

static struct progop ops[2 * PAIRS + 1];
static struct proglog log_of[2 * PAIRS + 1];

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* ns that two operations take together, in the middle of some tries. */
static double pair_ns(struct self *s, u16 first, u16 second, u32 obj)
{
	double v[TRIES];
	for (u32 i = 0; i < 2 * PAIRS; i++)
		ops[i] = (struct progop){.code = i & 1 ? second : first, .obj = obj, .flags = PROPHET_OpSingle};
	ops[2 * PAIRS] = (struct progop){.code = PROPHET_OpEnd};
	for (int i = 0; i < TRIES; i++) {
		s->logged = 0;
		u64 t = now_ns();
		run_ops(s, 0);
		v[i] = (double)(now_ns() - t) / PAIRS;
	}
	qsort(v, TRIES, sizeof *v, compare);
	return v[TRIES / 2];
}

void measure_costs(bool logs)
{
	static const struct {
		u16 first, second, obj; /* kind of object */
	} pairs[] = {
	    {PROPHET_OpLock, PROPHET_OpUnlock, 1},	   {PROPHET_OpTrylock, PROPHET_OpUnlock, 1},	 {PROPHET_OpTimedlock, PROPHET_OpUnlock, 1},
	    {PROPHET_OpRdlock, PROPHET_OpRwunlock, 2},	   {PROPHET_OpTryrdlock, PROPHET_OpRwunlock, 2}, {PROPHET_OpTrywrlock, PROPHET_OpRwunlock, 2},
	    {PROPHET_OpWrlock, PROPHET_OpRwunlock, 2},	   {PROPHET_OpSignal, PROPHET_OpBroadcast, 3},	 {PROPHET_OpRelease, PROPHET_OpRelease, 3},
	    {PROPHET_OpSempost, PROPHET_OpSemtry, 5},	   {PROPHET_OpSempost, PROPHET_OpSemwait, 5},	 {PROPHET_OpSpintry, PROPHET_OpSpinunlock, 6},
	    {PROPHET_OpSpinlock, PROPHET_OpSpinunlock, 6}, {PROPHET_OpWait, PROPHET_OpWait, 0},
	};
	struct run was = run;
	struct progobject kinds[KINDS + 1];
	static struct object objects[KINDS + 1];
	struct progpred passes = {.kind = PROPHET_PredQueue, .unit = 1, .start = 1ll << 60, .cond = 3, .mutex = 1};
	static struct pred pred;
	static struct state state;
	struct burn_thread none;
	memset(&none, 0, sizeof none);
	for (u32 i = 1; i <= KINDS; i++) {
		kinds[i] = (struct progobject){.kind = (u16)i, .value = i == 4};
		sync_init(&objects[i], &kinds[i]);
	}
	objects[3].preds = 1;
	memset(run.costs, 0, sizeof run.costs);
	run.ops = ops;
	run.objects = kinds;
	run.object = objects;
	run.preds = &passes;
	run.pred = &pred;
	struct self me = {.state = &state, .log = log_of, .room = logs ? 2 * PAIRS + 1 : 0, .burn = &none, .back = ~0ull, .next = ~0ull};
	memset(log_of, 0, sizeof log_of);
	u64 t0 = ticks(), n0 = now_ns();
	double plain = pair_ns(&me, PROPHET_OpNop, PROPHET_OpNop, 0) / 2;
	for (u32 i = 0; i < PROPHET_OpLimit; i++)
		was.costs[0][i] = was.costs[1][i] = plain;
	was.costs[0][PROPHET_OpCPU] = was.costs[1][PROPHET_OpCPU] = 0;
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		double each = pair_ns(&me, pairs[i].first, pairs[i].second, pairs[i].obj) / 2;
		was.costs[1][pairs[i].first] = each;
		if (pairs[i].second != PROPHET_OpUnlock || pairs[i].first == PROPHET_OpLock)
			was.costs[1][pairs[i].second] = each;
	}
	/* These are no calls of the program's. */
	was.costs[0][PROPHET_OpWait] = was.costs[1][PROPHET_OpWait];
	was.costs[0][PROPHET_OpRelease] = was.costs[1][PROPHET_OpRelease];
	was.tick_ns = (double)(now_ns() - n0) / (double)(ticks() - t0);
	run = was;
}

/*
 * CPU demand, issued: a loop that takes the demanded time on an idle core of this machine. It asks no clock, so whatever
 * slows a program slows it alike: another thread on the core, its sibling, a quota, a lower clock rate. A part of it may be
 * walking memory, so that losing the cache to somebody else costs time, as it costs the program.
 *
 * Who calls: the issue engine, from each of its threads; burn_calibrate once a machine, before, with the core otherwise idle.
 * Rules: burn() calls no library function and makes no system call. A struct burn is read by all threads and written by
 * none; a struct burn_thread belongs to one thread.
 */
#ifndef PROPHET_ISSUE_BURN_H
#define PROPHET_ISSUE_BURN_H

#include <stdint.h>

/* What the loop costs on an idle core here. Made by burn_calibrate; plain values, so that they may be copied to children. */
struct burn {
	double iter_ns; /* an iteration of the plain loop */
	double call_ns; /* a call of burn() around its iterations */
	double line_ns; /* a line of memory walked, all lines having been walked before */
	double block_ns; /* a line and the iterations that belong to it; 0: no memory is walked */
	uint64_t lines; /* of 64 bytes that each thread walks in turn by chance */
	double longer; /* 1.01: a hundredth of each of these prices is not the work's own but the interrupts that an idle core has, too */
	double spread; /* of iter_ns: half of the runs lay within this share of it */
};

/*
 * BURN_SPIN: iterations that belong to a line walked, which make it 50 ns here. The more, the less it hangs on how fast memory is; but in
 * a slice of time of a few ms a megabyte has to come back into the cache, as a program's does.
 */
enum { BURN_TABLE = 64, BURN_LINE = 64, BURN_SPIN = 12 };

/* One thread's place in the loop. Zeroed memory is one that walks nothing yet: burn_thread_start gives it memory. */
struct burn_thread {
	_Alignas(64) uint64_t x, y, z; /* where the arithmetic is */
	uint64_t at; /* where the walk is */
	double owed_ns; /* demanded, and less than a call or an iteration takes */
	double unwalked_ns; /* burnt in segments that were too short for a line */
	const char *memory; /* NULL: walks nothing */
	uint64_t table[BURN_TABLE]; /* read by the plain loop: it stays in the innermost cache */
};

/*
 * Measures the loop. bytes: memory that each thread walks, 0 for none.
 * Takes less than 150 ms on an idle core, and never much more. 0, or an errno.
 */
int burn_calibrate(struct burn *b, uint64_t bytes);

/* What was measured elsewhere, or before; block_ns 0: of the plain loop only. */
struct burn_as {
	double iter_ns, line_ns, block_ns;
};

/*
 * Lets an iteration count as so many ns, and a line, and a block: the loop then makes as many iterations and walks as
 * many lines for a demand as it would where and when they took that, and takes as much longer now as a program would. What is not said
 * counts as much more or less as an iteration.
 */
void burn_assume(struct burn *b, const struct burn_as *as);

/* Gives a thread its memory, and touches it; 0, or an errno. b->lines == 0 needs none, and the call then cannot fail. */
int burn_thread_start(struct burn_thread *t, const struct burn *b);
void burn_thread_end(struct burn_thread *t, const struct burn *b);

/* Burns the time that ns take on an idle core. What is too little to burn is kept, and burnt with a later demand. */
void burn(const struct burn *b, struct burn_thread *t, uint64_t ns);

/*
 * How well the loop is calibrated: n segments from from_ns to to_ns, evenly in the logarithm and in an order by chance, each the
 * least of three, by CPU time where one was switched out: what interrupts a segment is no fault of the loop's, and what the price
 * counts for interrupts (longer) is left out. errors[i] is the relative error (0.01: took 1 % longer) of the segment
 * segments_ns[i]. 0, or an errno.
 */
int burn_check(const struct burn *b, uint64_t from_ns, uint64_t to_ns, int n, double *segments_ns, double *errors);

#endif

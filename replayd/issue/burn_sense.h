/*
 * How much the loop minds company: for `prophet sense`, which looks for the walk of memory that minds it as much as a program
 * does, and for the neighbour beside which it runs that program.
 *
 * Who calls: replayd, outside of any issue.
 */
#ifndef PROPHET_ISSUE_BURN_SENSE_H
#define PROPHET_ISSUE_BURN_SENSE_H

#include "burn.h"

enum burn_company {
	BURN_SHARED, /* two of the loop on one CPU, as two threads of a program there */
	BURN_NEIGHBOUR, /* one, and burn_neighbour on another CPU, if there is one */
};

/* How much CPU time the loop takes in company, as a multiple of what it takes alone: the least of several of both, in turn.
 * Takes about a second. 0, or an errno. */
int burn_growth(const struct burn *b, enum burn_company c, double *growth);

/* Takes the cache and the bandwidth of the memory until *stop; 0, or an errno. */
int burn_neighbour(const _Atomic int *stop);

#endif

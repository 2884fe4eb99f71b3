/*
 * Kinds of work whose speed `prophet calibrate` compares between machines. Each kernel does the same work everywhere, on data
 * that it makes from fixed numbers, and returns a sum of its results that is the same on every machine: a test knows it.
 *
 * Who calls: kernels.go, one at a time from one thread. Nothing here asks a clock.
 */
#ifndef PROPHET_KERNELS_H
#define PROPHET_KERNELS_H

#include <stdint.h>

/* In the order of kernels.go's table. */
enum kernel {
	KERNEL_INTEGER, /* 64-bit arithmetic: multiply, divide, shift, look up */
	KERNEL_FLOAT, /* double: bodies that attract each other */
	KERNEL_BRANCH, /* branches that depend on data: sorting, searching */
	KERNEL_STRING, /* bytes: splitting text into words and counting them */
	KERNEL_CRYPTO, /* 32-bit additions, rotations and exclusive ors: a stream cipher */
	KERNEL_CACHE, /* a chain of loads in 1 MiB */
	KERNEL_LATENCY, /* a chain of loads in CHAIN_MEMORY */
	KERNEL_BANDWIDTH, /* reading and writing CHAIN_MEMORY in order */
	KERNELS
};

/* Makes the data of a kernel; 0, or an errno. kernel_end gives it back. */
int kernel_start(enum kernel k);
void kernel_end(enum kernel k);

/* Does n units of work; the sum of what came out. */
uint64_t kernel_run(enum kernel k, uint64_t n);

/* How much CPU time n units take: whoever else wants the core makes them later, but not slower but through the caches. */
double kernel_time_ns(enum kernel k, uint64_t n);

/* What the kernel's services cost here, by name in kernels.go. */
enum cost {
	COST_CLOCK, /* clock_gettime(CLOCK_MONOTONIC) */
	COST_CPU_CLOCK, /* clock_gettime(CLOCK_THREAD_CPUTIME_ID) */
	COST_SYSCALL, /* the cheapest system call */
	COST_SLEEP, /* how much longer a sleep of 100 us takes */
	COST_WAKE, /* waking another thread and being woken by it, once each */
	COSTS
};

/* The time of one of n, each way; -1 when it could not be had. */
double cost_ns(enum cost c, uint64_t n);

#endif

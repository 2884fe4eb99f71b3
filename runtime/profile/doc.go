// Package profile tells where the time of a run went, by stack: what pprof and flame graphs show.
//
// # Where stacks come from
//
// The recorder takes a thread's stack at an event once in an interval of its rate (prophet record --stacks). A stack
// stands for what its thread spent, of each type, at the same call site since the last stack there; what comes after
// the last one counts as that one's. Time is exact (it is the events'); who called the call site is what is sampled. A
// call site where no stack was taken is a stack of one frame, and says so (Stack.Site).
//
// # What time counts as
//
// The time before an event is CPU demand of its call site, but not more than the kernel counted for the thread: where a
// sample of that count tells, shares are lowered together. The time in a call counts by its class: see Type. A lock is held
// from the end of the call that took it to the start of the one that frees it, less waits for conditions; that counts at the
// call site that took it. Where a timer of CPU time took stacks, CPU is what these say, and nothing else.
//
// # For reports
//
// WaitsOf tells who waited for what, and at which stack who held it was: List is sorted by time, so the locks that people
// waited for most come first, one entry for each pair of stacks. Names(nil).Frame(w.Waiter, i) names frame i, innermost first
// (PCs[0] is the call site; the call itself is Call), with file and line where the files tell; an address has several
// frames where functions were inlined. Holder is nil where nobody was seen to let go. Texts from Frame are as the files have
// them: escape them.
package profile

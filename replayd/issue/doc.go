// Package issue issues the demand of a trace without its program. Its engine is C (CPU demand: burn.c), so that no goroutine
// and no handler of Go's stands between a thread and the machine it measures.
package issue

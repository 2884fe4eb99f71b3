package issue

// #include "burn_sense.h"
// static int neighbour(void) { static _Atomic int never; return burn_neighbour(&never); }
import "C"

import (
	"fmt"
	"runtime"
	"syscall"
)

// Growth is how much more CPU time the loop takes in company: of another loop like it on the same CPU, or, with neighbour, of
// one that takes the cache and the bandwidth of the memory.
func (b *Burn) Growth(neighbour bool) (float64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	company := C.enum_burn_company(C.BURN_SHARED)
	if neighbour {
		company = C.BURN_NEIGHBOUR
	}
	var growth C.double
	if n := C.burn_growth(&b.c, company, &growth); n != 0 {
		return 0, fmt.Errorf("the loop in company: %w", syscall.Errno(n))
	}
	return float64(growth), nil
}

// Neighbour takes the cache and the bandwidth of the memory until the process ends.
func Neighbour() error {
	return fmt.Errorf("the neighbour: %w", syscall.Errno(C.neighbour()))
}

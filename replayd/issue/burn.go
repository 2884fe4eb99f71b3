package issue

// #cgo CFLAGS: -D_GNU_SOURCE -std=gnu11 -O2 -Wall -Wextra
// #cgo LDFLAGS: -lm
// #include "burn.h"
import "C"

import (
	"fmt"
	"runtime"
	"syscall"
)

// Burn is what the loop costs on this machine (struct burn of burn.h), for those who look; the engine measures its own.
type Burn struct {
	IterNs float64 `json:"iter_ns"`
	CallNs float64 `json:"call_ns"`
	Spread float64 `json:"spread"`
	Bytes  uint64  `json:"bytes,omitempty"` // that each thread walks

	c C.struct_burn
}

// CalibrateBurn measures the loop; bytes 0: it walks no memory.
func CalibrateBurn(bytes uint64) (*Burn, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b := &Burn{}
	if n := C.burn_calibrate(&b.c, C.uint64_t(bytes)); n != 0 {
		return nil, fmt.Errorf("calibrating the loop: %w", syscall.Errno(n))
	}
	b.IterNs, b.CallNs, b.Spread = float64(b.c.iter_ns), float64(b.c.call_ns), float64(b.c.spread)
	b.Bytes = uint64(b.c.lines) * C.BURN_LINE
	return b, nil
}

// A BurnSegment is one segment of a check: what was demanded, and how much longer it took (0.01: 1 % longer).
type BurnSegment struct{ Ns, Error float64 }

// Check burns n segments between two lengths and says how far off each was (burn_check).
func (b *Burn) Check(fromNs, toNs uint64, n int) ([]BurnSegment, error) {
	if fromNs == 0 || toNs < fromNs || n < 1 {
		return nil, fmt.Errorf("no segments: %d from %d to %d ns", n, fromNs, toNs)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ns, errors := make([]C.double, n), make([]C.double, n)
	if e := C.burn_check(&b.c, C.uint64_t(fromNs), C.uint64_t(toNs), C.int(n), &ns[0], &errors[0]); e != 0 {
		return nil, fmt.Errorf("checking the loop: %w", syscall.Errno(e))
	}
	list := make([]BurnSegment, n)
	for i := range list {
		list[i] = BurnSegment{float64(ns[i]), float64(errors[i])}
	}
	return list, nil
}

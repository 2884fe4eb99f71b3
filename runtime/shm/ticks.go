package shm

import (
	"golang.org/x/sys/unix"

	"prophet/runtime/trace"
)

// ticks reads the counter that the recorder stamps events with (ticks_*.s).
func ticks() uint64

// Now reads ticks, CLOCK_MONOTONIC and CLOCK_REALTIME together.
func Now() trace.ClockPoint {
	var m, r unix.Timespec
	a := ticks()
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &m)
	z := ticks()
	unix.ClockGettime(unix.CLOCK_REALTIME, &r)
	return trace.ClockPoint{Ticks: a + (z-a)/2, Mono: uint64(m.Nano()), Real: uint64(r.Nano())}
}

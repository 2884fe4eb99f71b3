// Package kernels runs on a machine what `prophet calibrate` compares: kernels of several kinds of work in C, the same
// everywhere; what clocks, system calls and waking a thread cost; and the latencies of a disk. What the figures mean, and how
// machines are compared by them, is package runtime/calibrate.
package kernels

// #cgo CFLAGS: -std=c11 -O2 -Wall -Wextra
// #cgo LDFLAGS: -lm
// #include "kernels.h"
// #include <unistd.h>
import "C"

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"syscall"

	"prophet/replayd/issue"
	"prophet/runtime/calibrate"
)

// names are enum kernel's, in its order, and what comes out of checked units of fresh work on every machine: one where
// something else does would be compared by other work.
var names = [C.KERNELS]struct {
	name string
	sum  uint64
}{{calibrate.Integer, 0x1a9b66ecea021a4f}, {calibrate.Float, 0xfffffffbbf4a0aeb}, {calibrate.Branch, 0x5b3036c356e8584}, {calibrate.String, 0x243db9}, {calibrate.Crypto, 0x20563cae712709e6},
	{calibrate.Cache, 0x273b99f}, {calibrate.Latency, 0x9c9f0664}, {calibrate.Bandwidth, 0xdcdcdcdcdcdcdc40}}

const checked = 5000

// costs are enum cost's, in its order, and how many are measured at once.
var costs = [C.COSTS]struct {
	name string
	n    int
}{{calibrate.ClockCost, 1000}, {calibrate.CPUClockCost, 100}, {calibrate.SyscallCost, 1000}, {calibrate.SleepCost, 4}, {calibrate.WakeCost, 40}}

// Rounds of kernels in turn, so that a machine whose speed changes meanwhile changes it for all kinds alike; and how long
// each kernel runs in a round.
const (
	rounds  = 40
	roundNS = 1e6
)

// Options of Measure.
type Options struct {
	Dir      string              // whose disk; "": none is measured
	Progress func(done, all int) // may be nil
	CheckNS  uint64              // the longest segment with which the issuing loop is checked; 0: not
	Segments int                 // how many
}

// Measure measures this machine. It takes the core it runs on for a few seconds.
func Measure(ctx context.Context, o Options) (*calibrate.Machine, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m := describe()
	progress := func(n int) {
		if o.Progress != nil {
			o.Progress(n, 100)
		}
	}
	progress(0)
	if o.Dir != "" { // before the rest has taken its seconds
		f, err := unnamed(o.Dir)
		if err != nil {
			return nil, err
		}
		f.Close()
	}
	burn, err := issue.CalibrateBurn(0)
	if err != nil {
		return nil, err
	}
	m.Loop = &calibrate.Loop{IterNs: burn.IterNs, CallNs: burn.CallNs, Spread: burn.Spread}
	if o.CheckNS > 0 {
		list, err := burn.Check(1000, o.CheckNS, o.Segments)
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			m.Loop.Errors.Add(s.Ns, s.Error)
		}
	}
	progress(15)
	if m.Speed, err = speeds(ctx, func(round int) { progress(15 + round*50/rounds) }); err != nil {
		return nil, err
	}
	if m.Costs, err = prices(ctx); err != nil {
		return nil, err
	}
	progress(75)
	if o.Dir != "" {
		if m.Disk, err = disk(ctx, o.Dir); err != nil {
			return nil, err
		}
	}
	progress(100)
	return m, nil
}

func speeds(ctx context.Context, progress func(int)) (map[string]calibrate.Figure, error) {
	var units [C.KERNELS]uint64
	var runs [C.KERNELS][]float64
	for k := range C.enum_kernel(C.KERNELS) {
		if n := C.kernel_start(k); n != 0 {
			return nil, fmt.Errorf("the %s kernel: %w", names[k].name, syscall.Errno(n))
		}
		defer C.kernel_end(k)
		if sum := uint64(C.kernel_run(k, checked)); sum != names[k].sum {
			return nil, fmt.Errorf("the %s kernel computes %#x here, not %#x", names[k].name, sum, names[k].sum)
		}
		for units[k] = 1; ; units[k] *= 2 {
			t := math.Inf(1)
			for range 4 { // one that was interrupted would leave rounds with nothing but the clock in them
				t = min(t, float64(C.kernel_time_ns(k, C.uint64_t(units[k]))))
			}
			if t > roundNS/4 {
				units[k] = max(1, uint64(float64(units[k])*roundNS/t))
				break
			}
		}
	}
	for round := range rounds {
		for k := range C.enum_kernel(C.KERNELS) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			runs[k] = append(runs[k], float64(C.kernel_time_ns(k, C.uint64_t(units[k])))/float64(units[k]))
		}
		progress(round + 1)
	}
	out := map[string]calibrate.Figure{}
	for k := range names {
		out[names[k].name] = calibrate.NewFigure(runs[k])
	}
	return out, nil
}

func prices(ctx context.Context) (map[string]calibrate.Figure, error) {
	out := map[string]calibrate.Figure{}
	for i, c := range costs {
		var runs []float64
		for range rounds {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			v := float64(C.cost_ns(C.enum_cost(i), C.uint64_t(c.n)))
			if v < 0 {
				return nil, errors.New("no second thread can be started to be woken")
			}
			runs = append(runs, v)
		}
		out[c.name] = calibrate.NewFigure(runs)
	}
	return out, nil
}

// Processors is how many of them are online and how many there are, as programs are told that ask the C library.
func Processors() (online, configured int) {
	return int(C.sysconf(C._SC_NPROCESSORS_ONLN)), int(C.sysconf(C._SC_NPROCESSORS_CONF))
}

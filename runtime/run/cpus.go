package run

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// OnCPUs calls start with the calling thread on the first n of the CPUs that it may use, or the last one when n is negative:
// a process that is started there stays there.
func OnCPUs(n int, start func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var have, want unix.CPUSet
	if err := unix.SchedGetaffinity(0, &have); err != nil {
		return err
	}
	if n > have.Count() {
		return fmt.Errorf("%d CPUs are wanted, there are %d", n, have.Count())
	}
	for cpu, seen := 0, 0; seen < have.Count(); cpu++ {
		if !have.IsSet(cpu) {
			continue
		}
		if seen++; seen <= n || n < 0 && seen == have.Count() {
			want.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(0, &want); err != nil {
		return err
	}
	defer unix.SchedSetaffinity(0, &have)
	return start()
}

// CPUs is how many CPUs this process may use.
func CPUs() int {
	var have unix.CPUSet
	if unix.SchedGetaffinity(0, &have) != nil {
		return runtime.NumCPU()
	}
	return max(1, have.Count())
}

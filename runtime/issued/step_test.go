package issued

import (
	"testing"

	"prophet/runtime/trace"
)

// A wait for a condition that took no time at home takes what it took in the issue: what follows would be taken for computing.
func TestWaitsAreTimed(t *testing.T) {
	m := &maker{log: &Log{Head: Head{Hz: 1e9}}}
	r := trace.Record{Row: &trace.Row{}, Begin: 1000, End: 9_000_000}
	m.timed(&r, &step{begin: 1000, end: 9_000_000}, &rowRule{order: orderWait})
	if !r.Timed {
		t.Error("it has no end of its own")
	}
	r.Timed = false
	m.timed(&r, &step{begin: 1000, end: 1000}, &rowRule{order: orderWait})
	if r.Timed {
		t.Error("one that took nothing has an end of its own")
	}
}

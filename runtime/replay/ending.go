package replay

import (
	"syscall"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// Killed is the signal that ended the recorded run from outside, so that nothing in the trace does it; 0: it ended by
// itself.
func Killed(t *trace.Trace) syscall.Signal {
	e := t.Meta.Ended
	if e == nil || e.How != "signal" {
		return 0
	}
	for sig := syscall.Signal(1); sig < 65; sig++ {
		if e.Signal == trace.SignalName(uint64(sig)) {
			return sig
		}
	}
	return syscall.SIGKILL
}

// Ending tells whether a re-execution stands where the end of its recorded run found it.
type Ending struct {
	events map[uint32]uint64 // of each thread in the trace
}

// Reached reports whether every thread has come to the end of its part of the trace; one that then computes or spins may
// do so. deadlock: all that are left wait for one another.
func (e *Ending) Reached(s *State, t *trace.Trace) (reached, deadlock bool) {
	if e.events == nil {
		e.events = map[uint32]uint64{}
		for _, th := range t.Threads {
			e.events[th.UID] = t.EventsBetween(th, 0, 1<<62)
		}
	}
	deadlock = true
	for _, th := range t.Threads {
		if int(th.UID) >= len(s.Threads) {
			return false, false
		}
		st := &s.Threads[th.UID]
		if st.State == cabi.TurnOver && st.Left == 0 {
			continue
		}
		if st.Event < e.events[th.UID] || st.State == cabi.TurnNone {
			return false, false
		}
		c := cabi.ByID(uint16(st.Call))
		if st.State != cabi.TurnEnd || c == nil || c.Class != cabi.Sync && c.Class != cabi.Thread {
			deadlock = false
		}
	}
	return true, deadlock
}

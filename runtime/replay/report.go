package replay

import (
	"fmt"
	"strings"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// AllWait reports whether no thread that has begun can go on by itself, as far as the index tells.
func (s *State) AllWait() bool {
	for i := range s.Threads {
		if s.Threads[i].State == cabi.TurnRuns {
			return false
		}
	}
	return true
}

func callName(id uint32) string {
	if c := cabi.ByID(uint16(id)); c != nil {
		return c.Name
	}
	if id == 0 {
		return "nothing"
	}
	return fmt.Sprintf("call %d", id)
}

func threadName(t *trace.Trace, uid uint32) string {
	if th := t.ThreadByUID(uid); th != nil {
		return th.Name
	}
	return fmt.Sprintf("number %d", uid)
}

func objectName(id uint64) string {
	switch id {
	case 0:
		return "no object"
	case cabi.ReplayToken:
		return "the token"
	}
	return fmt.Sprintf("object %d.%d", id>>40, id&(1<<40-1))
}

// Report says what the first difference was.
func (s *State) Report(t *trace.Trace) string {
	r := &s.Head.Report
	var b strings.Builder
	fmt.Fprintf(&b, "diverged: thread %s, event %d: ", threadName(t, r.UID), r.Event)
	text := string(r.Text[:])
	if i := strings.IndexByte(text, 0); i >= 0 {
		text = text[:i]
	}
	switch r.What {
	case cabi.DiffersCall:
		fmt.Fprintf(&b, "expected %s, got %s", callName(r.Want), callName(r.Came))
	case cabi.DiffersResult:
		call := uint16(r.Came)
		fmt.Fprintf(&b, "%s: expected result %s, got %s", callName(r.Came), trace.ResultText(call, int64(r.WantV)), trace.ResultText(call, int64(r.CameV)))
		if text != "" {
			fmt.Fprintf(&b, ", of %q", text)
		}
	case cabi.DiffersField:
		fmt.Fprintf(&b, "%s: expected %d as number %s, got %d", callName(r.Came), int64(r.WantV), text, int64(r.CameV))
	case cabi.DiffersObject:
		fmt.Fprintf(&b, "%s: expected %s, got %s", callName(r.Came), objectName(r.WantV), objectName(r.CameV))
	case cabi.DiffersTurn:
		fmt.Fprintf(&b, "%s: expected place %d in the order of %s, got %d", callName(r.Came), r.WantV, objectName(r.WantO), r.CameV)
	case cabi.DiffersText:
		fmt.Fprintf(&b, "%s: another text: %q", callName(r.Came), text)
	case cabi.DiffersData:
		fmt.Fprintf(&b, "%s: other data (expected %d bytes, got %d)", callName(r.Came), r.WantV, r.CameV)
	case cabi.DiffersThread:
		fmt.Fprintf(&b, "a thread that the trace does not have (creation %d of thread %s)", r.CameV, threadName(t, uint32(r.WantV)))
	case cabi.DiffersSignal:
		fmt.Fprintf(&b, "signal %d of the trace was not handled", r.WantV)
	case cabi.DiffersTrace:
		b.WriteString("the trace cannot be read on")
	default:
		fmt.Fprintf(&b, "difference %d", r.What)
	}
	return b.String()
}

// Missing says which threads ended before all of their events were asked for; "" when none. Threads that ended by
// themselves have said so; what the others were asked for is counted.
func (s *State) Missing(t *trace.Trace) string {
	for _, th := range t.Threads {
		if int(th.UID) >= len(s.Threads) {
			continue
		}
		is := &s.Threads[th.UID]
		if is.State == cabi.TurnEnd || (is.State == cabi.TurnOver && is.Left == 0) {
			continue
		}
		if n := t.EventsBetween(th, 0, 1<<62); is.Event < n {
			return fmt.Sprintf("diverged: thread %s ended after %d of its %d events", th.Name, s.Threads[th.UID].Event, n)
		}
	}
	return ""
}

// Stall says who waits for what in a world where nothing moves.
func (s *State) Stall(t *trace.Trace) string {
	var b strings.Builder
	n := 0
	for i := range s.Threads {
		th := &s.Threads[i]
		if th.State == cabi.TurnNone || th.State == cabi.TurnOver {
			continue
		}
		if n++; n > 20 {
			b.WriteString("; …")
			break
		}
		if n > 1 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "thread %s, event %d, %s", threadName(t, th.UID), th.Event, callName(th.Call))
		switch th.State {
		case cabi.TurnWaits:
			fmt.Fprintf(&b, " waits for turn %d of %s (%d to come)", th.Turn, objectName(th.Object), th.At)
		case cabi.TurnEnd:
			b.WriteString(" asks for more than the trace has")
		}
	}
	return b.String()
}

package replay

import (
	"fmt"
	"slices"
	"strings"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// waitsShown bounds how many threads' waits are looked into.
const waitsShown = 64

// wait is what one thread of a standing world needs to go on.
type wait struct {
	st   *cabi.ReplayThread
	th   *trace.Thread
	at   *at
	need *need
	on   *trace.Thread // who has to do something first
	upTo uint64        // its event that has to come
	why  string
}

var states = map[uint32]string{
	cabi.TurnNone: "has not begun", cabi.TurnRuns: "runs", cabi.TurnWaits: "waits for its turn", cabi.TurnEnd: "asks for more than the trace has",
	cabi.TurnOver: "has ended", cabi.TurnStopped: "stopped", cabi.TurnHeld: "is held", cabi.TurnBroke: "is at a break",
}

// stateOf is where a thread stands, in a word.
func stateOf(st *cabi.ReplayThread) string {
	if st.State == cabi.TurnOver && st.Left != 0 {
		return "ended before its part of the trace was used up"
	}
	if w := states[st.State]; w != "" {
		return w
	}
	return fmt.Sprintf("state %d", st.State)
}

// standing says where all threads are, and who has what; it returns what the pass over the trace found.
func (s *State) standing(d *Difference, t *trace.Trace, a *at) *survey {
	var needs []*need
	var mine *need
	if th := t.ThreadByName(d.Thread); th != nil && a != nil && a.found {
		if obj := objectOf(&a.rec); !obj.None() && (a.rec.Seq != 0 || a.rec.Row != nil && a.rec.Row.Class == cabi.Sync) {
			mine = &need{obj: obj, proc: th.Proc.Number, epoch: -1}
			needs = append(needs, mine)
		}
	}
	waits, sv := s.waits(t, needs)
	for _, w := range waits {
		d.Standing = append(d.Standing, w.standing(t))
	}
	if mine != nil {
		d.hold(t, mine, a.rec.Row)
	}
	for _, w := range waits {
		d.hold(t, w.need, w.at.rec.Row)
	}
	return sv
}

// hold says who has an object, once.
func (d *Difference) hold(t *trace.Trace, n *need, row *trace.Row) {
	if n == nil || n.holder == nil || !n.handles {
		return
	}
	kind := row
	if row != nil && row.Obj == "cond" {
		kind = nil
	}
	s := fmt.Sprintf("%s: place %d, taken by thread %s at its event %d (%s)", objectName(t, uint64(n.obj.UID)<<40|n.obj.Num, kind), n.holder.seq, n.holder.th.Name, n.holder.n, n.holder.call)
	switch {
	case n.let:
		s += ", was the last; it is free"
	case n.letsGo != nil:
		s += fmt.Sprintf(", until its event %d (%s)", n.letsGo.n, n.letsGo.call)
	}
	if s = clip(s); !slices.Contains(d.Held, s) {
		d.Held = append(d.Held, s)
	}
}

// waits looks at every thread that has not ended, and at those that ended early. Needs of others are answered too.
func (s *State) waits(t *trace.Trace, needs []*need) ([]*wait, *survey) {
	var all []*wait
	for i := range s.Threads {
		st := &s.Threads[i]
		th := t.ThreadByUID(st.UID)
		if th == nil || st.State == cabi.TurnNone || st.State == cabi.TurnOver && st.Left == 0 {
			continue
		}
		w := &wait{st: st, th: th, at: &at{}}
		all = append(all, w)
		if len(all) > waitsShown || st.State == cabi.TurnOver {
			continue
		}
		w.at = lookAt(t, th, st.Event, 0)
		if st.State != cabi.TurnWaits || st.Object == 0 {
			continue
		}
		n := &need{obj: nameOf(st.Object), proc: th.Proc.Number, epoch: -1}
		if row := w.at.rec.Row; w.at.found && row != nil && row.F[1] == "readers" {
			n.epoch = int64(w.at.rec.Seq) - 1
		}
		w.need = n
		needs = append(needs, n)
	}
	sv := look(t, s, needs)
	for _, w := range all {
		w.edge(t, s)
	}
	return all, sv
}

// edge finds whom a thread waits for.
func (w *wait) edge(t *trace.Trace, s *State) {
	if w.st.State != cabi.TurnWaits {
		// In a real call: a join waits for the end of the thread that it names.
		if w.st.State == cabi.TurnRuns && w.at.found && w.at.rec.Row != nil && strings.Contains(w.at.rec.Row.Name, "join") {
			if th := t.ThreadByUID(w.at.rec.Obj.UID); th != nil && th != w.th {
				w.on, w.upTo, w.why = th, ^uint64(0), "for the end of thread "+th.Name
			}
		}
		return
	}
	n := w.need
	if n == nil {
		return
	}
	name := objectName(t, w.st.Object, w.at.rec.Row)
	place := w.place()
	switch {
	case place != 0 && n.next != nil && n.next.seq < place:
		if n.next.seq != n.last()+1 {
			w.why = fmt.Sprintf("for place %d of %s, which nobody takes in the trace", n.last()+1, name)
			return
		}
		w.on, w.upTo = n.next.th, n.next.n
		w.why = fmt.Sprintf("for place %d of %s, which thread %s takes at its event %d", n.next.seq, name, w.on.Name, w.upTo)
	case place != 0 && place > n.last()+1:
		w.why = fmt.Sprintf("for place %d of %s, which nobody takes in the trace", n.last()+1, name)
	case n.letsGo != nil && n.letsGo.th != w.th:
		w.on, w.upTo = n.letsGo.th, n.letsGo.n
		w.why = fmt.Sprintf("for %s, which thread %s lets go at its event %d", name, w.on.Name, w.upTo)
	case n.reader != nil:
		w.on, w.upTo = n.reader.th, n.reader.n
		w.why = fmt.Sprintf("for %s, which thread %s reads at its event %d first", name, w.on.Name, w.upTo)
	case place == 0 && n.first != nil && n.first.th != w.th:
		w.on, w.upTo = n.first.th, n.first.n
		w.why = fmt.Sprintf("for %s, which thread %s has at its event %d first", name, w.on.Name, w.upTo)
	default:
		w.why = "at " + name
	}
}

// place is the one that the thread waits to take; a reader waits for all writers of epochs before its own. 0: none is known.
func (w *wait) place() uint64 {
	r := &w.at.rec
	switch {
	case w.st.Object == cabi.ReplayToken:
		return w.st.Turn
	case !w.at.found || r.Row == nil:
		return 0
	case r.Row.F[1] == "epoch":
		return uint64(r.F[1]) + 1
	}
	return r.Seq
}

func (w *wait) standing(t *trace.Trace) Standing {
	st := Standing{Thread: w.th.Name, State: stateOf(w.st), Event: w.st.Event}
	if w.st.Call != 0 && w.st.State != cabi.TurnOver {
		st.Call = CallName(w.st.Call)
	}
	if w.need != nil {
		st.Object, st.Place = objectName(t, w.st.Object, w.at.rec.Row), w.place()
		if last := w.need.last(); st.Place > last+1 {
			st.Ahead = st.Place - 1 - last
		}
		if w.on != nil {
			st.By, st.ByAt = w.on.Name, w.upTo
		}
	}
	return st
}

// cycle follows the waits from one thread to the next, until one comes again or the chain ends; it prefers a chain that
// closes. end is the thread that an open chain ends at.
func (s *State) cycle(t *trace.Trace, waits []*wait) (lines []string, closed bool, end *trace.Thread) {
	by := map[*trace.Thread]*wait{}
	for _, w := range waits {
		by[w.th] = w
	}
	var best []string
	for _, first := range waits {
		if first.on == nil && first.why == "" {
			continue
		}
		var chain []*wait
		seen := map[*trace.Thread]int{}
		w := first
		for w != nil && w.why != "" {
			if from, again := seen[w.th]; again {
				for _, x := range chain[from:] {
					lines = append(lines, x.line())
				}
				return lines, true, nil
			}
			seen[w.th] = len(chain)
			chain = append(chain, w)
			if w.on == nil {
				w = nil
				break
			}
			next := by[w.on]
			if next == nil {
				break
			}
			w = next
		}
		if len(chain) <= len(best) {
			continue
		}
		best, end = best[:0], nil
		for _, x := range chain {
			best = append(best, x.line())
		}
		if last := chain[len(chain)-1]; last.on != nil {
			end = last.on
			best = append(best, s.endOf(t, end))
		}
	}
	return best, false, end
}

func (w *wait) line() string {
	call := ""
	if w.st.Call != 0 {
		call = " in " + CallName(w.st.Call)
	}
	return clip(fmt.Sprintf("thread %s, at its event %d%s, waits %s", w.th.Name, w.st.Event, call, w.why))
}

// endOf says why the last one of a chain does not do what it should.
func (s *State) endOf(t *trace.Trace, th *trace.Thread) string {
	if int(th.UID) >= len(s.Threads) {
		return "thread " + th.Name + " is not of this trace"
	}
	st := &s.Threads[th.UID]
	line := fmt.Sprintf("thread %s, at its event %d, %s", th.Name, st.Event, stateOf(st))
	switch {
	case st.State == cabi.TurnNone:
		if parent, nth := th.Origin(); t.ThreadByUID(parent) != nil {
			line += fmt.Sprintf(": creation %d of thread %s", nth, threadName(t, parent))
		}
	case st.State == cabi.TurnRuns && st.Call != 0:
		line += " in " + CallName(st.Call) + ", which does not end"
	case st.State == cabi.TurnRuns:
		line += " between two calls"
	}
	return clip(line)
}

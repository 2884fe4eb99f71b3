package replay

import (
	"fmt"
	"strings"
	"time"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// Sample is what can be seen of a world from outside at one moment.
type Sample struct {
	Events  uint64
	CPU     map[uint32]time.Duration // of each thread that is there and is no zombie, by UID
	Foreign int                      // threads in processes of the world that the trace does not know
	Other   time.Duration            // their CPU time
	Paused  bool
}

// Verdict of a Watchdog.
type Verdict int

// A world goes on, nothing in it can move, or a thread runs and comes to no event.
const (
	Goes Verdict = iota
	Stands
	Spins
)

// Watchdog tells a world in which nothing can move, or that runs in circles, from one that takes its time. It asks for
// nothing by itself. The recording is the measure: a thread that computes may take ten times as long as it did then.
type Watchdog struct {
	Idle  time.Duration // how long nothing may happen where everybody waits
	Spin  time.Duration // how much CPU time a thread may use without any event in the world
	Loose bool          // calls take their time: sleeps are real

	begun bool
	first Sample // since the last event
	idle  time.Time
	last  Sample
	UID   uint32 // the thread that Spins is about
}

// slices of CPU time below which a thread counts as asleep: looks of those who wait cost a little.
const asleep = 20

// Moved says that there was an event: it begins anew at the next sample.
func (w *Watchdog) Moved() { w.begun = false }

// Look takes a sample; gap is how long a thread's way from its last event to the end of the next one took in the recording.
func (w *Watchdog) Look(now time.Time, s *State, x Sample, gap func(uid uint32) time.Duration) Verdict {
	if !w.begun || x.Paused || w.last.Paused || x.Events != w.first.Events {
		w.begun, w.first, w.idle, w.last = true, x, now, x
		return Goes
	}
	busy := x.Other-w.last.Other > now.Sub(w.idle)/asleep
	waits, alive := false, false
	for i := range s.Threads {
		st := &s.Threads[i]
		if st.State == cabi.TurnWaits {
			waits = true
			continue
		}
		cpu, there := x.CPU[st.UID]
		if !there || st.State == cabi.TurnEnd {
			continue
		}
		alive = true // it ends, or becomes another program, where it does not run
		if cpu-w.last.CPU[st.UID] > now.Sub(w.idle)/asleep {
			busy = true
		}
		if st.State != cabi.TurnRuns {
			continue
		}
		if used := cpu - w.first.CPU[st.UID]; used > w.Spin && used > 10*gap(st.UID) {
			w.UID = st.UID
			return Spins
		}
	}
	if busy {
		w.idle, w.last = now, x
		return Goes
	}
	idle := now.Sub(w.idle)
	switch {
	case idle <= w.Idle/10:
		return Goes
	case len(x.CPU) == 0 && x.Foreign == 0: // process 1 is about to start the program, or to end
		if idle <= 10*w.Idle {
			return Goes
		}
		return Stands
	case !waits && !alive && x.Foreign == 0:
		return Stands // nobody is left who could do anything
	case idle <= w.Idle:
		return Goes
	}
	if x.Foreign > 0 || w.Loose {
		for i := range s.Threads {
			if s.Threads[i].State == cabi.TurnRuns && idle <= 2*gap(s.Threads[i].UID) {
				return Goes
			}
		}
	}
	return Stands
}

// Used is the CPU time that a thread has used since the last event of the world.
func (w *Watchdog) Used(x Sample, uid uint32) time.Duration { return x.CPU[uid] - w.first.CPU[uid] }

// Gap is how long a thread's way from its last event to the end of the next one took in the recording.
func (s *State) Gap(t *trace.Trace, uid uint32) time.Duration {
	th := t.ThreadByUID(uid)
	if th == nil {
		return 0
	}
	a := lookAt(t, th, s.eventOf(th), 0)
	if !a.found || a.rec.End < a.after {
		return 0
	}
	return time.Duration(t.Clock.NS(a.rec.End - a.after))
}

// Stall reports a world in which nothing moves: the thread that ended early, or asks for more, where there is one; else
// the cycle of those who wait.
func (s *State) Stall(t *trace.Trace, o *Outside, there map[uint32]time.Duration) *Difference {
	if d := s.Missing(t, o, there, false); d != nil {
		return d
	}
	d := &Difference{What: WhatStall}
	waits, sv := s.waits(t, nil)
	for _, w := range waits {
		d.Standing = append(d.Standing, w.standing(t))
		d.hold(t, w.need, w.at.rec.Row)
	}
	var closed bool
	var end *trace.Thread
	d.Cycle, closed, end = s.cycle(t, waits)
	if end = s.beyond(t, waits, end); end != nil && !closed {
		return s.more(t, o, end)
	}
	d.Headline = "nothing can move"
	if len(d.Cycle) > 0 {
		d.Headline += ": " + d.Cycle[0]
		if closed && len(d.Cycle) > 1 {
			d.Headline = fmt.Sprintf("nothing can move: %d threads wait for one another: %s", len(d.Cycle), d.Cycle[0])
		}
	}
	th := s.headOf(t, waits, d.Cycle)
	a := &at{end: true}
	if th != nil {
		s.place(d, t, th)
		d.Event = s.eventOf(th)
		d.Call = CallName(s.Threads[th.UID].Call)
		a = lookAt(t, th, d.Event, lastEvents)
		d.Expected, d.Last = a.line, a.last
	}
	d.Causes = s.causes(t, o, d, th, a, sv)
	if closed {
		d.Causes = append([]Cause{{"the recorded order cannot be kept", "the places that these threads wait for come only after places that others of them wait for"}}, d.Causes...)
	}
	return d
}

// Where says in a line where the threads are.
func (s *State) Where(t *trace.Trace) string {
	waits, _ := s.waits(t, nil)
	var b []string
	for i, w := range waits {
		if i == 10 {
			b = append(b, fmt.Sprintf("and %d more", len(waits)-i))
			break
		}
		st := w.standing(t)
		b = append(b, "thread "+st.text())
	}
	return strings.Join(b, "; ")
}

// headOf is the thread that the cycle begins with.
func (s *State) headOf(t *trace.Trace, waits []*wait, cycle []string) *trace.Thread {
	for _, w := range waits {
		if len(cycle) > 0 && w.why != "" && w.line() == cycle[0] {
			return w.th
		}
	}
	for _, w := range waits {
		if w.st.State == cabi.TurnRuns || w.st.State == cabi.TurnWaits {
			return w.th
		}
	}
	return nil
}

// Spin reports a thread that runs and comes to no event.
func (s *State) Spin(t *trace.Trace, o *Outside, uid uint32, used, gap time.Duration) *Difference {
	d := &Difference{What: WhatSpin}
	th := t.ThreadByUID(uid)
	a := &at{end: true}
	if th != nil {
		s.place(d, t, th)
		d.Event = s.eventOf(th)
		a = lookAt(t, th, d.Event, lastEvents)
		d.Expected, d.Last = a.line, a.last
		if a.found && a.rec.PC != 0 {
			d.ExpectedSite = site(th.Proc, a.rec.PC, o)
		}
	}
	took := "less than 1µs"
	if gap >= time.Microsecond {
		took = gap.Round(time.Microsecond).String()
	}
	where := "between two calls"
	if s.Threads[uid].Call != 0 {
		d.Call = CallName(s.Threads[uid].Call)
		where = "in " + d.Call
	}
	d.Headline = fmt.Sprintf("thread %s has run for %v of CPU time before its event %d, %s; the recorded run took %v", d.Thread, used.Round(10*time.Millisecond), d.Event, where, took)
	d.Detail = where
	sv := s.standing(d, t, a)
	d.Causes = s.causes(t, o, d, th, a, sv)
	return d
}

// beyond is the thread that asks for more than the trace has and that others wait for; where nobody waits, one of a
// process that nobody can end any more. nil when there is none.
func (s *State) beyond(t *trace.Trace, waits []*wait, end *trace.Thread) *trace.Thread {
	if end != nil {
		if int(end.UID) < len(s.Threads) && s.Threads[end.UID].State == cabi.TurnEnd {
			return end
		}
		return nil
	}
	left := map[uint32]bool{} // processes
	for _, w := range waits {
		left[w.st.Proc] = left[w.st.Proc] || w.st.State == cabi.TurnRuns || w.st.State == cabi.TurnWaits
	}
	for _, w := range waits {
		if w.st.State == cabi.TurnEnd && !left[w.st.Proc] {
			return w.th
		}
	}
	return nil
}

// more reports a thread that asks for more than the trace has.
func (s *State) more(t *trace.Trace, o *Outside, th *trace.Thread) *Difference {
	st := &s.Threads[th.UID]
	d := &Difference{What: "more", Event: st.Event, Call: CallName(st.Call), Came: CallName(st.Call), Expected: "the end of the thread"}
	s.place(d, t, th)
	d.Detail = "expected the end of the thread, got " + d.Call
	d.Headline = fmt.Sprintf("thread %s, event %d: %s", d.Thread, d.Event, d.Detail)
	a := lookAt(t, th, st.Event, lastEvents)
	d.Last = a.last
	sv := s.standing(d, t, a)
	d.Causes = s.causes(t, o, d, th, a, sv)
	return d
}

// behind reports whether a thread waits for a turn that nobody can give: its next event was over only when another thread had
// ended their process. What threads do then is written one thread after the other, so that what came before it need not be.
func (s *State) behind(t *trace.Trace, th *trace.Thread, next *trace.Record) bool {
	if s.Threads[th.UID].State != cabi.TurnWaits {
		return false
	}
	for _, x := range t.Threads {
		if x.Proc != th.Proc || x == th {
			continue
		}
		if at, ended, err := t.EndedAt(x); err == nil && ended {
			return next.End > at
		}
	}
	return false
}

// Missing reports the first thread that ended before all of its events were asked for, or never came to be; nil when
// there is none. While the world stands, those that are there (or could still come) are not counted.
func (s *State) Missing(t *trace.Trace, o *Outside, there map[uint32]time.Duration, over bool) *Difference {
	var th *trace.Thread
	var first *at
	for _, x := range t.Threads {
		if int(x.UID) >= len(s.Threads) {
			continue
		}
		is := &s.Threads[x.UID]
		if is.State == cabi.TurnEnd || is.State == cabi.TurnOver && is.Left == 0 {
			continue
		}
		if !over {
			_, here := there[x.UID]
			if here && is.State != cabi.TurnOver || is.State == cabi.TurnNone {
				continue
			}
		}
		a := lookAt(t, x, is.Event, lastEvents)
		if !a.found || over && s.behind(t, x, &a.rec) {
			continue
		}
		if first == nil || a.rec.Begin < first.rec.Begin {
			th, first = x, a
		}
	}
	if th == nil {
		return nil
	}
	is := &s.Threads[th.UID]
	d := &Difference{What: WhatLess, Event: is.Event, Expected: first.line, Last: first.last, Call: trace.CallName(uint64(first.rec.Call))}
	s.place(d, t, th)
	name := d.Call
	switch is.State {
	case cabi.TurnNone:
		d.Detail = "the thread never came to be; expected " + name
		if s.nobody() {
			d.Detail = "no process took part in the re-execution"
			d.Causes = []Cause{{"calls that are not seen", "libprophet.so was not loaded into the program, or is of another version than this replayd: is the program static, set-uid, or another one than was recorded?"}}
		}
	case cabi.TurnOver:
		d.Detail = "the thread ended; expected " + name
	default:
		d.Detail = "its process ended; expected " + name
	}
	if first.rec.PC != 0 {
		d.ExpectedSite = site(th.Proc, first.rec.PC, o)
	}
	d.Headline = fmt.Sprintf("thread %s, event %d: %s", d.Thread, d.Event, d.Detail)
	sv := s.standing(d, t, first)
	if d.Causes == nil {
		d.Causes = s.causes(t, o, d, th, first, sv)
	}
	return d
}

// nobody reports whether no thread at all has begun.
func (s *State) nobody() bool {
	for i := range s.Threads {
		if s.Threads[i].State != cabi.TurnNone {
			return false
		}
	}
	return true
}

// Status compares how the run ended with how the recorded one did; nil when alike. code is -1 when a signal ended it.
func (s *State) Status(t *trace.Trace, o *Outside, code int, signal string) *Difference {
	e := t.Meta.Ended
	if e == nil {
		return nil
	}
	was, is := "", fmt.Sprintf("exit status %d", code)
	if code < 0 {
		is = signal
	}
	switch {
	case e.Signal != "":
		was = e.Signal
	case e.How == "exit" || e.How == "quick":
		was = fmt.Sprintf("exit status %d", uint8(e.Status))
	case e.How == "abort":
		was = "SIGABRT"
	default:
		return nil
	}
	if was == is {
		return nil
	}
	d := &Difference{What: WhatStatus, Expected: was, Came: is, Detail: fmt.Sprintf("the program ended with %s, the recorded one with %s", is, was)}
	d.Headline = d.Detail
	var th *trace.Thread
	if len(t.Threads) > 0 {
		th = t.Threads[0]
		s.place(d, t, th)
		d.Event = s.eventOf(th)
	}
	a := &at{end: true}
	if th != nil {
		a.last = lookAt(t, th, d.Event, lastEvents).last
		d.Last = a.last
	}
	sv := s.standing(d, t, a)
	d.Causes = s.causes(t, o, d, th, a, sv)
	return d
}

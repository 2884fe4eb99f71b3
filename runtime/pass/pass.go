// Package pass is what the exports of events share: which of them are wanted, one pass over a trace with the links
// between events, and what was left out. It streams, in the memory of a trace.Merge and a links.Tracker.
package pass

import (
	"fmt"
	"io"
	"slices"

	"prophet/cabi"
	"prophet/runtime/links"
	"prophet/runtime/trace"
)

// Selection is which events are wanted; the zero value is all. Filters add up.
type Selection struct {
	Threads []*trace.Thread // none: all
	Classes cabi.ClassSet   // 0: all
	From    uint64          // ticks
	To      uint64          // ticks; 0: to the end
}

// All reports whether nothing is left out.
func (s *Selection) All() bool {
	return len(s.Threads) == 0 && s.Classes == 0 && s.From == 0 && s.To == 0
}

// Thread reports whether the thread's events are wanted.
func (s *Selection) Thread(th *trace.Thread) bool {
	return len(s.Threads) == 0 || slices.Contains(s.Threads, th)
}

// Class reports whether events of the row's class are; row is nil for what is no event of a known call.
func (s *Selection) Class(row *trace.Row) bool {
	return s.Classes == 0 || row != nil && s.Classes.Has(row.Class)
}

// Time reports whether what begins then is.
func (s *Selection) Time(begin uint64) bool {
	return begin >= s.From && (s.To == 0 || begin <= s.To)
}

// Has reports whether the event, or the record, is wanted.
func (s *Selection) Has(r *trace.Record) bool {
	return s.Time(r.Begin) && s.Class(r.Row) && s.Thread(r.Thread)
}

// Options are how a trace is read.
type Options struct {
	Selection
	Tick func(begin uint64) // told where it is, now and then
}

// Result is what reading found.
type Result struct {
	Events  uint64 // wanted
	Other   uint64 // not wanted
	Damage  []error
	Damaged int    // how many; Damage has the first
	Forgot  uint64 // by the tracker of links
	said    []string
}

// Say adds a note.
func (r *Result) Say(note string) { r.said = append(r.said, note) }

const maxDamage = 100

// Notes say what was left out, for people.
func (r *Result) Notes() []string {
	n := slices.Clone(r.said)
	if r.Other > 0 {
		n = append(n, fmt.Sprintf("%d events of %d were left out, as asked", r.Other, r.Other+r.Events))
	}
	if r.Forgot > 0 {
		n = append(n, fmt.Sprintf("some links between events may be missing: there was room for all but %d of what they could come from", r.Forgot))
	}
	return n
}

// Seen is a record with what is known of it, valid until the Visit that gets it returns. At the end of the trace comes one
// without a record, with the last links.
type Seen struct {
	*trace.Record
	Wanted bool         // of an event, and of what belongs to it: by the selection
	Links  []links.Link // that became known with it
	Leads  bool         // it may be the cause of links that are not known yet
}

// Visit gets each record, wanted or not.
type Visit func(s *Seen) error

// Read passes over the trace once, in the order of time. Damage is collected and reading goes on.
func Read(t *trace.Trace, o Options, visit Visit) (*Result, error) {
	res := &Result{Damage: slices.Clone(t.Damage[:min(len(t.Damage), maxDamage)]), Damaged: len(t.Damage)}
	k := links.New(t)
	m := t.Merge()
	all := o.All()
	s := Seen{Wanted: true}
	for n := 0; ; n++ {
		r, err := m.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			if !trace.IsDamage(err) {
				return res, err
			}
			if res.Damaged++; len(res.Damage) < maxDamage {
				res.Damage = append(res.Damage, err)
			}
			continue
		}
		if o.Tick != nil && n&0xffff == 0 {
			o.Tick(r.Begin)
		}
		if o.To != 0 && r.Begin > o.To+t.Clock.Hz {
			break // what a signal handler did may lie a little before its call
		}
		if !all && !r.Attached() {
			s.Wanted = o.Has(r)
		}
		if r.Tag == trace.TagEvent {
			if s.Wanted {
				res.Events++
			} else {
				res.Other++
			}
		}
		s.Record, s.Links = r, k.Add(r)
		s.Leads = r.Tag == trace.TagEvent && k.Leads()
		if err := visit(&s); err != nil {
			return res, err
		}
	}
	res.Forgot = k.Forgot()
	return res, visit(&Seen{Links: k.Finish()})
}

// Bytes is how many bytes an event took in and gave out, where its result says so.
func Bytes(r *trace.Record) (in, out uint64) {
	if r.Ret <= 0 || r.Row == nil {
		return 0, 0
	}
	if r.Row.In {
		in = uint64(r.Ret)
	}
	if r.Row.Out {
		out = uint64(r.Ret)
	}
	return in, out
}

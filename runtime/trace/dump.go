package trace

import (
	"bufio"
	"io"

	"prophet/cabi"
)

// DumpOptions chooses what Dump prints; the zero value is all.
type DumpOptions struct {
	JSON    bool
	Threads []*Thread          // none: all
	Classes uint32             // bits of classes; 0: all, and control records
	Calls   map[uint16]bool    // none: all
	From    uint64             // ticks
	To      uint64             // ticks; 0: to the end
	Damage  func(error)        // told of each damage; reading goes on
	Tick    func(begin uint64) // told where it is, now and then
}

// Dump prints records in the order of their time.
func (t *Trace) Dump(w *bufio.Writer, o DumpOptions) error {
	p := NewPrinter(t, o.JSON)
	var wanted map[*Thread]bool
	var threads []*Thread
	if len(o.Threads) > 0 {
		wanted = map[*Thread]bool{}
		for _, th := range o.Threads {
			wanted[th] = true
		}
		threads = t.family(o.Threads)
	}
	filtered := o.Classes != 0 || o.Calls != nil
	m := t.Merge(threads...)
	var attached bool // the event before is printed, so its data is
	for n := 0; ; n++ {
		r, err := m.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			if !IsDamage(err) {
				return err
			}
			if o.Damage != nil {
				o.Damage(err)
			}
			continue
		}
		if o.Tick != nil && n&0xffff == 0 {
			o.Tick(r.Begin)
		}
		if r.Attached() {
			if attached {
				b := p.Append(w.AvailableBuffer(), r)
				if _, err := w.Write(b); err != nil {
					return err
				}
			}
			continue
		}
		attached = false
		if o.To != 0 && r.Begin > o.To {
			if len(threads) == 1 || r.Begin > o.To+t.Clock.Hz {
				break // what a signal handler did may lie a little before its call
			}
			continue
		}
		show := r.Begin >= o.From && (wanted == nil || wanted[r.Thread])
		if show && filtered {
			show = r.Tag == TagEvent && (o.Calls == nil || o.Calls[r.Call]) &&
				(o.Classes == 0 || r.Row != nil && o.Classes&(1<<r.Row.Class) != 0)
		}
		if !show {
			p.Observe(r)
			continue
		}
		attached = r.Tag == TagEvent
		if w.Available() < 4096 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
		if _, err := w.Write(p.Append(w.AvailableBuffer(), r)); err != nil {
			return err
		}
	}
	w.Write(p.Flush(w.AvailableBuffer()))
	return w.Flush()
}

// family is these threads and those whose modules theirs may lie in: of the same process and of those it was
// forked from.
func (t *Trace) family(of []*Thread) []*Thread {
	procs := map[*Proc]bool{}
	for _, th := range of {
		for p, hops := th.Proc, 0; p != nil && hops < 1<<10; p, hops = p.Parent, hops+1 {
			procs[p] = true
			if p.How != cabi.ProcForked {
				break
			}
		}
	}
	var out []*Thread
	for _, th := range t.Threads {
		if procs[th.Proc] {
			out = append(out, th)
		}
	}
	return out
}

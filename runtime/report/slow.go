package report

import (
	"cmp"
	"slices"

	"prophet/runtime/trace"
)

// slowCall is a call of slowest.
type slowCall struct {
	ticks, begin, n uint64
	x               *thread
	pc              uint64
	title           string
	what            uint32
	text            string
	stack           []uint64 // who called the call site
}

// slowest keeps the longest calls that it is offered.
type slowest struct {
	list []slowCall
	min  uint64 // shorter ones need not be offered
}

func (s *slowest) offer(c *collector, x *thread, r *trace.Record, st *stat, tgt *target, ticks uint64) {
	if ticks <= s.min && len(s.list) >= c.o.Slow {
		return
	}
	call := slowCall{ticks: ticks, begin: r.Begin, n: r.N, x: x, pc: r.PC, title: st.title()}
	if tgt != nil {
		call.what = tgt.label
	} else if st.info.sync && !r.Obj.None() {
		call.what = c.locks.label(r.Obj)
	}
	call.text = clean(string(c.print.AppendCall(nil, r)))
	i, _ := slices.BinarySearchFunc(s.list, call, func(a, b slowCall) int {
		return cmp.Or(cmp.Compare(b.ticks, a.ticks), cmp.Compare(a.begin, b.begin), cmp.Compare(a.x.index, b.x.index))
	})
	s.list = slices.Insert(s.list, i, call)
	if len(s.list) > c.o.Slow {
		s.list = s.list[:c.o.Slow]
	}
	s.min = s.list[len(s.list)-1].ticks
	x.slow = true
}

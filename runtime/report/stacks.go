package report

import (
	"slices"

	"prophet/runtime/trace"
)

// maxPlaces bounds the call sites whose stacks are kept.
const maxPlaces = 1 << 14

// seenStack is a stack that was taken at a call site: that of the longest call there.
type seenStack struct {
	pcs   []uint64 // of its callers
	ticks uint64
}

// stack takes a stack, which belongs to the thread's last event.
func (c *collector) stack(x *thread, r *trace.Record) {
	if len(r.Stack) == 0 || x.pc == 0 {
		return
	}
	k := place{x.th.Proc, x.pc}
	s := c.stacks[k]
	if s == nil {
		if len(c.stacks) >= maxPlaces {
			return
		}
		s = &seenStack{}
		c.stacks[k] = s
	}
	if len(s.pcs) == 0 || x.ticks > s.ticks {
		s.pcs, s.ticks = slices.Clone(r.Stack[:min(len(r.Stack), 128)]), x.ticks
	}
	if x.slow {
		list := c.slow[x.group].list
		for i := range list {
			if list[i].x == x && list[i].begin == x.begin && list[i].pc == x.pc {
				list[i].stack = slices.Clone(r.Stack[:min(len(r.Stack), 128)])
			}
		}
	}
}

// stackAt is what is known of who called a call site.
func (c *collector) stackAt(k place) Stack {
	s := Stack{Proc: k.p, PCs: []uint64{k.pc}}
	if seen := c.stacks[k]; seen != nil {
		s.PCs = append(s.PCs, seen.pcs...)
	}
	return s
}

// name gives functions to the places that the report lists.
func (c *collector) name(r *Report) {
	if c.o.Name == nil {
		return
	}
	var list []Stack
	var to []*[]string
	add := func(s Stack, dst *[]string) {
		if s.Proc != nil && len(s.PCs) > 0 && s.PCs[0] != 0 {
			list = append(list, s)
			to = append(to, dst)
		}
	}
	for i := range r.Locks[:min(len(r.Locks), c.o.Locks)] {
		for _, at := range [][]Where{r.Locks[i].At, r.Locks[i].CauseAt} {
			for k := range at {
				add(c.stackAt(at[k].place), &at[k].Stack)
			}
		}
	}
	for i := range r.Slow {
		add(r.Slow[i].stack, &r.Slow[i].Stack)
	}
	if len(list) == 0 {
		return
	}
	for i, frames := range c.o.Name(list) {
		for k := range frames {
			frames[k] = clean(frames[k])
		}
		*to[i] = frames
	}
}

package profile

import (
	"strings"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// site is a call from one place of the program. pc 0 stands for those beyond the bound.
type site struct {
	pc   uint64
	call uint16
}

// spent is Values in the making: ticks instead of ns, and CPU time that the next sample of the kernel's count may
// still lower.
type spent struct {
	Values
	pend    uint64
	touched bool
}

// place is what a thread has spent at a site since its last stack there.
type place struct {
	site
	now   spent
	stack *Stack // the last one taken here
}

// part is one thread's.
type part struct {
	b      *builder
	th     *trace.Thread
	places map[site]*place
	recent [64]*place
	spent  map[*Stack]*spent
	last   *place // of the last event
	prev   uint64 // end of the last event
	cpu    uint64 // ns at the last sample of the kernel's count
	known  bool   // cpu is
	timed  bool   // a timer takes samples of CPU time
	fresh  []*spent
	held   map[trace.Object]hold
	within []within // calls that signal handlers have interrupted
}

// within is a call in which a handler ran: its time up to there, as its event begins behind the handler's.
type within struct {
	call  uint16
	ticks uint64
}

// hold is a lock that the thread has.
type hold struct {
	since uint64
	by    *place
	n     int
}

func newPart(b *builder, th *trace.Thread) *part {
	return &part{b: b, th: th, places: map[site]*place{}, spent: map[*Stack]*spent{}, held: map[trace.Object]hold{}, prev: th.First,
		known: th.How == cabi.ThreadCreated || th.How == cabi.ThreadForked, timed: b.timed[th]}
}

func (p *part) place(r *trace.Record) *place {
	k := site{r.PC, r.Call}
	slot := &p.recent[(r.PC*0x9E3779B97F4A7C15>>40^uint64(r.Call))%uint64(len(p.recent))]
	if *slot != nil && (*slot).site == k {
		return *slot
	}
	x := p.places[k]
	if x == nil {
		if len(p.places) >= maxSites {
			p.b.mu.Lock()
			p.b.over[2]++
			p.b.mu.Unlock()
			k = site{call: r.Call}
			x = p.places[k]
		}
		if x == nil {
			x = &place{site: k}
			p.places[k] = x
		}
	}
	*slot = x
	return x
}

func (p *part) visit(r *trace.Record) error {
	switch r.Tag {
	case trace.TagEvent:
		p.one(r)
	case cabi.TagCPU:
		p.counted(r.Nums[0])
		p.prev = max(p.prev, r.End)
	case cabi.TagSignal:
		if call := r.Nums[1]; call != 0 && call <= 0xffff && len(p.within) < maxWithin {
			p.within = append(p.within, within{uint16(call), r.Begin - min(p.prev, r.Begin)})
			p.prev = max(p.prev, r.Begin)
		}
	case cabi.TagLeft:
		if n := len(p.within); n > 0 && uint64(p.within[n-1].call) == r.Nums[0] {
			p.within = p.within[:n-1]
		}
	case cabi.TagStack:
		p.b.mu.Lock()
		p.b.taken++
		p.b.mu.Unlock()
		if p.last != nil && p.last.pc != 0 {
			p.take(p.last, p.b.stack(p.th.Proc, p.last.call, r.Nums[1], p.last.pc, r.Stack, false))
		}
	case cabi.TagSample:
		p.sample(r)
	}
	return nil
}

// one is an event: the time before it, the time in it, and what it does to the locks that the thread holds.
func (p *part) one(r *trace.Record) {
	x := p.place(r)
	p.last = x
	x.now.N[CPU]++
	if r.Begin > p.prev && !p.timed {
		p.run(&x.now, r.Begin-p.prev)
	}
	p.prev = r.End
	if r.Row == nil {
		return
	}
	took := r.End - r.Begin
	if n := len(p.within); n > 0 && p.within[n-1].call == r.Call {
		took += p.within[n-1].ticks
		p.within = p.within[:n-1]
	}
	kind := p.b.typeOf(r)
	switch {
	case kind == CPU:
		if took > 0 && !p.timed {
			p.run(&x.now, took)
		}
	case took > 0 || kind == Disk || kind == Network:
		x.now.NS[kind] += int64(took)
		x.now.N[kind]++
	}
	if r.Row.Class == cabi.Sync || r.Row.Class == cabi.Stdio {
		p.lock(r, x)
	}
}

func (p *part) run(s *spent, ticks uint64) {
	if !s.touched {
		s.touched = true
		p.fresh = append(p.fresh, s)
	}
	s.pend += ticks
}

// counted is the kernel's count of the thread's CPU time: what lay between the calls since the last one was no more.
func (p *part) counted(ns uint64) {
	if p.timed {
		return
	}
	var all uint64
	for _, s := range p.fresh {
		all += s.pend
	}
	share := 1.0
	if ran := uint64(p.b.t.Clock.NS(all)); p.known && ns >= p.cpu && ns-p.cpu < ran {
		share = float64(ns-p.cpu) / float64(ran)
	}
	p.settle(share)
	p.cpu, p.known = ns, true
}

func (p *part) settle(share float64) {
	for _, s := range p.fresh {
		s.NS[CPU] += int64(float64(s.pend) * share)
		s.pend, s.touched = 0, false
	}
	p.fresh = p.fresh[:0]
}

// take puts what was spent at a place since its last stack to this one.
func (p *part) take(x *place, st *Stack) {
	s := p.at(st)
	s.add(&x.now.Values)
	if x.now.pend > 0 {
		p.run(s, x.now.pend)
		x.now.pend = 0
	}
	x.now.Values = Values{}
	x.stack = st
}

func (p *part) at(st *Stack) *spent {
	s := p.spent[st]
	if s == nil {
		s = &spent{}
		p.spent[st] = s
	}
	return s
}

// sample is where a timer of CPU time found the thread: it stands for what the thread ran since the last one.
func (p *part) sample(r *trace.Record) {
	p.b.mu.Lock()
	p.b.taken++
	p.b.mu.Unlock()
	ran := r.Nums[1] - min(p.cpu, r.Nums[1])
	if !p.known { // what the thread ran before this program is not this program's
		ran = min(ran, 1e9/uint64(max(p.b.t.Meta.Options.Stacks, 1)))
	}
	p.cpu, p.known = r.Nums[1], true
	if len(r.Stack) > 0 {
		s := p.at(p.b.stack(p.th.Proc, 0, 0, 0, r.Stack, false))
		s.NS[CPU] += int64(p.b.t.Clock.Ticks(int64(ran)) - p.b.t.Clock.Ticks0)
	}
}

// end hands over what the thread spent.
func (p *part) end() {
	p.settle(1)
	for _, x := range p.places {
		if x.now.Values == (Values{}) {
			continue
		}
		st := x.stack
		if st == nil {
			st = p.b.stack(p.th.Proc, x.call, 0, x.pc, nil, true)
		}
		p.at(st).add(&x.now.Values)
	}
	for st, s := range p.spent {
		v := s.Values
		for i := range v.NS {
			v.NS[i] = p.b.t.Clock.NS(uint64(v.NS[i]))
		}
		if v != (Values{}) {
			p.b.put(p.th, st, &v)
		}
	}
	p.places, p.spent, p.held, p.recent = nil, nil, nil, [64]*place{}
}

// waitsForOthers are calls of class Thread that do nothing but wait.
var waitsForOthers = func() map[uint16]bool {
	m := map[uint16]bool{}
	for i := range cabi.Calls {
		switch c := &cabi.Calls[i]; c.Name {
		case "pthread_join", "pthread_timedjoin_np", "pthread_clockjoin_np", "thrd_join", "thrd_sleep", "wait", "waitpid", "waitid", "wait3", "wait4", "__wait", "__waitpid", "system", "pclose":
			m[c.ID] = true
		}
	}
	return m
}()

// noted says whether calls on this kind of object note that they waited. Others wait whenever they take time.
func noted(kind string) bool {
	switch kind {
	case "mutex", "rwlock", "spin", "sem", "once", "guard", "stdio":
		return true
	}
	return false
}

// typeOf is what the time of a call counts as.
func (b *builder) typeOf(r *trace.Record) Type {
	switch r.Row.Class {
	case cabi.Disk:
		if r.Row.Obj == "fd" && b.objects[r.Obj] {
			return Network
		}
		return Disk
	case cabi.Net:
		return Network
	case cabi.Stdio:
		if r.Note&cabi.NoteWaited != 0 {
			return LockWait
		}
		return Disk
	case cabi.Sync:
		if r.End > r.Begin && (r.Note&cabi.NoteWaited != 0 || !noted(r.Row.Obj)) {
			return LockWait
		}
		return CPU
	case cabi.Thread:
		if waitsForOthers[r.Call] {
			return Sleep
		}
		return CPU
	case cabi.Time, cabi.Signal:
		return Sleep
	}
	return CPU
}

// Locking is what an event does to a lock.
type locking uint8

const (
	locksNothing locking = iota
	locksTake
	locksFree
	locksWait // frees the mutex that is f2, and takes it again
)

// locks tells what each call does to its object, when it succeeds.
var locks = func() []locking {
	var all []locking
	for i := range cabi.Calls {
		c := &cabi.Calls[i]
		row := trace.RowOf(uint64(c.ID))
		for len(all) <= int(c.ID) {
			all = append(all, locksNothing)
		}
		switch {
		case row.Obj == "cond" && row.Seq && row.F[1] == "mutex":
			all[c.ID] = locksWait
		case row.Obj != "mutex" && row.Obj != "rwlock" && row.Obj != "spin":
		case strings.Contains(c.Name, "unlock"):
			all[c.ID] = locksFree
		case strings.Contains(c.Name, "lock") && !strings.Contains(c.Name, "init") && !strings.Contains(c.Name, "destroy") && !strings.Contains(c.Name, "ceiling"):
			all[c.ID] = locksTake
		}
	}
	return all
}()

// lock follows which locks the thread holds.
func (p *part) lock(r *trace.Record, x *place) {
	switch locks[r.Call] {
	case locksTake:
		if r.Ret == 0 || r.Ret == eOwnerDead {
			p.took(r.Obj, x, r.End)
		}
	case locksFree:
		if r.Ret == 0 {
			p.freed(r.Obj, r.Begin)
		}
	case locksWait:
		m := mutexOf(r)
		if by, ok := p.freed(m, r.Begin); ok && r.Seq != 0 {
			p.took(m, by, r.End)
		}
	}
}

const eOwnerDead = 130

// mutexOf is the mutex of a wait for a condition.
func mutexOf(r *trace.Record) trace.Object {
	return trace.Object{UID: uint32(uint64(r.F[1]) >> 40), Num: uint64(r.F[1]) & (1<<40 - 1)}
}

func (p *part) took(o trace.Object, x *place, at uint64) {
	h, ok := p.held[o]
	if !ok {
		if len(p.held) >= maxHeld {
			return
		}
		h = hold{since: at, by: x}
	}
	h.n++
	p.held[o] = h
}

// freed ends a hold; it counts as time of the place where the lock was taken.
func (p *part) freed(o trace.Object, at uint64) (*place, bool) {
	h, ok := p.held[o]
	if !ok {
		return nil, false
	}
	if h.n--; h.n > 0 {
		p.held[o] = h
		return nil, false
	}
	delete(p.held, o)
	h.by.now.NS[LockHold] += int64(at - min(h.since, at))
	h.by.now.N[LockHold]++
	return h.by, true
}

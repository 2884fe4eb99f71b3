package demand

import (
	"slices"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// loops are the wait loops of the run. Sections of the mutexes that somebody waits with are noted while the trace is
// surveyed; learn (predicates.go) then makes a predicate of each loop.
type loops struct {
	c        *compiler
	with     map[trace.Object]trace.Object // which mutex a condition is waited for with
	mutexes  map[trace.Object]bool         // that somebody waits with
	under    map[objKey]*guarded
	conds    map[objKey]*condition
	preds    []cabi.ProgPred
	rows     []cabi.ProgRow
	at       places[waitAt]      // where threads come to a loop, and pass it
	roles    places[roleAt]      // locks at which the place among the arrivals says what is done
	releases places[lateRelease] // unlocks whose section signals after it
	queues   []*loop
	spare    []step
	keyCount uint32
	keys     places[int64] // of signals: what they release,
	order    places[int64] // and how many released before them
	skips    places[int]   // waits that nothing is issued for: how many
	told     places[bool]  // signals that those have told of already
	waits    []MapPred     // of each predicate, a wait for it, for the map
}

// place is an event of a thread: which of its streams, and which event.
type place struct {
	uid uint32
	n   uint64
}

// waitAt is what is issued before the event at a place: the wait for a predicate.
type waitAt struct {
	pred    uint32
	timeout int64 // ns; 0: none
	late    bool  // at home it was over
	events  int   // of waiting, that it stands for
	site    uint32
	choice  bool  // its time may be over
	row     int64 // of the table, that tells what follows it; 0: none. One more than its index
}

// lateRelease is a condition that is signalled only after the unlock, and where.
type lateRelease struct {
	cond uint32
	at   place
}

type roleAt struct {
	pred   uint32
	unlock uint64 // the event that ends the section
	last   bool
	sample bool
}

// guarded is what a mutex guards: its sections, in no order yet.
type guarded struct {
	key      objKey
	obj      trace.Object
	sections []*section
	last     uint64 // place in the order of the latest acquisition, in time
}

// section is what a thread did from a lock to its unlock.
type section struct {
	m      *guarded
	th     *thread
	stream uint32
	open   bool
	lock   uint64 // event
	unlock uint64
	seq    uint64 // place of the latest acquisition: the lock's, or a wait's
	first  uint64 // the lock's place
	steps  []step
	before eventKey // the event before the lock
}

// eventKey is what an event is: its call, and where that is.
type eventKey struct {
	call uint16
	at   uint64
}

// step is an event in a section, first the lock, last the unlock, and then what came after.
type step struct {
	n    uint64
	seq  uint64     // place when it was reached
	cond *condition // waits and signals
	back uint64     // a wait: place when it came back
	ns   int64
	site uint32
	wait bool
	late bool // timed out
}

// condition is a condition variable: where, in the order of a mutex, it was signalled.
type condition struct {
	key      objKey
	obj      trace.Object
	group    *group
	n        uint32
	releases []release
}

// release is a signal.
type release struct {
	th    *thread
	pos   uint64 // place of its section in the order of the mutex
	at    place
	after place // the unlock that it came after; none: n is 0
}

const stepsUsual = 5

const stepsMax = 64 // of a section; what comes later is not looked at

func newLoops(c *compiler) *loops {
	return &loops{c: c, with: map[trace.Object]trace.Object{}, mutexes: map[trace.Object]bool{}, under: map[objKey]*guarded{}, conds: map[objKey]*condition{}}
}

func (l *loops) key(g *group, o trace.Object) objKey {
	if l.c.kinds[o].kind == cabi.ObjSharedSync {
		return objKey{^uint32(0), o}
	}
	return objKey{g.n, o}
}

func (l *loops) guard(g *group, o trace.Object) *guarded {
	k := l.key(g, o)
	m := l.under[k]
	if m == nil {
		m = &guarded{key: k, obj: o}
		l.under[k] = m
	}
	return m
}

func (l *loops) cond(g *group, o trace.Object) *condition {
	k := l.key(g, o)
	c := l.conds[k]
	if c == nil {
		c = &condition{key: k, obj: o, group: g, n: l.c.object(g, o, cabi.ObjCond)}
		l.conds[k] = c
	}
	return c
}

// event takes the next event of a thread.
func (l *loops) event(s *surveyor, th *thread, at *threadAt, r *trace.Record) {
	if len(l.mutexes) == 0 {
		return
	}
	defer func() { at.last = eventKey{r.Call, r.PC} }()
	o := opOf(r.Row)
	code := uint16(0)
	if o != nil {
		code = o.code
	}
	g := th.group
	var site uint32
	if len(at.sect) > 0 {
		site = l.c.siteNumber(l.c.site(r.Thread, r))
	}
	// What comes right after a section closes it for good.
	for i := 0; i < len(at.sect); i++ {
		if x := at.sect[i]; !x.open {
			x.steps = append(x.steps, step{n: r.N, site: site, seq: x.seq})
			at.sect = slices.Delete(at.sect, i, i+1)
			i--
		}
	}
	switch code {
	case cabi.OpLock, cabi.OpTrylock, cabi.OpTimedlock:
		if r.Ret == 0 && l.mutexes[r.Obj] && r.Seq != 0 {
			if site == 0 {
				site = l.c.siteNumber(l.c.site(r.Thread, r))
			}
			m := l.guard(g, r.Obj)
			m.last = max(m.last, r.Seq)
			x := &section{m: m, th: th, stream: r.Thread.UID, lock: r.N, seq: r.Seq, first: r.Seq, open: true, before: at.last}
			x.steps = append(l.room(), step{n: r.N, site: site, seq: r.Seq})
			m.sections = append(m.sections, x)
			l.note(at, r, site, nil)
			at.sect = append(at.sect, x)
			return
		}
	case opCondwait:
		m := packed(uint64(r.F[1]))
		for _, x := range at.sect {
			if x.open && x.m.obj == m {
				late := r.Ret == etimedout
				x.steps = append(x.steps, step{n: r.N, site: site, seq: x.seq, cond: l.cond(g, r.Obj), wait: true, back: r.Seq, late: late,
					ns: s.t.Clock.NS(r.End - r.Begin)})
				x.seq = max(x.seq, r.Seq)
				x.m.last = max(x.m.last, r.Seq)
			}
		}
		return
	case cabi.OpSignal, cabi.OpBroadcast:
		with, ok := l.with[r.Obj]
		if !ok {
			break // nobody waits for it
		}
		m, cond := l.guard(g, with), l.cond(g, r.Obj)
		rel := release{th: th, at: place{r.Thread.UID, r.N}, pos: m.last}
		if x := openSection(at, m); x != nil {
			rel.pos = x.seq
		} else if last := lastSection(m, th); last != nil && last.unlock != 0 {
			// After the unlock: what it tells was changed in the thread's last section.
			rel.pos, rel.after = last.seq, place{last.stream, last.unlock}
		}
		cond.releases = append(cond.releases, rel)
		l.note(at, r, site, cond)
		return
	case cabi.OpUnlock:
		for i := len(at.sect) - 1; i >= 0; i-- {
			if x := at.sect[i]; x.open && x.m.obj == r.Obj {
				l.note(at, r, site, nil)
				x.open, x.unlock = false, r.N
				return
			}
		}
	}
	if len(at.sect) > 0 {
		l.note(at, r, site, nil)
	}
}

// room is for the steps that a section usually has: many sections' at once.
func (l *loops) room() []step {
	if len(l.spare) < stepsUsual {
		l.spare = make([]step, 4096*stepsUsual)
	}
	steps := l.spare[:0:stepsUsual]
	l.spare = l.spare[stepsUsual:]
	return steps
}

// note adds a step to the open sections.
func (l *loops) note(at *threadAt, r *trace.Record, site uint32, cond *condition) {
	for _, x := range at.sect {
		if x.open && len(x.steps) < stepsMax {
			x.steps = append(x.steps, step{n: r.N, site: site, seq: x.seq, cond: cond})
		}
	}
}

func openSection(at *threadAt, m *guarded) *section {
	for _, x := range at.sect {
		if x.open && x.m == m {
			return x
		}
	}
	return nil
}

func lastSection(m *guarded, th *thread) *section {
	for i := len(m.sections) - 1; i >= 0 && i >= len(m.sections)-64; i-- {
		if m.sections[i].th == th {
			return m.sections[i]
		}
	}
	return nil
}

// packed is an object's name as a number of an event has it.
func packed(v uint64) trace.Object { return trace.Object{UID: uint32(v >> 40), Num: v & (1<<40 - 1)} }

package demand

import (
	"encoding/binary"
	"math"
	"slices"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// loops are the wait loops of the run. Sections of the mutexes that somebody waits with are noted while the trace is
// surveyed; learn (predicates.go) then makes a predicate of each loop.
type loops struct {
	c         *compiler
	with      map[trace.Object]trace.Object // which mutex a condition is waited for with
	mutexes   map[trace.Object]bool         // that somebody waits with
	under     map[objKey]*guarded
	conds     map[objKey]*condition
	list      []*condition    // the same, by number
	within    map[*group]bool // in whose threads somebody waits
	shapes    []shape
	uses      []shapeUse // of each, by the mutex that is looked at
	byShape   map[string]uint32
	late      [64]uint32 // shapes that were met of late, plus 1
	befores   map[eventKey]uint32
	here      map[siteAt]uint32 // numbers of call sites
	recent    [256]recent       // of under, as most events are about one of a few,
	signalled [256]recentCond   // of conds
	sites     [1024]recentSite  // and of here
	keyBuf    []byte
	preds     []cabi.ProgPred
	rows      []cabi.ProgRow
	at        places[waitAt]      // where threads come to a loop, and pass it
	roles     places[roleAt]      // locks at which the place among the arrivals says what is done
	releases  places[lateRelease] // unlocks whose section signals after it
	queues    []*loop
	keyCount  uint32
	keys      places[int64] // of signals: what they release,
	order     places[int64] // and how many released before them
	skips     places[int]   // waits that nothing is issued for: how many
	told      places[bool]  // signals that those have told of already
	waits     []MapPred     // of each predicate, a wait for it, for the map
}

// place is an event of a thread: which of its streams, and which event.
type place struct {
	uid uint32
	n   uint64
}

// waitAt is what is issued before the event at a place: the wait for a predicate.
type waitAt struct {
	timeout int64 // ns; 0: none
	row     int64 // of the table, that tells what follows it; 0: none. One more than its index
	pred    uint32
	site    uint32
	events  int32 // of waiting, that it stands for
	late    bool  // at home it was over
	choice  bool  // its time may be over
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
	sections pages[section]
	order    []uint32 // of these, by their places
	waits    pages[waited]
	last     uint64 // place in the order of the latest acquisition, in time
	begun    int    // sections
}

// section is what a thread did from a lock to its unlock. There may be millions: no pointers, and what many do alike is a shape.
type section struct {
	lock   uint64 // event
	first  uint64 // the lock's place
	thread uint32
	stream uint32
	unlock uint32 // events after the lock; 0: not seen
	shape  uint32
	waits  uint32 // of its mutex's, the first
	before uint32 // number of the event before the lock
}

// shape is the steps of sections, first the lock, last the unlock, and then what came after.
type shape []shapeStep

type shapeStep struct {
	after uint32 // events after the lock
	site  uint32
	cond  uint32 // number of the condition that it waits for or signals, plus 1; 0: it does not
	wait  bool
}

// waited is a wait in a section.
type waited struct {
	back uint64 // place when it came back
	ns   int64
	late bool // timed out
}

// opened is a section that is not closed yet.
type opened struct {
	section
	m     *guarded
	open  bool   // not unlocked
	seq   uint64 // place of the latest acquisition: the lock's, or a wait's
	steps []shapeStep
	waits []waited
	nth   int // of the mutex's
}

// lastOf is the last section of a thread under a mutex that is over.
type lastOf struct {
	m      *guarded
	seq    uint64
	unlock place
	nth    int
}

// siteAt is a call site, before it has a number.
type siteAt struct {
	proc *trace.Proc
	call uint16
	pc   uint64
}

// eventKey is what an event is: its call, and where that is.
type eventKey struct {
	call uint16
	at   uint64
}

// recent is a mutex that was met of late.
type recent struct {
	key objKey
	m   *guarded
}

// recentCond is a condition that was met of late, and what its mutex guards.
type recentCond struct {
	key  objKey
	cond *condition
	m    *guarded
}

type recentSite struct {
	at siteAt
	n  uint32
}

// step is an event in a section.
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
	number   uint32 // of the loops' list
	releases pages[release]
	order    []uint32 // of these, by their places
	afters   []after
}

// release is a signal.
type release struct {
	pos    uint64 // place of its section in the order of the mutex
	n      uint64 // event
	uid    uint32 // of its stream
	thread uint32
}

func (r *release) at() place { return place{r.uid, r.n} }

// after is a release that came after the unlock of its section.
type after struct {
	release int
	unlock  place
}

// recently is how many sections of a mutex may lie between one of a thread and a signal of it that belongs to that.
const recently = 64

const stepsMax = 64 // of a section; of what comes later only waits are looked at, and whether anything lies between them

func newLoops(c *compiler) *loops {
	return &loops{c: c, with: map[trace.Object]trace.Object{}, mutexes: map[trace.Object]bool{}, under: map[objKey]*guarded{}, conds: map[objKey]*condition{},
		within: map[*group]bool{}, byShape: map[string]uint32{}, befores: map[eventKey]uint32{}, here: map[siteAt]uint32{}}
}

func (l *loops) key(g *group, o trace.Object) objKey {
	if l.c.kind(o).kind == cabi.ObjSharedSync {
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
		c = &condition{key: k, obj: o, group: g, n: l.c.object(g, o, cabi.ObjCond), number: uint32(len(l.list))}
		l.conds[k], l.within[g] = c, true
		l.list = append(l.list, c)
	}
	return c
}

// guards is what a mutex guards that somebody waits with; nil: nobody does.
func (l *loops) guards(g *group, o trace.Object) *guarded {
	k := objKey{g.n, o}
	slot := &l.recent[spot(g.n, o)]
	if slot.m != nil && slot.key == k {
		return slot.m
	}
	if !l.mutexes[o] {
		return nil
	}
	m := l.guard(g, o)
	*slot = recent{k, m}
	return m
}

// site numbers where an event is.
func (l *loops) site(r *trace.Record) uint32 {
	k := siteAt{r.Thread.Proc, r.Call, r.PC}
	slot := &l.sites[(r.PC^uint64(r.Call))%uint64(len(l.sites))]
	if slot.n != 0 && slot.at == k {
		return slot.n
	}
	n, ok := l.here[k]
	if !ok {
		n = l.c.siteNumber(l.c.site(r.Thread, r))
		l.here[k] = n
	}
	*slot = recentSite{k, n}
	return n
}

// signals is a condition that is signalled, and what its mutex guards; nil: nobody waits for it.
func (l *loops) signals(g *group, o trace.Object) (*condition, *guarded) {
	k := objKey{g.n, o}
	slot := &l.signalled[spot(g.n, o)]
	if slot.cond != nil && slot.key == k {
		return slot.cond, slot.m
	}
	with, ok := l.with[o]
	if !ok {
		return nil, nil
	}
	m := l.guard(g, with)
	*slot = recentCond{k, l.cond(g, o), m}
	return slot.cond, m
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
		site = l.site(r)
	}
	// What comes right after a section closes it for good.
	for i := 0; i < len(at.sect); i++ {
		if x := at.sect[i]; !x.open {
			x.step(r.N, shapeStep{site: site})
			l.close(x)
			at.sect = slices.Delete(at.sect, i, i+1)
			at.spare = append(at.spare, x)
			i--
		}
	}
	switch code {
	case cabi.OpLock, cabi.OpTrylock, cabi.OpTimedlock:
		if r.Ret != 0 || r.Seq == 0 {
			break
		}
		if m := l.guards(g, r.Obj); m != nil {
			if site == 0 {
				site = l.site(r)
			}
			l.note(at, r, site, nil)
			at.sect = append(at.sect, l.begin(m, th, at, r, site))
			return
		}
	case opCondwait:
		m := packed(uint64(r.F[1]))
		for _, x := range at.sect {
			if x.open && x.m.obj == m {
				if x.step(r.N, shapeStep{site: site, cond: l.cond(g, r.Obj).number + 1, wait: true}) {
					x.waits = append(x.waits, waited{r.Seq, s.t.Clock.NS(r.End - r.Begin), r.Ret == etimedout})
				}
				x.seq = max(x.seq, r.Seq)
				x.m.last = max(x.m.last, r.Seq)
			}
		}
		return
	case cabi.OpSignal, cabi.OpBroadcast:
		cond, m := l.signals(g, r.Obj)
		if cond == nil {
			break // nobody waits for it
		}
		rel := release{pos: m.last, n: r.N, uid: r.Thread.UID, thread: th.n}
		if x := openSection(at, m); x != nil {
			rel.pos = x.seq
		} else if last := lastSection(at, m); last != nil {
			// After the unlock: what it tells was changed in the thread's last section.
			rel.pos = last.seq
			cond.afters = append(cond.afters, after{cond.releases.n, last.unlock})
		}
		cond.releases.add(rel)
		l.note(at, r, site, cond)
		return
	case cabi.OpUnlock:
		for i := len(at.sect) - 1; i >= 0; i-- {
			if x := at.sect[i]; x.open && x.m.obj == r.Obj {
				l.note(at, r, site, nil)
				x.over(at, r.N)
				return
			}
		}
	}
	if len(at.sect) > 0 {
		l.note(at, r, site, nil)
	}
}

// begin opens a section.
func (l *loops) begin(m *guarded, th *thread, at *threadAt, r *trace.Record, site uint32) *opened {
	before, ok := l.befores[at.last]
	if !ok {
		before = uint32(len(l.befores))
		l.befores[at.last] = before
	}
	var x *opened
	if n := len(at.spare); n > 0 {
		x, at.spare = at.spare[n-1], at.spare[:n-1]
	} else {
		x = &opened{}
	}
	m.last = max(m.last, r.Seq)
	m.begun++
	*x = opened{section: section{thread: th.n, stream: r.Thread.UID, lock: r.N, first: r.Seq, before: before}, m: m, open: true, seq: r.Seq, nth: m.begun,
		steps: x.steps[:0], waits: x.waits[:0]}
	x.step(r.N, shapeStep{site: site})
	return x
}

// step adds a step at an event; no: it is too far from the lock to be kept.
func (x *opened) step(n uint64, s shapeStep) bool {
	if n-x.lock > math.MaxUint32 {
		return false
	}
	s.after = uint32(n - x.lock)
	x.steps = append(x.steps, s)
	return true
}

// over unlocks a section, at an event.
func (x *opened) over(at *threadAt, n uint64) {
	x.open = false
	if n-x.lock <= math.MaxUint32 {
		x.unlock = uint32(n - x.lock)
	}
	was := lastOf{x.m, x.seq, place{x.stream, n}, x.nth}
	for i := range at.over {
		if at.over[i].m == x.m {
			at.over[i] = was
			return
		}
	}
	at.over = append(at.over, was)
}

// close keeps a section.
func (l *loops) close(x *opened) {
	slot := &l.late[uint(len(x.steps)*31+int(x.steps[len(x.steps)-1].site+x.steps[len(x.steps)-1].after*7))%uint(len(l.late))]
	if !slices.Equal(l.shapeOf(*slot), x.steps) {
		*slot = l.number(x) + 1
	}
	x.shape, x.section.waits = *slot-1, uint32(x.m.waits.n)
	for _, w := range x.waits {
		x.m.waits.add(w)
	}
	x.m.sections.add(x.section)
}

// shapeOf is the shape of a number, plus 1; nil: of none.
func (l *loops) shapeOf(n uint32) shape {
	if n == 0 {
		return nil
	}
	return l.shapes[n-1]
}

// number numbers the shape of a section.
func (l *loops) number(x *opened) uint32 {
	key := l.keyBuf[:0]
	for _, s := range x.steps {
		key = binary.LittleEndian.AppendUint32(key, s.after)
		key = binary.LittleEndian.AppendUint32(key, s.site)
		key = binary.LittleEndian.AppendUint32(key, s.cond<<1|b2u(s.wait))
	}
	l.keyBuf = key
	n, ok := l.byShape[string(key)]
	if !ok {
		n = uint32(len(l.shapes))
		l.byShape[string(key)] = n
		l.shapes = append(l.shapes, slices.Clone(x.steps))
	}
	return n
}

// steps are those of a section, in buf.
func (l *loops) steps(m *guarded, x *section, buf []step) []step {
	buf = buf[:0]
	seq, w := x.first, x.waits
	for _, s := range l.shapes[x.shape] {
		t := step{n: x.lock + uint64(s.after), seq: seq, site: s.site, wait: s.wait}
		if s.cond != 0 {
			t.cond = l.list[s.cond-1]
		}
		if s.wait {
			y := m.waits.at(int(w))
			w++
			t.back, t.ns, t.late = y.back, y.ns, y.late
			seq = max(seq, y.back)
		}
		buf = append(buf, t)
	}
	return buf
}

// site is where a section takes its mutex.
func (x *section) site(l *loops) uint32 { return l.shapes[x.shape][0].site }

// unlocked is the event of its unlock, if that was seen.
func (x *section) unlocked() (uint64, bool) { return x.lock + uint64(x.unlock), x.unlock != 0 }

// note adds a step to the open sections.
func (l *loops) note(at *threadAt, r *trace.Record, site uint32, cond *condition) {
	for _, x := range at.sect {
		if x.open && (len(x.steps) < stepsMax || x.steps[len(x.steps)-1].wait) {
			s := shapeStep{site: site}
			if cond != nil {
				s.cond = cond.number + 1
			}
			x.step(r.N, s)
		}
	}
}

func openSection(at *threadAt, m *guarded) *opened {
	for _, x := range at.sect {
		if x.open && x.m == m {
			return x
		}
	}
	return nil
}

func lastSection(at *threadAt, m *guarded) *lastOf {
	for i := range at.over {
		if x := &at.over[i]; x.m == m && m.begun-x.nth < recently {
			return x
		}
	}
	return nil
}

// packed is an object's name as a number of an event has it.
func packed(v uint64) trace.Object { return trace.Object{UID: uint32(v >> 40), Num: v & (1<<40 - 1)} }

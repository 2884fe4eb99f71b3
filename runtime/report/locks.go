package report

import (
	"cmp"
	"slices"
	"strconv"

	"prophet/cabi"
	"prophet/runtime/links"
	"prophet/runtime/trace"
)

// maxLocks bounds how many objects are followed, maxParties how many threads and places an object's waits are told
// apart by, maxHeld how many locks of a thread are timed at once.
const (
	maxLocks   = 1 << 17
	maxParties = 64
	maxHeld    = 64
)

// lockState is an object that threads wait at, as far as the stream has been read. Times are ticks.
type lockState struct {
	obj     trace.Object
	kind    string
	label   uint32
	taken   uint64
	held    uint64
	maxHeld uint64
	waits   *waits
}

// waits is what is known of an object that somebody waited at.
type waits struct {
	ticks   uint64
	max     uint64
	maxAt   uint64
	hist    Hist
	waiters map[int]*part
	causes  map[int]*part // who had it, or woke
	at      map[place]*part
	causeAt map[place]*part
}

type part struct{ times, ticks uint64 }

// place is a call site of a process.
type place struct {
	p  *trace.Proc
	pc uint64
}

// held is a lock that a thread has.
type held struct {
	s     *lockState
	since uint64
}

// partyOthers stands for threads that found no room.
const partyOthers = -1

type lockTable struct {
	c      *collector
	all    map[trace.Object]*lockState
	recent [256]*lockState
	folded uint64 // waits at objects that found no room
}

func newLockTable(c *collector) lockTable {
	return lockTable{c: c, all: map[trace.Object]*lockState{}}
}

// of returns the state of an object; nil when there is no room for another.
func (t *lockTable) of(o trace.Object, kind string) *lockState {
	slot := &t.recent[(o.Num^uint64(o.UID)*31)%uint64(len(t.recent))]
	if *slot != nil && (*slot).obj == o {
		return *slot
	}
	s := t.all[o]
	if s == nil {
		if len(t.all) >= maxLocks {
			return nil
		}
		s = &lockState{obj: o, kind: kind}
		t.all[o] = s
	}
	*slot = s
	return s
}

// object takes the record of an object: its address may have been another's before.
func (t *lockTable) object(r *trace.Record) {
	switch k := r.Nums[2]; {
	case k == cabi.ObjFd || k == cabi.ObjPath || k == cabi.ObjThread || k == cabi.ObjProcess || r.Nums[0] > 1<<32-1:
	default:
		t.of(trace.Object{UID: uint32(r.Nums[0]), Num: r.Nums[1]}, trace.ObjKindName(k))
	}
}

// label is the object's name as slices carry it.
func (t *lockTable) label(o trace.Object) uint32 {
	s := t.all[o]
	if s == nil {
		return 0
	}
	if s.label == 0 {
		s.label = t.c.labelOf(t.name(s))
	}
	return s.label
}

func (t *lockTable) name(s *lockState) string {
	by := "?"
	if x := t.c.byUID[s.obj.UID]; x != nil {
		by = x.th.Name
	}
	return s.kind + ":" + by + "#" + strconv.FormatUint(s.obj.Num, 10)
}

// event takes an event on such an object.
func (t *lockTable) event(x *thread, r *trace.Record, in *callInfo) {
	s := t.of(r.Obj, r.Row.Obj)
	if s == nil {
		t.folded++
		return
	}
	if r.Seq > s.taken {
		s.taken = r.Seq
	}
	got := r.Ret == 0
	switch in.kind {
	case lockTake, lockShare:
		if got {
			x.take(s, r)
		}
	case lockFree:
		x.free(s, r)
	case lockWaits:
		if r.Timed {
			x.pause(r)
		}
	}
	if !r.Timed || in.tells && r.Note&cabi.NoteWaited == 0 || r.End <= r.Begin {
		return
	}
	w := s.waited()
	ticks := r.End - r.Begin
	w.ticks += ticks
	if ticks > w.max {
		w.max, w.maxAt = ticks, r.Begin
	}
	w.hist.Add(uint64(t.c.ns(ticks)))
	add(w.waiters, x.index, partyOthers, ticks)
	add(w.at, place{x.th.Proc, r.PC}, place{}, ticks)
}

// take begins the time that a thread has a lock.
func (x *thread) take(s *lockState, r *trace.Record) {
	if len(x.held) < maxHeld {
		x.held = append(x.held, held{s, r.End})
	}
}

// free ends the time that a thread had a lock.
func (x *thread) free(s *lockState, r *trace.Record) {
	for i := len(x.held) - 1; i >= 0; i-- {
		if h := &x.held[i]; h.s == s {
			d := r.Begin - min(r.Begin, h.since)
			s.held += d
			s.maxHeld = max(s.maxHeld, d)
			x.held = append(x.held[:i], x.held[i+1:]...)
			return
		}
	}
}

// pause takes the time that a thread waited for a condition off the time that it had the mutex, which it let go of.
func (x *thread) pause(r *trace.Record) {
	m := trace.Object{UID: uint32(uint64(r.F[1]) >> 40), Num: uint64(r.F[1]) & (1<<40 - 1)} // as shim/object.h packs it
	for i := len(x.held) - 1; i >= 0; i-- {
		if h := &x.held[i]; h.s.obj == m {
			h.since += r.End - r.Begin
			return
		}
	}
}

func (s *lockState) waited() *waits {
	if s.waits == nil {
		s.waits = &waits{waiters: map[int]*part{}, causes: map[int]*part{}, at: map[place]*part{}, causeAt: map[place]*part{}}
	}
	return s.waits
}

// link takes who let a waiter go on: the time of the wait is told of whoever had the lock, or woke. A link whose wait took
// no time says nothing of waiting.
func (t *lockTable) link(l *links.Link) {
	switch l.Kind {
	case links.Lock, links.Wake, links.Post, links.Barrier, links.Once:
	default:
		return
	}
	from := t.c.byUID[l.From.Thread.UID]
	if from == nil || l.To.End <= l.To.Begin || l.From.Thread == l.To.Thread {
		return
	}
	row := l.To.Row()
	if row == nil || l.Kind == links.Lock && row.Obj == "cond" { // that takes the mutex again, and waited for the condition
		return
	}
	s := t.of(l.Object, row.Obj)
	if s == nil {
		return
	}
	w, ticks := s.waited(), l.To.End-l.To.Begin
	add(w.causes, from.index, partyOthers, ticks)
	at := l.Held
	if at.Thread == nil {
		at = l.From
	}
	add(w.causeAt, place{from.th.Proc, at.PC}, place{}, ticks)
}

// add adds to a party's part; there is room for maxParties, and what comes then is others'.
func add[K comparable](m map[K]*part, k, others K, ticks uint64) {
	p := m[k]
	if p == nil {
		if len(m) >= maxParties {
			k = others
		}
		if p = m[k]; p == nil {
			p = &part{}
			m[k] = p
		}
	}
	p.times++
	p.ticks += ticks
}

// list are the objects that were waited at, by the time of it.
func (t *lockTable) list() []Lock {
	var states []*lockState
	for _, s := range t.all {
		if s.waits != nil && s.waits.hist.N > 0 {
			states = append(states, s)
		}
	}
	slices.SortFunc(states, func(a, b *lockState) int {
		return cmp.Or(cmp.Compare(b.waits.ticks, a.waits.ticks), cmp.Compare(a.obj.UID, b.obj.UID), cmp.Compare(a.obj.Num, b.obj.Num))
	})
	c := t.c
	out := []Lock{}
	for i, s := range states {
		w := s.waits
		l := Lock{Name: t.name(s), Kind: s.kind, Taken: s.taken, Waits: w.hist.N, NS: c.ns(w.ticks), MaxNS: c.ns(w.max), MaxAt: c.since(w.maxAt),
			P50: w.hist.Quantile(.5), P99: w.hist.Quantile(.99), HeldNS: c.ns(s.held), MaxHeld: c.ns(s.maxHeld), hist: &w.hist}
		if i < c.o.Locks {
			l.Buckets = w.hist.Buckets()
			l.Waiters, l.Causes = c.parties(w.waiters), c.parties(w.causes)
			l.At, l.CauseAt = c.places(w.at), c.places(w.causeAt)
		}
		out = append(out, l)
	}
	return out
}

func (c *collector) parties(m map[int]*part) []Who {
	out := []Who{}
	for k, p := range m {
		name := "other threads"
		if k != partyOthers {
			name = c.threadName(c.order[k])
		}
		out = append(out, Who{name, p.times, c.ns(p.ticks)})
	}
	slices.SortFunc(out, func(a, b Who) int { return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.Thread, b.Thread)) })
	return out[:min(len(out), 10)]
}

func (c *collector) places(m map[place]*part) []Where {
	out := []Where{}
	for k, p := range m {
		out = append(out, Where{Site: c.site(k), Times: p.times, NS: c.ns(p.ticks), place: k})
	}
	slices.SortFunc(out, func(a, b Where) int { return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.Site, b.Site)) })
	return out[:min(len(out), 8)]
}

func (c *collector) site(k place) string {
	if k.p == nil || k.pc == 0 {
		return "other places"
	}
	return k.p.Site(k.pc)
}

func (c *collector) threadName(x *thread) string {
	if x.label != "" {
		return x.th.Name + " " + clean(x.label)
	}
	return x.th.Name
}

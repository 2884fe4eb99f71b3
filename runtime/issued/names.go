package issued

import (
	"maps"
	"strings"
	"sync"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// Objects are named by who uses them first, and take their places as they are used: in the issue that may be another thread, and
// another place. So both are made anew here, by the recorder's rules (shim/object.h).

// named is an object as the issue uses it.
type named struct {
	id      trace.Object
	seq     uint64 // places taken
	readers int64  // since the last writer
	count   uint64 // a barrier's
}

// space is the objects of a process.
type space struct {
	proc   uint32
	by     map[trace.Object]*named
	at     map[spot]trace.Object // what lies at an address, by home's names
	fds    map[int64]bool        // descriptors of files that the run writes
	native map[uint32]bool       // processes of home's whose names hold here: its own, and those that it was forked from
}

// spot is an address, or a descriptor's number.
type spot struct{ kind, at uint64 }

func newSpace(proc uint32) *space {
	return &space{proc: proc, by: map[trace.Object]*named{}, at: map[spot]trace.Object{}, fds: map[int64]bool{}, native: map[uint32]bool{proc: true}}
}

// fork is what a child has: its parent's objects as they stood.
func (s *space) fork(proc uint32) *space {
	c := newSpace(proc)
	for k, o := range s.by {
		copied := *o
		c.by[k] = &copied
	}
	c.at = maps.Clone(s.at)
	c.inherit(s)
	for p := range s.native {
		c.native[p] = true
	}
	return c
}

// rowRule is which of a row's numbers are names, and which orders it takes part in.
type rowRule struct {
	refs  [3]bool
	first bool // those before its object
	tail  []bool
	order order
}

type order int

const (
	orderNone order = iota
	orderTake
	orderGive
	orderWait // the place is in the mutex's order
	orderRead
	orderWrite
	orderBarrier
)

var rules = sync.OnceValue(func() map[*trace.Row]*rowRule {
	m := map[*trace.Row]*rowRule{}
	for i := range cabi.Calls {
		row := trace.RowOf(uint64(cabi.Calls[i].ID))
		if row == nil {
			continue
		}
		r := &rowRule{}
		name := strings.TrimLeft(row.Name, "_")
		for _, s := range strings.Split(row.Rec, ";") {
			w := strings.Fields(s)
			if len(w) < 2 {
				continue
			}
			names := strings.Contains(s, "shim_obj_")
			switch w[0] {
			case "f1", "f2", "f3":
				r.refs[w[0][1]-'1'] = names
			case "num":
				r.tail = append(r.tail, names)
			case "path", "str", "snum":
				r.tail = append(r.tail, false)
			}
		}
		switch {
		case row.Obj == "cond" && row.Block:
			r.refs[1], r.first, r.order = true, true, orderWait
		case row.Obj == "cond" && row.Seq, strings.HasPrefix(name, "sem_post"):
			r.order = orderGive
		case strings.HasPrefix(name, "pthread_barrier_wait"):
			r.order = orderBarrier
		case strings.HasPrefix(name, "pthread_rwlock_") && strings.HasSuffix(name, "rdlock"):
			r.order = orderRead
		case strings.HasPrefix(name, "pthread_rwlock_") && strings.HasSuffix(name, "wrlock"):
			r.order = orderWrite
		case row.Seq:
			r.order = orderTake
		}
		if row.Obj == "fd" && row.F[2] == "fd" { // of a file's lock
			r.refs[2], r.first = true, true
		}
		m[row] = r
	}
	return m
})

func ruleOf(row *trace.Row) *rowRule {
	if r := rules()[row]; r != nil {
		return r
	}
	return &rowRule{}
}

// takes tells whether a call has its place when it returns.
func takes(row *trace.Row) bool {
	switch ruleOf(row).order {
	case orderTake, orderWait, orderRead, orderWrite:
		return true
	}
	return false
}

func packed(o trace.Object) int64 { return int64(uint64(o.UID)<<40 | o.Num&(1<<40-1)) }

func unpacked(v int64) trace.Object {
	return trace.Object{UID: uint32(uint64(v) >> 40), Num: uint64(v) & (1<<40 - 1)}
}

// private tells kinds of objects that are a process's own.
func private(kind uint64) bool {
	switch kind {
	case cabi.ObjMutex, cabi.ObjRwlock, cabi.ObjCond, cabi.ObjBarrier, cabi.ObjSem, cabi.ObjSpin, cabi.ObjOnce, cabi.ObjGuard, cabi.ObjStdio, cabi.ObjFd:
		return true
	}
	return false
}

// name is what the issue calls an object of home's, that it names now if nobody has. nil: it is called what it is called.
func (m *maker) name(l *lane, o trace.Object) *named {
	if o.None() || o.Num == 0 {
		return nil
	}
	info, ok := m.h.objects[o]
	if !ok {
		return nil
	}
	if info.kind == cabi.ObjSharedSync {
		n := m.shared[o]
		if n == nil {
			n = m.born1(l, info)
			m.shared[o] = n
		}
		return n
	}
	k := o
	if private(info.kind) {
		where := spot{info.kind, info.at}
		if m.foreign(l, o) {
			// What another process did, which runs the same program: here it is what lies at that address.
			if mine, ok := l.space.at[where]; ok {
				k = mine
			} else {
				l.space.at[where] = o
			}
		} else {
			// Where this process has come to it by what another one did, it has its name.
			if was := l.space.at[where]; was != o && l.space.by[o] == nil && m.foreign(l, was) {
				l.space.by[o] = l.space.by[was]
			}
			l.space.at[where] = o
		}
	}
	n := l.space.by[k]
	if n == nil {
		n = m.born1(l, info)
		l.space.by[k] = n
	}
	return n
}

// foreign tells whether an object has its name of a process of home's whose names do not hold here.
func (m *maker) foreign(l *lane, o trace.Object) bool {
	th := m.src.Trace.ThreadByUID(o.UID)
	return th != nil && !l.space.native[th.Proc.Number]
}

// born1 gives an object its name, and says so in the thread's stream.
func (m *maker) born1(l *lane, info object) *named {
	m.uids[l.uid]++
	n := &named{id: trace.Object{UID: l.uid, Num: m.uids[l.uid]}}
	r := trace.Record{Tag: cabi.TagObject, Nums: [8]uint64{uint64(n.id.UID), n.id.Num, info.kind, info.at}}
	r.Text[0] = []byte(info.detail)
	l.enc.Copy(&r)
	return n
}

// place gives an event its place in the order of its object, o, or of the mutex that a wait lets go of.
func place(r *trace.Record, rule *rowRule, o, mutex *named, waited bool) {
	failed := r.Ret < 0 || r.Row.Ret == trace.RetErr && r.Ret != 0 && r.Ret != eownerdead
	switch rule.order {
	case orderWait:
		if mutex != nil && (!failed || r.Ret == etimedout || r.Ret == ecanceled) && r.Seq != 0 {
			mutex.seq++
			r.Seq = mutex.seq
		}
	case orderRead:
		if o != nil && !failed {
			r.F[1] = int64(o.seq)
			o.readers++
		}
	case orderWrite:
		if o != nil && !failed {
			o.seq++
			r.Seq, r.F[1], o.readers = o.seq, o.readers, 0
		}
	case orderBarrier:
		if o != nil {
			o.seq++
			r.Seq = o.seq
			if o.count > 0 {
				r.F[1] = int64((o.seq - 1) / o.count)
			}
		}
	case orderTake, orderGive:
		if o == nil || r.Seq == 0 && !waited {
			break
		}
		if r.Seq = 0; !failed {
			o.seq++
			r.Seq = o.seq
		}
	}
}

const (
	etimedout  = 110
	ecanceled  = 125
	eownerdead = 130
)

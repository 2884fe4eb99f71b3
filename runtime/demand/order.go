package demand

import (
	"slices"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// Path is how an issue goes on from home's run. All but the first are there to be compared with it.
type Path int

const (
	PathFree   Path = iota // locks are real and unordered, wait loops are predicates, other results are other ways
	PathHome               // the path and the order of home: each lock is taken when its place in the order has come
	PathThink              // each thread by itself: no locks, and between two calls as much time as at home
	PathStrict             // the path of home, which ends where a lock comes in another order or a result is another (strict.go)
)

// orders are the places that home's run took in the order of each object, as numbers from 1 without gaps.
type orders struct {
	of map[objKey]*order
}

type order struct {
	places  []uint64
	readers []uint64 // of an rwlock: after which place each came

	held, heldReaders int64 // of these, the first ones that are proven
}

func (o *orders) at(k objKey) *order {
	l := o.of[k]
	if l == nil {
		l = &order{}
		o.of[k] = l
	}
	return l
}

// orderKey tells objects apart whose orders are: synchronisation objects are each process's own unless they are shared.
func (c *compiler) orderKey(g *group, obj trace.Object) objKey {
	if k := c.kind(obj).kind; k >= cabi.ObjMutex && k <= cabi.ObjSpin {
		return objKey{g.n, obj}
	}
	return objKey{^uint32(0), obj}
}

// ordered is the object whose order an event takes a place in; none: it takes none.
func ordered(code uint16, r *trace.Record) (of trace.Object, reader bool) {
	switch code {
	case cabi.OpLock, cabi.OpTrylock, cabi.OpTimedlock, cabi.OpWrlock, cabi.OpTrywrlock, cabi.OpSpinlock, cabi.OpSpintry, cabi.OpSemwait, cabi.OpSemtry,
		cabi.OpSemtimed, cabi.OpSempost, cabi.OpFlock, cabi.OpFcntlLock:
		if r.Seq != 0 {
			return r.Obj, false
		}
	case opCondwait:
		if r.Seq != 0 {
			return packed(uint64(r.F[1])), false
		}
	case cabi.OpRdlock, cabi.OpTryrdlock:
		if r.Ret == 0 {
			return r.Obj, true
		}
	}
	return trace.Object{}, false
}

// note collects what places an event takes.
func (o *orders) note(c *compiler, th *thread, r *trace.Record) {
	op := opOf(r.Row)
	if op == nil {
		return
	}
	obj, reader := ordered(op.code, r)
	if obj.None() {
		return
	}
	l := o.at(c.orderKey(th.group, obj))
	proven := c.proven(r)
	if reader {
		l.readers = append(l.readers, uint64(r.F[1]))
		l.heldReaders += proven
	} else {
		l.places = append(l.places, r.Seq)
		l.held += proven
	}
}

func (o *orders) sort() {
	for _, l := range o.of {
		slices.Sort(l.places)
		slices.Sort(l.readers)
	}
}

// upTo is how many of a sorted list are at most v.
func upTo(list []uint64, v uint64) int64 {
	n, _ := slices.BinarySearch(list, v+1)
	return int64(n)
}

// blocking is what takes a lock for sure, where home tried and got it.
var blocking = map[uint16]uint16{cabi.OpTrylock: cabi.OpLock, cabi.OpTimedlock: cabi.OpLock, cabi.OpTryrdlock: cabi.OpRdlock, cabi.OpTrywrlock: cabi.OpWrlock,
	cabi.OpSpintry: cabi.OpSpinlock, cabi.OpSemtry: cabi.OpSemwait, cabi.OpSemtimed: cabi.OpSemwait}

var objectKinds = map[uint16]uint16{cabi.OpLock: cabi.ObjMutex, cabi.OpRdlock: cabi.ObjRwlock, cabi.OpWrlock: cabi.ObjRwlock, cabi.OpSpinlock: cabi.ObjSpin,
	cabi.OpSemwait: cabi.ObjSem, cabi.OpSempost: cabi.ObjSem}

// strict issues an event of synchronisation as all paths but PathFree have it; false: it is issued as always.
func (e *emitter) strict(r *trace.Record, o *op, as *pending, dur int64) bool {
	own := *as // where it is issued as always, nothing has been changed
	p := &own
	if e.opt.Path == PathStrict {
		return e.checked(r, o, p, dur)
	}
	p.Flags, p.Site = 0, 0
	think := e.opt.Path == PathThink
	switch o.code {
	case cabi.OpUnlock, cabi.OpRwunlock, cabi.OpSpinunlock, cabi.OpBarrier:
		if !think {
			return false
		}
	case cabi.OpFlock, cabi.OpFcntlLock:
		if think || r.Seq == 0 && result(r) >= 0 {
			return false
		}
	case cabi.OpLock, cabi.OpTrylock, cabi.OpTimedlock, cabi.OpRdlock, cabi.OpWrlock, cabi.OpTryrdlock, cabi.OpTrywrlock, cabi.OpSpinlock, cabi.OpSpintry,
		cabi.OpSemwait, cabi.OpSemtry, cabi.OpSemtimed, cabi.OpSempost, cabi.OpSignal, cabi.OpBroadcast, opCondwait:
	default:
		return false
	}
	if think {
		e.put(&pending{ProgOp: cabi.ProgOp{Code: cabi.OpCPU}, gap: p.gap + dur, single: p.single})
		return true
	}
	obj, reader := ordered(o.code, r)
	if o.code == opCondwait {
		e.put(&pending{ProgOp: cabi.ProgOp{Code: cabi.OpUnlock, Obj: e.object(e.th.group, packed(uint64(r.F[1])), cabi.ObjMutex)}, gap: p.gap})
		p.gap = 0
	}
	late := (o.code == opCondwait || o.code == cabi.OpTimedlock || o.code == cabi.OpSemtimed) && result(r) == -etimedout
	if late && dur > sleepAdd {
		e.put(&pending{ProgOp: cabi.ProgOp{Code: cabi.OpSleep, A: dur - sleepAdd}, gap: p.gap})
		p.gap = 0
	}
	if obj.None() { // it took nothing
		p.Code = cabi.OpCPU
		e.put(p)
		return true
	}
	k := e.orderKey(e.th.group, obj)
	l := e.orders.at(k)
	place := upTo(l.places, r.Seq)
	turn := cabi.ProgOp{Code: cabi.OpTurn, A: place, B: upTo(l.readers, r.Seq-1)}
	done := cabi.ProgOp{Code: cabi.OpPlaced, A: place}
	if reader {
		turn.A, turn.B, done.A = upTo(l.places, uint64(r.F[1]))+1, 0, 0
	}
	code := o.code
	if code == opCondwait {
		code = cabi.OpLock
	} else if b, ok := blocking[code]; ok {
		code = b
	}
	if kind, ok := objectKinds[code]; ok {
		turn.Obj = e.object(e.th.group, obj, kind)
		done.Obj = turn.Obj
		e.put(&pending{ProgOp: turn, gap: p.gap})
		e.put(&pending{ProgOp: cabi.ProgOp{Code: code, Obj: turn.Obj}, single: p.single, place: p.place})
		if code == cabi.OpLock && o.code != opCondwait {
			e.hold(code, turn.Obj, 0)
		}
		e.put(&pending{ProgOp: done})
		return true
	}
	// Locks of files: an object of ours keeps their order.
	turn.Obj = e.orderObject(k)
	done.Obj = turn.Obj
	e.put(&pending{ProgOp: turn, gap: p.gap})
	p.gap, p.Code = 0, code
	e.fileLock(r, p, dur, true)
	e.put(&pending{ProgOp: done})
	return true
}

const lockNB = 4

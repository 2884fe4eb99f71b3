package demand

import (
	"prophet/cabi"
	"prophet/runtime/trace"
)

// A strict issue is the way of a prediction that is compared with: it goes on as long as each lock comes in the order of the path that
// is known, and each result is the known one. At the first that is another it ends, as nobody knows what the program does
// then; the program is asked at home, and its answer is the path that is known next, whose first part is proven. Of
// that part each lock waits for its turn; behind it nobody waits, but for the places that the first part takes in the same order.

// proven is 1 where an event belongs to the part of a path that is proven: the program was asked for it, in that order.
func (c *compiler) proven(r *trace.Record) int64 {
	if x := c.t.Meta.Issued; x != nil && r.N < x.Events(r.Thread.UID) {
		return 1
	}
	return 0
}

// checked issues an event of synchronisation as PathStrict has it; false: it is issued as always.
func (e *emitter) checked(r *trace.Record, o *op, p *pending, dur int64) bool {
	held := e.proven(r) == 1
	code := o.code
	switch code {
	case cabi.OpLock, cabi.OpTrylock, cabi.OpTimedlock, cabi.OpRdlock, cabi.OpWrlock, cabi.OpTryrdlock, cabi.OpTrywrlock, cabi.OpSpinlock, cabi.OpSpintry,
		cabi.OpSemwait, cabi.OpSemtry, cabi.OpSemtimed, cabi.OpSempost, opCondwait:
	case cabi.OpFlock, cabi.OpFcntlLock:
		if r.Seq == 0 && result(r) >= 0 {
			return false
		}
	default:
		return false
	}
	obj, reader := ordered(code, r)
	late := held && (code == opCondwait || code == cabi.OpTimedlock || code == cabi.OpSemtimed) && result(r) == -etimedout
	if held && obj.None() { // it took nothing, as was seen
		p.Flags = 0
		if late && dur > sleepAdd {
			p.Code, p.A = cabi.OpSleep, dur-sleepAdd
		} else {
			p.Code = cabi.OpCPU
		}
		e.put(p)
		return true
	}
	of := obj
	if obj.None() {
		of = r.Obj
	}
	l := e.orders.at(e.orderKey(e.th.group, of))
	place := upTo(l.places, r.Seq)
	before, after := cabi.ProgOp{Code: cabi.OpTurn, A: place, B: upTo(l.readers, r.Seq-1)}, cabi.ProgOp{Code: cabi.OpPlaced, A: place}
	if reader {
		before.A, before.B, after.A = upTo(l.places, uint64(r.F[1]))+1, 0, 0
	}
	if !held {
		after.Code, after.B = cabi.OpCheck, before.B
		if reader {
			after.B = before.A - 1
		}
		before.A, before.B = l.held+1, l.heldReaders
	}
	switch {
	case code == opCondwait:
		e.condwait(r, p, held, late, before.A, dur)
		after.Obj = e.object(e.th.group, of, cabi.ObjMutex)
	case code == cabi.OpFlock || code == cabi.OpFcntlLock:
		before.Obj = e.orderObject(e.orderKey(e.th.group, of))
		after.Obj = before.Obj
		e.put(&pending{ProgOp: before, gap: p.gap})
		p.gap = 0
		e.fileLock(r, p, dur, held)
	default:
		if held {
			p.Flags, p.Want = 0, 0
			if b, ok := blocking[code]; ok {
				code = b
			}
		}
		p.Code, p.Obj = code, e.object(e.th.group, of, kindOfLock(code))
		before.Obj, after.Obj = p.Obj, p.Obj
		if code == cabi.OpTimedlock || code == cabi.OpSemtimed {
			p.A = timeLimit(p.Want, dur)
		}
		e.put(&pending{ProgOp: before, gap: p.gap})
		p.gap = 0
		if code == cabi.OpSempost && !held { // who is let go may be in the order at once
			e.put(&pending{ProgOp: after})
			e.put(p)
			return true
		}
		e.put(p)
		if kindOfLock(code) == cabi.ObjMutex {
			e.hold(code, p.Obj, p.Want)
		}
	}
	if !obj.None() {
		e.put(&pending{ProgOp: after})
	}
	return true
}

// condwait issues a wait as the program made it: in its turn where that is proven, otherwise when it is woken.
func (e *emitter) condwait(r *trace.Record, p *pending, held, late bool, turn, dur int64) {
	p.Code, p.Obj, p.Flags = cabi.OpCondwait, e.object(e.th.group, r.Obj, cabi.ObjCond), 0
	p.A = int64(e.object(e.th.group, packed(uint64(r.F[1])), cabi.ObjMutex))
	p.wait, p.skip, p.since = true, 1, p.upto-1
	more := cabi.ProgOp{Code: cabi.OpMore, A: turn}
	if late {
		more.B = max(dur-sleepAdd, 0)
	}
	if !held {
		p.Flags = cabi.OpMust
		if p.Want == -etimedout {
			p.B = max(dur, 1)
		}
	}
	e.put(p)
	e.put(&pending{ProgOp: more})
}

// orderObject is an object of ours that keeps the order of something that is no lock of the engine's.
func (e *emitter) orderObject(k objKey) uint32 {
	n, ok := e.objects[k]
	if !ok {
		n = uint32(len(e.objs))
		e.objects[k] = n
		e.objs = append(e.objs, cabi.ProgObject{})
	}
	return n
}

// fileLock issues a lock of a file, in its turn as one that waits.
func (e *emitter) fileLock(r *trace.Record, p *pending, dur int64, turned bool) {
	if p.Code == cabi.OpFlock {
		p.Obj, p.A = e.lockFd(r), r.F[0]
		if turned {
			p.A &^= lockNB
		}
		e.put(p)
		return
	}
	at := len(e.window)
	e.fcntl(r, p, dur, uint32(e.fdOf(r)))
	if w := &e.window[at]; turned && (w.A>>8 == fSetlk || w.A>>8 == fOfdSetlk) {
		w.A += 1 << 8 // the one that waits
	}
}

func kindOfLock(code uint16) uint16 {
	switch code {
	case cabi.OpLock, cabi.OpTrylock, cabi.OpTimedlock:
		return cabi.ObjMutex
	case cabi.OpSpinlock, cabi.OpSpintry:
		return cabi.ObjSpin
	case cabi.OpSemwait, cabi.OpSemtry, cabi.OpSemtimed, cabi.OpSempost:
		return cabi.ObjSem
	}
	return cabi.ObjRwlock
}

package demand

import (
	"encoding/binary"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// At is when the recorded run was in an operation, or in an event that became none of its own: the same as the log of an issue says,
// of home. They come thread by thread, in the thread's own order.
type At struct {
	Begin  uint64 // ns since the run began
	End    uint64
	Op     uint32 // NoOp: it became none
	Thread uint32
	What   uint32 // which of Info.Whats; 0: not known
	Code   uint16 // of the operation, or AtWait, AtPoll, AtSignal
	Share  uint16 // of 65535: how much of the time since the thread's event before it ran
}

// Codes of what is issued otherwise than it was done at home.
const (
	AtWait = 1100 // for a condition; Op is the OpWait that stands for it, where it has one
	AtPoll = 1101 // for descriptors to be ready
	NoOp   = ^uint32(0)

	AtSignal = 1102 // for a signal, as of a child that ended
)

// AtSize is how many bytes an At takes in what Options.Home is given.
const AtSize = 32

// What is what an operation is in the words of home.
type What struct {
	Proc *trace.Proc
	Row  *trace.Row
	PC   uint64
	Obj  trace.Object
	Kind uint64 // cabi.Obj…, of the object
}

// whatsMax bounds how many are told apart; those after them are not known.
const whatsMax = 1 << 20

// atWriter writes where the recorded run was.
type atWriter struct {
	b      *behind
	clock  *trace.Clock
	info   *Info
	kinds  map[trace.Object]objKind
	known  map[What]uint32
	recent [1 << 10]struct {
		what What
		n    uint32
	}
	wait uint32 // the last wait that was issued
}

func newAtWriter(c *compiler) *atWriter {
	c.info.Whats = make([]What, 1)
	for i := range c.files.list {
		c.info.Paths = append(c.info.Paths, c.files.list[i].path)
	}
	return &atWriter{b: newBehind(c.opt.Home), clock: &c.t.Clock, info: c.info, kinds: c.kinds, known: map[What]uint32{}, wait: NoOp}
}

// end ends it: by now all objects have their numbers.
func (w *atWriter) end(c *compiler) error {
	c.info.Objects = make([]What, len(c.objs))
	for k, n := range c.objects {
		c.info.Objects[n] = What{Obj: k.obj, Kind: c.kinds[k.obj].kind}
	}
	return w.b.end()
}

// what numbers what an event is.
func (w *atWriter) what(th *trace.Thread, r *trace.Record) uint32 {
	x := What{th.Proc, r.Row, r.PC, r.Obj, 0}
	slot := &w.recent[(r.PC^r.PC>>10^r.Obj.Num*31^uint64(r.Obj.UID)*7)%uint64(len(w.recent))]
	if slot.n != 0 && slot.what == x {
		return slot.n
	}
	n, ok := w.known[x]
	if !ok {
		if len(w.info.Whats) >= whatsMax {
			return 0
		}
		n = uint32(len(w.info.Whats))
		w.known[x] = n
		y := x
		y.Kind = w.kinds[x.Obj].kind
		w.info.Whats = append(w.info.Whats, y)
	}
	slot.what, slot.n = x, n
	return n
}

// put writes where home was in what is issued as op. Only what is of an event, or of a reading of the clock, has a time.
func (w *atWriter) put(p *pending, op uint32, thread uint32) {
	if p.Code == cabi.OpWait && op != NoOp {
		w.wait = op
	}
	if p.begin == 0 {
		return
	}
	code := p.Code
	if p.as != 0 {
		code = p.as
		if code == AtWait && p.ofLoop {
			op = w.wait
		}
	}
	share, begin := uint16(65535), max(w.clock.Since(p.begin), 0)
	if lost := p.was - max(p.gap, 0); p.cut && lost > 0 {
		begin = max(begin-lost, 0)
		if code == cabi.OpCPU {
			code = AtSignal
		}
	} else if p.was > 0 {
		share = uint16(max(min(p.gap, p.was), 0) * 65535 / p.was)
	}
	b, err := w.b.room(AtSize)
	if err != nil {
		return // end says so
	}
	le := binary.LittleEndian
	le.PutUint64(b, uint64(begin))
	le.PutUint64(b[8:], uint64(max(w.clock.Since(p.end), 0)))
	le.PutUint32(b[16:], op)
	le.PutUint32(b[20:], thread)
	le.PutUint32(b[24:], p.what)
	le.PutUint16(b[28:], code)
	le.PutUint16(b[30:], share)
}

// ReadAt reads an At.
func ReadAt(b []byte) At {
	le := binary.LittleEndian
	return At{Begin: le.Uint64(b), End: le.Uint64(b[8:]), Op: le.Uint32(b[16:]), Thread: le.Uint32(b[20:]), What: le.Uint32(b[24:]),
		Code: le.Uint16(b[28:]), Share: le.Uint16(b[30:])}
}

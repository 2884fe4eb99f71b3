package trace

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"prophet/cabi"
)

// TagEvent is the Tag of a Record that is an event.
const TagEvent = 0

// Object names what an event acts on: the thread that saw it first, and its number there. The zero Object is none.
type Object struct {
	UID uint32
	Num uint64
}

// None reports whether there is no object.
func (o Object) None() bool { return o == Object{} }

// Field is one field of a tail or of a structured input.
type Field struct {
	FieldSpec
	Num  uint64 // signed kinds: uint64(int64)
	Text []byte
}

// Record is one record of a thread. Which fields count depends on Tag: of an event all down to Fields; of a control
// record Begin, End, Nums (its numbers in the order cabi states, signed ones as uint64(int64)) and Text.
type Record struct {
	Tag    uint8 // TagEvent, or a tag of cabi
	Note   uint8
	Mask   uint8
	Timed  bool // the event has an end of its own
	Call   uint16
	Row    *Row // nil when this version does not know the call
	Thread *Thread
	N      uint64 // of an event: its number in the thread; otherwise that of the event before it, plus one
	Begin  uint64 // ticks
	End    uint64
	PC     uint64
	Obj    Object
	Ret    int64
	F      [3]int64
	Seq    uint64
	Tail   []byte
	Fields []Field
	Nums   [8]uint64
	Text   [2][]byte
	Stack  []uint64 // of TagStack and TagSample: return addresses, innermost first; of TagSample the first is where the thread was
	Offset int      // in the chunk's payload
	slot   uint16   // of an event: number of its key
}

// Attached reports whether the record belongs to the event right before it.
func (r *Record) Attached() bool {
	switch r.Tag {
	case cabi.TagData, cabi.TagHash, cabi.TagBigData, cabi.TagInput, cabi.TagFrames, cabi.TagStack:
		return true
	}
	return false
}

// key is what a thread's number for a call, a call site and an object stands for, and what its next event is
// predicted to be.
type key struct {
	row  *Row
	pc   uint64
	obj  Object
	ret  int64
	f    [3]int64
	seq  uint64
	call uint16
	set  bool
	pass bool // its events are passed over
}

// Decoder takes the payload of one chunk apart. It is made ready by Reset, is not safe for concurrent use, and
// allocates only where a chunk is larger or has more keys than those before.
type Decoder struct {
	c      cursor
	now    uint64 // time cursor, ticks
	keys   []key
	lastPC uint64
	path   []byte // the path before, in arena or spare
	lostP  bool   // the path before is not known: a call of a newer version had a tail
	arena  []byte
	spare  []byte
	inputs int  // structured inputs seen since the event
	row    *Row // of the last event
	events uint64
	why    string
	fields []Field
	only   cabi.ClassSet // pass over events of other classes that have no tail; 0: over none
	passed uint64        // since it was last asked
	frames []uint64      // of the stacks that the chunk has defined
	stacks []int         // where each ends in frames
}

// Reset begins a payload. buf must be len(payload)+slack long; see padded.
func (d *Decoder) reset(buf []byte, n int, base uint64) {
	d.c = cursor{b: buf, end: n}
	d.now = base
	d.events = 0
	d.row = nil
	d.why = ""
	d.forget()
}

// Reset begins a payload, which is copied.
func (d *Decoder) Reset(payload []byte, base uint64) {
	b := padded(d.c.b, len(payload))
	copy(b, payload)
	d.reset(b, len(payload), base)
}

// forget drops all that predicts.
func (d *Decoder) forget() {
	d.keys = d.keys[:0]
	d.lastPC = 0
	d.path = d.path[:0]
	d.lostP = false
	d.frames = d.frames[:0]
	d.stacks = d.stacks[:0]
}

// Next reads one record into r; false at the end and at damage, which Err tells apart. r.Thread and r.N are left
// alone.
func (d *Decoder) Next(r *Record) bool {
	c := &d.c
	if c.p >= c.end || d.why != "" {
		return false
	}
again:
	if d.only != 0 {
		if d.skim(); c.p >= c.end {
			return false
		}
	}
	r.Offset = c.p
	x := c.v()
	if x-cabi.FirstKey < uint64(len(d.keys)) {
		if k := &d.keys[x-cabi.FirstKey]; k.set {
			if !k.pass {
				r.slot = uint16(x - cabi.FirstKey)
				return d.event(r, k)
			}
			d.over(k)
			if c.p < c.end && !c.bad {
				goto again
			}
			return c.over() && d.fail("")
		}
	}
	if x >= cabi.FirstKey {
		return d.fail("event of key %d, which the chunk does not define", x-cabi.FirstKey)
	}
	return d.control(r, x)
}

// Err returns why Next returned false: "" at the end of the payload.
func (d *Decoder) Err() string { return d.why }

// skim passes over events, as over does, while they are of the shape that nearly all have whose class makes traces long: a key of
// up to two bytes, a time of up to three, and behind that no more than a place of up to two.
func (d *Decoder) skim() {
	c := &d.c
	b, p, end, keys := c.b, c.p, c.end, d.keys
	var n, now uint64
	var last *key
	for p < end {
		x := binary.LittleEndian.Uint64(b[p:])
		no, q := x>>1&0x7f, p+1
		if x&1 == 0 {
			if x&2 == 0 {
				break
			}
			no, q = x>>2&0x3fff, p+2
			x >>= 8
		}
		x >>= 8
		no -= cabi.FirstKey
		if no >= uint64(len(keys)) {
			break
		}
		k := &keys[no]
		if !k.pass {
			break
		}
		size := uint(bits.TrailingZeros32(uint32(x)|8)) + 1
		if size > 3 {
			break
		}
		t := x >> size & (1<<(7*size) - 1)
		q += int(size)
		if t&cabi.EvMore != 0 {
			x >>= 8 * size
			if x&0xff != cabi.MaskSeq || x&(3<<8) == 0 {
				break
			}
			q += 3 - int(x>>8&1)
		}
		if q > end {
			break
		}
		p, last = q, k
		now += t >> 1
		n++
	}
	if n > 0 {
		c.p = p
		d.now += now
		d.passed += n
		d.events += n
		d.row, d.inputs = last.row, 0
	}
}

// over passes over an event. Its key predicts nothing that is looked at, so nothing of it is kept but the time.
func (d *Decoder) over(k *key) {
	c := &d.c
	t := c.v()
	d.now += t >> 1
	d.passed++
	if t&cabi.EvMore != 0 {
		m := c.byte()
		if m&cabi.MaskDuration != 0 {
			d.now += c.v()
		}
		for n := bits.OnesCount8(m & (cabi.MaskRet | cabi.MaskF1 | cabi.MaskF2 | cabi.MaskF3 | cabi.MaskSeq)); n > 0; n-- {
			c.v()
		}
		if m&cabi.MaskTail != 0 {
			c.s()
		}
		if m&cabi.MaskNote != 0 {
			c.v()
		}
	}
	d.row = k.row
	d.inputs = 0
	d.events++
}

func (d *Decoder) fail(format string, args ...any) bool {
	if d.c.over() {
		d.why = "record runs over the end of its chunk"
	} else {
		d.why = fmt.Sprintf(format, args...)
	}
	return false
}

func (d *Decoder) event(r *Record, k *key) bool {
	c := &d.c
	t := c.v()
	r.Tag = TagEvent
	r.Begin = d.now + t>>1
	r.End = r.Begin
	r.Mask, r.Note, r.Timed = 0, 0, false
	if r.Fields != nil {
		r.Fields = nil
		r.Tail = nil
	}
	d.row = k.row
	d.inputs = 0
	r.Seq = nextSeq(k.seq)
	if t&cabi.EvMore != 0 && !d.more(r, k) {
		return false
	}
	d.now = r.End
	if c.bad || c.p > c.end {
		return d.fail("")
	}
	r.Row, r.Call, r.PC, r.Obj = k.row, k.call, k.pc, k.obj
	r.Ret, r.F = k.ret, k.f
	if r.Seq != 0 {
		k.seq = r.Seq
	}
	d.events++
	return true
}

// nextSeq is the place that a key predicts: the one after its last, none before its first.
func nextSeq(last uint64) uint64 {
	if last == 0 {
		return 0
	}
	return last + 1
}

// more reads the mask and what it names. r.Seq is as predicted when it is called.
func (d *Decoder) more(r *Record, k *key) bool {
	c := &d.c
	m := c.byte()
	r.Mask = m
	if m&cabi.MaskDuration != 0 {
		r.Timed = true
		r.End += c.v()
	}
	if m&cabi.MaskRet != 0 {
		k.ret += c.z()
	}
	if m&(cabi.MaskF1|cabi.MaskF2|cabi.MaskF3|cabi.MaskSeq) != 0 {
		if m&cabi.MaskF1 != 0 {
			k.f[0] += c.z()
		}
		if m&cabi.MaskF2 != 0 {
			k.f[1] += c.z()
		}
		if m&cabi.MaskF3 != 0 {
			k.f[2] += c.z()
		}
		if m&cabi.MaskSeq != 0 {
			r.Seq += uint64(c.z())
		}
	}
	if m&cabi.MaskTail != 0 {
		r.Tail = c.s()
	}
	if m&cabi.MaskNote != 0 {
		r.Note = uint8(c.v())
	}
	if m&cabi.MaskTail != 0 && !c.over() {
		return d.tail(r, k.row)
	}
	return true
}

// tail takes r.Tail apart by the row's steps.
func (d *Decoder) tail(r *Record, row *Row) bool {
	if row == nil {
		d.lostP = true // it may have held paths
		return true
	}
	s := small{b: r.Tail}
	out := d.fields[:0]
	arena := d.spare[:0]
	cut := r.Note&cabi.NoteCut != 0
	for i := range row.Tail {
		if len(s.b) == 0 {
			break // a row may leave its last fields out
		}
		f := Field{FieldSpec: row.Tail[i]}
		switch f.Kind {
		case FieldPath:
			shared := s.v()
			rest := s.s()
			if shared > uint64(len(d.path)) {
				if !d.lostP {
					return d.fail("path of %s shares %d bytes with one of %d", row.Name, shared, len(d.path))
				}
				shared = uint64(len(d.path))
			}
			at := len(arena)
			arena = append(arena, d.path[:shared]...)
			arena = append(arena, rest...)
			d.path = arena[at:len(arena):len(arena)]
			f.Text = d.path
		case FieldStr:
			f.Text = s.s()
		case FieldSnum:
			f.Num = uint64(s.z())
		default:
			f.Num = s.v()
		}
		if s.bad {
			break
		}
		out = append(out, f)
	}
	d.spare, d.arena = d.arena, arena
	d.fields = out
	r.Fields = out
	if r.Fields == nil {
		r.Fields = []Field{}
	}
	if s.bad && !cut {
		return d.fail("tail of %s does not match its row", row.Name)
	}
	if len(s.b) > 0 && !cut {
		return d.fail("tail of %s has %d bytes more than its row says", row.Name, len(s.b))
	}
	return true
}

func (d *Decoder) control(r *Record, tag uint64) bool {
	c := &d.c
	r.Tag = uint8(tag)
	r.Begin, r.End = d.now, d.now
	r.Row, r.Call, r.Note = nil, 0, 0
	n := &r.Nums
	switch tag {
	case cabi.TagKey:
		return d.defineKey(r)
	case cabi.TagObject:
		n[0], n[1], n[2], n[3] = c.v(), c.v(), c.v(), c.v()
		r.Text[0] = c.s()
	case cabi.TagCPU:
		d.step(r, c.v())
		n[0] = c.v()
	case cabi.TagOurs:
		was := d.now
		d.step(r, c.v())
		if n[0] = c.v(); n[0] == 0 {
			n[0] = d.now - was
		}
	case cabi.TagTime:
		d.now = c.v()
		r.Begin, r.End = d.now, d.now
	case cabi.TagSignal:
		d.step(r, c.v())
		n[0], n[1], n[2], n[3] = c.v(), c.v(), uint64(c.z()), c.v()
		d.forget()
	case cabi.TagSigRet:
		d.step(r, c.v())
		n[0] = c.v()
		d.forget()
	case cabi.TagData:
		r.Text[0] = c.s()
		r.Row = d.row
	case cabi.TagHash:
		r.Text[0] = c.bytes(8)
		r.Row = d.row
	case cabi.TagBigData:
		n[0], n[1] = c.v(), c.v()
		r.Row = d.row
	case cabi.TagInput:
		r.Text[0] = c.s()
		r.Row = d.row
		n[0] = uint64(d.inputs)
		d.inputs++
	case cabi.TagThread:
		n[0], n[1], n[2], n[3], n[4] = c.v(), c.v(), c.v(), c.v(), c.v()
	case cabi.TagProc:
		n[0], n[1], n[2], n[3], n[4], n[5], n[6] = c.v(), c.v(), c.v(), c.v(), c.v(), c.v(), c.v()
		r.Text[0] = c.s()
	case cabi.TagModule:
		n[0], n[1], n[2] = c.v(), c.v(), c.v()
		r.Text[0] = c.s()
		r.Text[1] = c.s()
	case cabi.TagRSS:
		n[0] = c.v()
	case cabi.TagMark:
		d.step(r, c.v())
		n[0] = c.v()
		r.Text[0] = c.s()
	case cabi.TagLeft:
		d.step(r, c.v())
		n[0], n[1] = c.v(), c.v()
	case cabi.TagLost:
		n[0], n[1] = c.v(), c.v()
	case cabi.TagLevel:
		d.now = c.v()
		r.Begin, r.End = d.now, d.now
		n[0] = c.v()
	case cabi.TagExit:
		d.step(r, c.v())
		n[0], n[1], n[2], n[3], n[4], n[5], n[6] = c.v(), uint64(c.z()), c.v(), c.v(), c.v(), c.v(), c.v()
	case cabi.TagKept:
		n[0], n[1], n[2], n[3] = c.v(), c.v(), c.v(), c.v()
		r.Text[0] = c.s()
	case cabi.TagWas:
		n[0], n[1], n[2], n[3], n[4], n[5] = c.v(), c.v(), c.v(), c.v(), c.v(), c.v()
		r.Text[0] = c.s()
	case cabi.TagUnseen:
		n[0], n[1] = c.v(), c.v()
		r.Text[0] = c.s()
	case cabi.TagFork:
		d.step(r, c.v())
		n[0], n[1], n[2] = c.v(), c.v(), c.v()
	case cabi.TagClock:
		n[0], n[1], n[2] = c.v(), c.v(), c.v()
	case cabi.TagToken:
		n[0] = c.v()
		n[0], n[1] = n[0]>>3, n[0]&7
	case cabi.TagSigInfo:
		n[0], n[1], n[2], n[3] = c.v(), c.v(), c.v(), c.v()
	case cabi.TagPlace:
		n[0], n[1], n[2], n[3], n[4] = c.v(), c.v(), c.v(), c.v(), c.v()
	case cabi.TagFrames:
		n[0] = c.v()
		r.Text[0] = c.s()
		if !c.over() && !d.defineStack(r) {
			return false
		}
	case cabi.TagStack:
		n[0], n[1] = c.v(), c.v()
		return d.stack(r)
	case cabi.TagSample:
		d.step(r, c.v())
		n[0], n[1] = c.v(), c.v()
		return d.stack(r)
	default:
		return d.fail("record tag %d is not known", tag)
	}
	if c.over() {
		return d.fail("")
	}
	return true
}

// defineStack keeps a stack for those that name it. What holds for keys holds for stacks: a chunk has its own.
func (d *Decoder) defineStack(r *Record) bool {
	if r.Nums[0] != uint64(len(d.stacks)) {
		return d.fail("stack %d is defined where %d is next", r.Nums[0], len(d.stacks))
	}
	s := small{b: r.Text[0]}
	var pc uint64
	for n := 0; len(s.b) > 0; n++ {
		pc += uint64(s.z())
		if s.bad || n == cabi.FramesMax {
			return d.fail("stack %d does not parse", r.Nums[0])
		}
		d.frames = append(d.frames, pc)
	}
	d.stacks = append(d.stacks, len(d.frames))
	return true
}

// stack finds the stack that r names.
func (d *Decoder) stack(r *Record) bool {
	if d.c.over() {
		return d.fail("")
	}
	no := r.Nums[0]
	if no >= uint64(len(d.stacks)) {
		return d.fail("stack %d is named, which the chunk does not define", no)
	}
	from := 0
	if no > 0 {
		from = d.stacks[no-1]
	}
	r.Stack = d.frames[from:d.stacks[no]:d.stacks[no]]
	return true
}

// step moves the time cursor on by dt.
func (d *Decoder) step(r *Record, dt uint64) {
	d.now += dt
	r.Begin, r.End = d.now, d.now
}

func (d *Decoder) defineKey(r *Record) bool {
	c := &d.c
	no, call := c.v(), c.v()
	pc := d.lastPC + uint64(c.z())
	uid, num := c.v(), c.v()
	if c.over() {
		return d.fail("")
	}
	if no >= cabi.KeySlots {
		return d.fail("key number %d, of at most %d", no, cabi.KeySlots)
	}
	if call > 0xffff || uid > 0xffffffff {
		return d.fail("key %d names call %d and thread %d, which cannot be", no, call, uid)
	}
	for uint64(len(d.keys)) <= no {
		d.keys = append(d.keys, key{})
	}
	row := RowOf(call)
	d.keys[no] = key{row: row, pc: pc, obj: Object{uint32(uid), num}, call: uint16(call), set: true,
		pass: d.only != 0 && row != nil && len(row.Tail) == 0 && !d.only.Has(row.Class)}
	d.lastPC = pc
	r.Nums = [8]uint64{no, call, pc, uid, num}
	return true
}

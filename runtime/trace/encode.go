package trace

import "prophet/cabi"

// Encoder writes the records of one thread as the recorder does: for tests, for benchmarks and for chunks that
// commands add. It hands whole chunks to Out. Not safe for concurrent use.
type Encoder struct {
	Out  func(MemChunk) error
	head Header
	buf  []byte
	now  uint64
	keys map[encKey]*encState
	last uint64 // pc
	path []byte
	tail []byte
	err  error

	stacks map[string]uint64 // of the chunk, by their frames as written
	frames []byte
}

type encKey struct {
	call uint16
	pc   uint64
	obj  Object
}

type encState struct {
	no  uint64
	ret int64
	f   [3]int64
	seq uint64
}

// NewEncoder begins the stream of thread uid of process proc at this stamp.
func NewEncoder(uid, proc uint32, ticks uint64, out func(MemChunk) error) *Encoder {
	e := &Encoder{Out: out, now: ticks, head: Header{Kind: cabi.ChunkEvents, UID: uid, Proc: proc, Base: ticks}}
	e.keys = map[encKey]*encState{}
	return e
}

func (e *Encoder) forget() {
	clear(e.keys)
	clear(e.stacks)
	e.last = 0
	e.path = e.path[:0]
}

// Flush ends the chunk.
func (e *Encoder) Flush(flags uint16) error {
	if len(e.buf) == 0 || e.err != nil {
		return e.err
	}
	e.head.Flags = flags
	c := MemChunk{Header: e.head, Payload: e.buf}
	c.Seal(c.Payload)
	e.err = e.Out(c)
	e.buf = e.buf[:0]
	e.head.Seq++
	e.head.Base = e.now
	e.forget()
	return e.err
}

// Err is why a chunk could not be written.
func (e *Encoder) Err() error { return e.err }

func (e *Encoder) room() {
	if len(e.buf) > cabi.RingLimit || len(e.keys) >= cabi.KeySlots {
		e.Flush(0)
	}
}

// Event writes an event: of r Call, PC, Obj, Begin, End (when Timed), Ret, F, Seq, Tail and Note count. Tail is written
// as it is. Begin before the time cursor is moved up to it.
func (e *Encoder) Event(r *Record) {
	e.room()
	k := encKey{r.Call, r.PC, r.Obj}
	s := e.keys[k]
	if s == nil {
		s = &encState{no: uint64(len(e.keys))}
		e.keys[k] = s
		e.buf = AppendV(e.buf, cabi.TagKey)
		e.buf = AppendV(e.buf, s.no)
		e.buf = AppendV(e.buf, uint64(r.Call))
		e.buf = AppendZ(e.buf, int64(r.PC-e.last))
		e.buf = AppendV(e.buf, uint64(r.Obj.UID))
		e.buf = AppendV(e.buf, r.Obj.Num)
		e.last = r.PC
	}
	var mask byte
	set := func(bit byte, differs bool) {
		if differs {
			mask |= bit
		}
	}
	set(cabi.MaskRet, r.Ret != s.ret)
	set(cabi.MaskF1, r.F[0] != s.f[0])
	set(cabi.MaskF2, r.F[1] != s.f[1])
	set(cabi.MaskF3, r.F[2] != s.f[2])
	set(cabi.MaskSeq, r.Seq != nextSeq(s.seq))
	set(cabi.MaskTail, len(r.Tail) > 0)
	set(cabi.MaskNote, r.Note != 0)
	begin := max(r.Begin, e.now)
	set(cabi.MaskDuration, r.Timed)
	t := (begin - e.now) << 1
	if mask != 0 {
		t |= cabi.EvMore
	}
	b := AppendV(e.buf, cabi.FirstKey+s.no)
	b = AppendV(b, t)
	e.now = begin
	if mask != 0 {
		b = append(b, mask)
		if r.Timed {
			e.now = max(begin, r.End)
			b = AppendV(b, e.now-begin)
		}
		if mask&cabi.MaskRet != 0 {
			b = AppendZ(b, r.Ret-s.ret)
		}
		for i := range r.F {
			if mask&(cabi.MaskF1<<i) != 0 {
				b = AppendZ(b, r.F[i]-s.f[i])
			}
		}
		if mask&cabi.MaskSeq != 0 {
			b = AppendZ(b, int64(r.Seq-nextSeq(s.seq)))
		}
		if mask&cabi.MaskTail != 0 {
			b = AppendS(b, r.Tail)
		}
		if mask&cabi.MaskNote != 0 {
			b = AppendV(b, uint64(r.Note))
		}
	}
	e.buf = b
	s.ret, s.f = r.Ret, r.F
	if r.Seq != 0 {
		s.seq = r.Seq
	}
}

// Path appends a path to a tail as step `path` wants it.
func (e *Encoder) Path(tail []byte, path string) []byte {
	n := 0
	for n < len(path) && n < len(e.path) && path[n] == e.path[n] {
		n++
	}
	e.path = append(e.path[:0], path...)
	return AppendS(AppendV(tail, uint64(n)), path[n:])
}

// Copy writes a record that was read from another stream, at the times that r.Begin and r.End say; before the time cursor they are
// moved up to it. What only serves to read that stream (keys, times, stacks' definitions) is not for it.
func (e *Encoder) Copy(r *Record) {
	switch r.Tag {
	case TagEvent:
		e.room() // or the path before would be forgotten between the tail and the event
		if r.Fields != nil {
			e.tail = e.appendTail(e.tail[:0], r.Fields)
			r.Tail = e.tail
		}
		e.Event(r)
		return
	case cabi.TagStack:
		e.Stack(r.Nums[1], r.Stack)
		return
	}
	if !r.Attached() {
		e.room()
	}
	e.buf = AppendV(e.buf, uint64(r.Tag))
	n, s := 0, 0
	for _, what := range cabi.TagLayout[r.Tag] {
		switch what {
		case 'T':
			at := max(r.Begin, e.now)
			e.buf = AppendV(e.buf, at-e.now)
			e.now = at
		case 'V':
			e.buf = AppendV(e.buf, r.Nums[n])
			n++
		case 'Z':
			e.buf = AppendZ(e.buf, int64(r.Nums[n]))
			n++
		case 'S':
			e.buf = AppendS(e.buf, r.Text[s])
			s++
		case '8':
			e.buf = append(e.buf, r.Text[s]...)
			s++
		}
	}
	switch r.Tag {
	case cabi.TagSignal, cabi.TagSigRet:
		e.forget()
	}
}

// appendTail writes the fields of a tail.
func (e *Encoder) appendTail(b []byte, fields []Field) []byte {
	for i := range fields {
		f := &fields[i]
		switch f.Kind {
		case FieldPath:
			b = e.Path(b, string(f.Text))
		case FieldStr:
			b = AppendS(b, f.Text)
		case FieldSnum:
			b = AppendZ(b, int64(f.Num))
		default:
			b = AppendV(b, f.Num)
		}
	}
	return b
}

// Control writes a control record from its operands as cabi states them after the tag, already encoded.
func (e *Encoder) Control(tag uint64, operands []byte) {
	e.room()
	e.buf = append(AppendV(e.buf, tag), operands...)
	switch tag {
	case cabi.TagSignal, cabi.TagSigRet:
		e.forget()
	}
}

// At writes a control record that carries dt, at this stamp; operands follow dt.
func (e *Encoder) At(tag, ticks uint64, operands []byte) {
	ticks = max(ticks, e.now)
	e.room()
	e.buf = AppendV(AppendV(e.buf, tag), ticks-e.now)
	e.buf = append(e.buf, operands...)
	e.now = ticks
	switch tag {
	case cabi.TagSignal, cabi.TagSigRet:
		e.forget()
	}
}

// Stack writes that these return addresses, innermost first, led to the call site of the event before.
func (e *Encoder) Stack(bits uint64, pcs []uint64) {
	no := e.stack(pcs)
	e.buf = AppendV(e.buf, cabi.TagStack)
	e.buf = AppendV(e.buf, no)
	e.buf = AppendV(e.buf, bits)
}

// Sample writes that a timer of CPU time found the thread there at this stamp, after cpu ns of it.
func (e *Encoder) Sample(at, cpu uint64, pcs []uint64) {
	e.room()
	no := e.stack(pcs)
	at = max(at, e.now)
	e.buf = AppendV(AppendV(AppendV(AppendV(e.buf, cabi.TagSample), at-e.now), no), cpu)
	e.now = at
}

// stack defines a stack where the chunk does not have it yet, and returns its number.
func (e *Encoder) stack(pcs []uint64) uint64 {
	e.frames = e.frames[:0]
	var last uint64
	for _, pc := range pcs[:min(len(pcs), cabi.FramesMax)] {
		e.frames = AppendZ(e.frames, int64(pc-last))
		last = pc
	}
	no, ok := e.stacks[string(e.frames)]
	if !ok {
		if e.stacks == nil {
			e.stacks = map[string]uint64{}
		}
		no = uint64(len(e.stacks))
		e.stacks[string(e.frames)] = no
		e.buf = AppendV(e.buf, cabi.TagFrames)
		e.buf = AppendV(e.buf, no)
		e.buf = AppendS(e.buf, e.frames)
	}
	return no
}

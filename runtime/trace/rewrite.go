package trace

import (
	"fmt"

	"prophet/cabi"
)

// Edit is called with each record of a thread, in its order, keys and those that belong to an event included. It may
// change the numbers, the texts and the fields of r (of a key: the call site, r.Nums[2]) and says whether the record
// stays. What belongs to an event that does not stay goes with it.
type Edit func(r *Record) bool

// RewriteResult is what Rewrite did.
type RewriteResult struct {
	Events  uint64 // that stayed
	Records uint64 // the same, of all kinds
	Gone    uint64 // records that did not stay
	Damage  []error
	Damaged int
}

func (w *RewriteResult) add(err error) {
	if w.Damaged++; len(w.Damage) < maxDamage {
		w.Damage = append(w.Damage, err)
	}
}

// Part is what becomes of one thread.
type Part struct {
	Edit Edit                  // nil: nothing stays
	Upto uint64                // nothing stays that is behind the event of this number, counted from 1, and does not belong to it; 0: no such number
	Last func(r *Record) bool  // but for what it says of records between that event and the next one; nil: nothing
	Head func(h *Header)       // may change the number and the flags of a chunk that is about to be written; nil: they stay
	Base func(x uint64) uint64 // what becomes of stamps; nil: they stay. It must grow with x
	Data uint64                // added to the numbers of data chunks
	UID  uint32                // added to the thread's number, in what is not records: those are Edit's
	Proc uint32                // and to its process's
}

// Rewrite writes the trace's chunks to w, one for one, with what edit makes of each record. Nothing is copied that was
// not taken apart: bytes that no record explains are left out and told as damage. Data chunks stay when the record that
// names them does. Kept files and meta.json are the caller's.
func (t *Trace) Rewrite(w *Writer, edit func(th *Thread) Edit, prog Progress) (*RewriteResult, error) {
	return t.RewriteParts(w, func(th *Thread) Part { return Part{Edit: edit(th)} }, prog)
}

// RewriteParts is Rewrite, with more to say about each thread.
func (t *Trace) RewriteParts(w *Writer, part func(th *Thread) Part, prog Progress) (*RewriteResult, error) {
	res := &RewriteResult{}
	var all, done int64
	threads := t.Threads
	for _, th := range threads {
		all += th.Bytes
	}
	if t.Run != nil {
		threads = append(threads[:len(threads):len(threads)], t.Run)
	}
	rw := rewriter{t: t, w: w, res: res}
	for _, th := range threads {
		rw.part, rw.events, rw.past = part(th), 0, false
		for i := range th.chunks {
			if rw.part.Edit == nil || rw.past {
				break
			}
			if err := rw.chunk(th, &th.chunks[i]); err != nil {
				return res, err
			}
			if done += int64(th.chunks[i].len) + cabi.ChunkHeader; prog != nil {
				prog(min(done, all), all)
			}
		}
	}
	return res, w.Flush()
}

// rewriter is the state of Rewrite: of one chunk, as nothing outlives it.
type rewriter struct {
	t    *Trace
	w    *Writer
	res  *RewriteResult
	d    Decoder
	buf  []byte // the chunk read
	out  []byte // the one written
	tail []byte
	data []byte
	path []byte
	keys [cabi.KeySlots]rewriteKey
	now  uint64
	pc   uint64
	on   bool // the last event stayed
	skip bool // and a structured result of it did not

	part   Part
	events uint64 // of the thread, so far
	past   bool   // its Upto
}

// rewriteKey is what the next event of a key is predicted to be, as its reader will.
type rewriteKey struct {
	ret int64
	f   [3]int64
	seq uint64
	set bool
}

func (rw *rewriter) forget() {
	clear(rw.keys[:])
	rw.pc = 0
	rw.path = rw.path[:0]
}

func (rw *rewriter) stamp(x uint64) uint64 {
	if rw.part.Base == nil {
		return x
	}
	return rw.part.Base(x)
}

// beyond reports whether a record is past the last event that stays of its thread. The next event ends the thread.
func (rw *rewriter) beyond(r *Record) bool {
	upto := rw.part.Upto
	if upto == 0 {
		return false
	}
	if r.Tag == TagEvent {
		rw.events++
	}
	rw.past = rw.past || rw.events > upto
	switch {
	case rw.past:
		return true
	case rw.events < upto || r.Tag == TagEvent || r.Tag == cabi.TagKey:
		return false
	case r.Attached() && r.Tag != cabi.TagFrames && r.Tag != cabi.TagStack:
		return false
	}
	return rw.part.Last == nil || !rw.part.Last(r)
}

func (rw *rewriter) chunk(th *Thread, ref *chunkRef) error {
	b, err := rw.t.src.load(ref, rw.buf)
	if err != nil {
		if !IsDamage(err) {
			return err
		}
		rw.res.add(err)
		return nil
	}
	rw.buf = b
	rw.d.reset(b, int(ref.len), ref.base)
	rw.out = rw.out[:0]
	rw.now, rw.on, rw.skip = rw.stamp(ref.base), false, false
	base := rw.now
	rw.forget()
	var r Record
	r.Thread = th
	for rw.d.Next(&r) && !rw.past {
		if rw.beyond(&r) {
			continue
		}
		r.Begin, r.End = rw.stamp(r.Begin), rw.stamp(r.End)
		if err := rw.record(&r); err != nil {
			return err
		}
	}
	if why := rw.d.Err(); why != "" {
		rw.res.add(rw.t.damage(ref, r.Offset, why))
	}
	if len(rw.out) == 0 && rw.part.Upto != 0 {
		return nil
	}
	head := rw.header(ref)
	head.Base = base
	if rw.part.Head != nil {
		rw.part.Head(&head)
	}
	return rw.w.Put(MemChunk{head, rw.out})
}

func (rw *rewriter) record(r *Record) error {
	stays := rw.part.Edit(r)
	if r.Attached() && r.Tag != cabi.TagFrames {
		stays = stays && rw.on && !(rw.skip && r.Tag == cabi.TagInput)
		rw.skip = rw.skip || r.Tag == cabi.TagInput && !stays
	}
	at := len(rw.out)
	switch {
	case r.Tag == TagEvent:
		rw.on, rw.skip = stays && rw.keys[r.slot].set, false
		if stays = rw.on; stays {
			rw.event(r, &rw.keys[r.slot])
		}
	case r.Tag == cabi.TagKey:
		rw.keys[r.Nums[0]] = rewriteKey{set: stays}
		if stays {
			b := AppendV(rw.out, cabi.TagKey)
			b = AppendV(AppendV(b, r.Nums[0]), r.Nums[1])
			b = AppendZ(b, int64(r.Nums[2]-rw.pc))
			rw.out = AppendV(AppendV(b, r.Nums[3]), r.Nums[4])
			rw.pc = r.Nums[2]
		}
	case stays:
		rw.control(r)
		if r.Tag == cabi.TagBigData {
			if err := rw.copyData(r); err != nil {
				return err
			}
		}
	}
	switch r.Tag {
	case cabi.TagSignal, cabi.TagSigRet, cabi.TagFrames:
		// The first two make a reader forget what predicts, the third counts: what follows cannot be read without them.
		if !stays {
			return fmt.Errorf("record %d of thread %s: one of tag %d cannot be left out", r.N, r.Thread.Name, r.Tag)
		}
		if r.Tag != cabi.TagFrames {
			rw.forget()
		}
	}
	if len(rw.out) > cabi.ChunkMax {
		rw.out = rw.out[:at]
		return fmt.Errorf("a chunk of thread %s has grown to more than %d bytes", r.Thread.Name, cabi.ChunkMax)
	}
	if !stays {
		rw.res.Gone++
		return nil
	}
	rw.res.Records++
	if r.Tag == TagEvent {
		rw.res.Events++
	}
	return nil
}

func (rw *rewriter) event(r *Record, k *rewriteKey) {
	rw.encodeTail(r)
	var mask byte
	set := func(bit byte, differs bool) {
		if differs {
			mask |= bit
		}
	}
	set(cabi.MaskDuration, r.Timed)
	set(cabi.MaskRet, r.Ret != k.ret)
	set(cabi.MaskF1, r.F[0] != k.f[0])
	set(cabi.MaskF2, r.F[1] != k.f[1])
	set(cabi.MaskF3, r.F[2] != k.f[2])
	set(cabi.MaskSeq, r.Seq != nextSeq(k.seq))
	set(cabi.MaskTail, len(rw.tail) > 0)
	set(cabi.MaskNote, r.Note != 0)
	x := (r.Begin - rw.now) << 1
	if mask != 0 {
		x |= cabi.EvMore
	}
	b := AppendV(AppendV(rw.out, cabi.FirstKey+uint64(r.slot)), x)
	if mask != 0 {
		b = append(b, mask)
		if r.Timed {
			b = AppendV(b, r.End-r.Begin)
		}
		if mask&cabi.MaskRet != 0 {
			b = AppendZ(b, r.Ret-k.ret)
		}
		for i := range r.F {
			if mask&(cabi.MaskF1<<i) != 0 {
				b = AppendZ(b, r.F[i]-k.f[i])
			}
		}
		if mask&cabi.MaskSeq != 0 {
			b = AppendZ(b, int64(r.Seq-nextSeq(k.seq)))
		}
		if mask&cabi.MaskTail != 0 {
			b = AppendS(b, rw.tail)
		}
		if mask&cabi.MaskNote != 0 {
			b = AppendV(b, uint64(r.Note))
		}
	}
	rw.out, rw.now = b, r.End
	k.ret, k.f = r.Ret, r.F
	if r.Seq != 0 {
		k.seq = r.Seq
	}
}

// encodeTail makes rw.tail of the event's fields.
func (rw *rewriter) encodeTail(r *Record) {
	b := rw.tail[:0]
	for i := range r.Fields {
		f := &r.Fields[i]
		switch f.Kind {
		case FieldPath:
			n := 0
			for n < len(f.Text) && n < len(rw.path) && f.Text[n] == rw.path[n] {
				n++
			}
			b = AppendS(AppendV(b, uint64(n)), f.Text[n:])
			rw.path = append(rw.path[:0], f.Text...)
		case FieldStr:
			b = AppendS(b, f.Text)
		case FieldSnum:
			b = AppendZ(b, int64(f.Num))
		default:
			b = AppendV(b, f.Num)
		}
	}
	rw.tail = b
}

// control writes a control record as cabi.TagLayout has it.
func (rw *rewriter) control(r *Record) {
	b := AppendV(rw.out, uint64(r.Tag))
	if r.Tag == cabi.TagToken {
		rw.out = AppendV(b, r.Nums[0]<<3|r.Nums[1])
		return
	}
	n, s := 0, 0
	for _, what := range cabi.TagLayout[r.Tag] {
		switch what {
		case 'T':
			b = AppendV(b, r.Begin-rw.now)
			rw.now = r.Begin
		case 'A':
			b = AppendV(b, r.Begin)
			rw.now = r.Begin
		case 'V':
			v := r.Nums[n]
			if n == 0 && r.Tag == cabi.TagBigData {
				v += rw.part.Data
			}
			b = AppendV(b, v)
			n++
		case 'Z':
			b = AppendZ(b, int64(r.Nums[n]))
			n++
		case 'S':
			b = AppendS(b, r.Text[s])
			s++
		case '8':
			b = append(b, r.Text[s]...)
			s++
		}
	}
	rw.out = b
}

func (rw *rewriter) header(ref *chunkRef) Header {
	h := ref.header()
	h.UID, h.Proc = h.UID+rw.part.UID, h.Proc+rw.part.Proc
	return h
}

func (rw *rewriter) copyData(r *Record) error {
	ref := rw.t.findData(r.Thread.UID, r.Nums[0])
	if ref == nil {
		return nil // the reader of either trace will be told
	}
	b, err := rw.t.src.load(ref, rw.data)
	if err != nil {
		if !IsDamage(err) {
			return err
		}
		rw.res.add(err)
		return nil
	}
	rw.data = b
	head := rw.header(ref)
	head.Seq += rw.part.Data
	return rw.w.Put(MemChunk{head, b[:ref.len]})
}

package trace

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"prophet/cabi"
)

// The columns of an events frame. Records of one kind of call lie side by side, each field in a column of its own for
// each context (call and call site), because what a field will be depends on little else; the entropy coder of
// zstd then has one narrow distribution a column. What this buys is measured in TestPackedSize.
const (
	colHeads  = iota // chunk headers
	colOps           // what each record is: a control tag, or 32 + the triple (call, site, object) of an event
	colKeyNo         // of TagKey: key number, 0 when the next one
	colKeyRef        // the triple it defines
	colCall          // a new triple's call, …
	colPC            // … site, as a difference to the one before
	colUID           // … object
	colNum
	colDt     // time since the event before: see putTime
	colDtMan  // its mantissa
	colDtBits // its noise
	colDur
	colDurMan
	colDurBits
	colMask // 0: none
	colRet
	colF1
	colF2
	colF3
	colSeq
	colTail
	colNote
	colCtl // operands of control records, context is the tag
	colRaw // payloads of chunks that are not taken apart
	colEnd
)

// operands is what follows each control tag: V a varint of any kind, S a string, 8 eight bytes. A key's are columns of
// their own.
var operands = func() (o [cabi.TagLimit]string) {
	for tag, layout := range cabi.TagLayout {
		if tag != cabi.TagKey {
			o[tag] = strings.NewReplacer("T", "V", "A", "V", "Z", "V").Replace(layout)
		}
	}
	return o
}()

var errPacked = errors.New("packed frame does not parse")

type triple struct {
	pc   uint64
	obj  Object
	call uint32
	ctx  uint32
}

type ctxKey struct {
	pc   uint64
	call uint32
}

// frameState is what packing and unpacking a frame keep in step.
type frameState struct {
	cols    [colEnd][][]byte // by context
	triples []triple
	ids     map[triple]uint32 // packing only; ctx is 0 in its keys
	ctxs    map[ctxKey]uint32
	keyTri  [cabi.KeySlots]uint32 // triple+1 of a key
	triKey  []uint32              // key+1 of a triple
	nkeys   uint64
	lastPC  uint64 // of the chunk
	prevPC  uint64 // of the frame
	prev    Header
	bit     [colEnd]bitWriter
}

type bitWriter struct {
	acc uint64
	n   uint
}

func newFrame() *frameState {
	return &frameState{ids: map[triple]uint32{}, ctxs: map[ctxKey]uint32{}}
}

func (f *frameState) col(kind int, ctx uint32) *[]byte {
	c := &f.cols[kind]
	for uint32(len(*c)) <= ctx {
		*c = append(*c, nil)
	}
	return &(*c)[ctx]
}

func (f *frameState) putV(kind int, ctx uint32, v uint64) {
	c := f.col(kind, ctx)
	*c = AppendV(*c, v)
}

func (f *frameState) put(kind int, ctx uint32, b byte) {
	c := f.col(kind, ctx)
	*c = append(*c, b)
}

// Times below direct are one symbol; longer ones are direct + their length in bits, with the 8 bits below the leading one in the
// mantissa column and the rest, which is noise, bit by bit.
const direct = 191

func (f *frameState) putTime(kind int, ctx uint32, v uint64) {
	if v < direct {
		f.put(kind, ctx, byte(v))
		return
	}
	n := uint(bits.Len64(v)) // 8 … 64
	f.put(kind, ctx, byte(direct+n))
	v &^= 1 << (n - 1)
	if n <= 9 {
		f.put(kind+1, ctx, byte(v))
		return
	}
	f.put(kind+1, ctx, byte(v>>(n-9)))
	f.putBits(kind+2, v&(1<<(n-9)-1), n-9)
}

func (f *frameState) putBits(kind int, v uint64, n uint) {
	w := &f.bit[kind]
	if n > 32 {
		f.putBits(kind, v&0xffffffff, 32)
		v >>= 32
		n -= 32
	}
	w.acc |= v << w.n
	w.n += n
	for w.n >= 8 {
		f.put(kind, 0, byte(w.acc))
		w.acc >>= 8
		w.n -= 8
	}
}

func (f *frameState) reset() {
	clear(f.keyTri[:])
	for i := range f.triKey {
		f.triKey[i] = 0
	}
	f.nkeys = 0
	f.lastPC = 0
}

// exact reads a varint that AppendV would write the same way.
func (c *cursor) exact() uint64 {
	p := c.p
	v := c.v()
	if !c.over() && c.p-p != lenV(v) {
		c.bad = true
	}
	return v
}

// add takes a chunk apart; ok tells whether its records could be written back byte for byte. Otherwise it is kept raw.
func (f *frameState) add(h Header, payload []byte) {
	apart := f.trial(payload)
	f.heads(h, apart)
	if !apart {
		c := f.col(colRaw, 0)
		*c = append(*c, payload...)
		return
	}
	f.reset()
	cur := newCursor(payload)
	f.split(&cur)
	f.put(colOps, 0, 0)
}

// heads writes a chunk's header as differences to the one before.
func (f *frameState) heads(h Header, apart bool) {
	p := &f.prev
	var how uint64
	if apart {
		how = 1
	}
	f.putV(colHeads, 0, how|uint64(h.Flags)<<1)
	f.putV(colHeads, 0, zig(int64(h.UID)-int64(p.UID)))
	if h.UID != p.UID {
		p.Seq = ^uint64(0)
	}
	f.putV(colHeads, 0, zig(int64(h.Seq-p.Seq-1)))
	f.putV(colHeads, 0, zig(int64(h.Base-p.Base)))
	f.putV(colHeads, 0, zig(int64(h.Proc)-int64(p.Proc)))
	f.putV(colHeads, 0, uint64(h.Len))
	f.putV(colHeads, 0, uint64(h.Vers))
	*p = h
}

// trial reports whether split can take the payload apart and join can put it together again.
func (f *frameState) trial(payload []byte) bool {
	if len(payload) == 0 {
		return true
	}
	c := newCursor(payload)
	var tri [cabi.KeySlots]struct {
		pc, uid, num, call uint64
		set                bool
	}
	type def struct{ pc, uid, num, call uint64 }
	where := map[def]uint64{}
	var last uint64
	for c.p < c.end {
		x := c.exact()
		if x >= cabi.FirstKey {
			k := x - cabi.FirstKey
			if k >= cabi.KeySlots || !tri[k].set {
				return false
			}
			t := &tri[k]
			if where[def{t.pc, t.uid, t.num, t.call}] != k {
				return false
			}
			if c.exact()&cabi.EvMore != 0 {
				m := c.byte()
				if m == 0 {
					return false // the column says by 0 that there is no mask
				}
				if m&cabi.MaskDuration != 0 {
					c.exact()
				}
				for bit := byte(1); bit < cabi.MaskTail; bit <<= 1 {
					if m&bit != 0 {
						c.v()
					}
				}
				if m&cabi.MaskTail != 0 {
					c.s()
				}
				if m&cabi.MaskNote != 0 {
					c.v()
				}
			}
		} else if x == cabi.TagKey {
			no, call := c.exact(), c.exact()
			last += uint64(zag(c.exact()))
			uid, num := c.exact(), c.exact()
			if no >= cabi.KeySlots || uid > 1<<32-1 || call > 0xffff {
				return false
			}
			tri[no].pc, tri[no].uid, tri[no].num, tri[no].call, tri[no].set = last, uid, num, call, true
			where[def{last, uid, num, call}] = no
		} else {
			if x == 0 || x >= cabi.TagLimit {
				return false
			}
			if skip(&c, operands[x]); x == cabi.TagSignal || x == cabi.TagSigRet {
				last = 0
				clear(where)
				for i := range tri {
					tri[i].set = false
				}
			}
		}
		if c.over() {
			return false
		}
	}
	return true
}

// skip moves over operands and returns their bytes.
func skip(c *cursor, format string) []byte {
	at := c.p
	for i := range len(format) {
		switch format[i] {
		case 'V':
			c.v()
		case 'S':
			c.s()
		default:
			c.bytes(8)
		}
	}
	if c.over() {
		return nil
	}
	return c.b[at:c.p]
}

func (f *frameState) putOp(v uint64) {
	c := f.col(colOps, 0)
	switch {
	case v < 224:
		*c = append(*c, byte(v))
	case v < 224+31*256:
		v -= 224
		*c = append(*c, byte(224+v>>8), byte(v))
	default:
		*c = AppendV(append(*c, 255), v)
	}
}

// split writes the records of a chunk that trial approved.
func (f *frameState) split(c *cursor) {
	for c.p < c.end {
		x := c.v()
		switch {
		case x >= cabi.FirstKey:
			t := f.keyTri[x-cabi.FirstKey] - 1
			f.putOp(cabi.FirstKey + uint64(t))
			f.splitEvent(c, f.triples[t].ctx)
		case x == cabi.TagKey:
			f.putOp(x)
			f.splitKey(c)
		default:
			f.putOp(x)
			col := f.col(colCtl, uint32(x))
			*col = append(*col, skip(c, operands[x])...)
			if x == cabi.TagSignal || x == cabi.TagSigRet {
				f.reset()
			}
		}
	}
}

func (f *frameState) splitKey(c *cursor) {
	no, call := c.v(), c.v()
	f.lastPC += uint64(c.z())
	t := triple{pc: f.lastPC, call: uint32(call), obj: Object{uint32(c.v()), 0}}
	t.obj.Num = c.v()
	id, ok := f.ids[t]
	if !ok {
		id = uint32(len(f.triples))
		f.ids[t] = id
		f.putV(colKeyRef, 0, 0)
		f.putV(colCall, 0, uint64(t.call))
		f.putV(colPC, 0, zig(int64(t.pc-f.prevPC)))
		f.putV(colUID, 0, uint64(t.obj.UID))
		f.putV(colNum, 0, t.obj.Num)
		f.prevPC = t.pc
		f.define(t)
	} else {
		f.putV(colKeyRef, 0, uint64(id)+1)
	}
	if no == f.nkeys {
		f.putV(colKeyNo, 0, 0)
	} else {
		f.putV(colKeyNo, 0, no+1)
	}
	f.bind(no, id)
}

// define adds a triple and finds its context.
func (f *frameState) define(t triple) {
	k := ctxKey{t.pc, t.call}
	ctx, ok := f.ctxs[k]
	if !ok {
		if ctx = uint32(len(f.ctxs)); ctx >= maxCtx {
			ctx = t.call % maxCtx // shared: worse, not wrong
		} else {
			f.ctxs[k] = ctx
		}
	}
	t.ctx = ctx
	f.triples = append(f.triples, t)
	f.triKey = append(f.triKey, 0)
}

const maxCtx = 4096

func (f *frameState) bind(no uint64, id uint32) {
	f.keyTri[no] = id + 1
	f.triKey[id] = uint32(no) + 1
	if no == f.nkeys {
		f.nkeys++
	}
}

func (f *frameState) splitEvent(c *cursor, ctx uint32) {
	t := c.v()
	f.putTime(colDt, ctx, t>>1)
	if t&cabi.EvMore == 0 {
		f.put(colMask, ctx, 0)
		return
	}
	m := c.byte()
	f.put(colMask, ctx, m)
	if m&cabi.MaskDuration != 0 {
		f.putTime(colDur, ctx, c.v())
	}
	for i := range 5 {
		if m&(1<<i) != 0 {
			at := c.p
			c.v()
			col := f.col(colRet+i, ctx)
			*col = append(*col, c.b[at:c.p]...)
		}
	}
	if m&cabi.MaskTail != 0 {
		at := c.p
		c.s()
		col := f.col(colTail, ctx)
		*col = append(*col, c.b[at:c.p]...)
	}
	if m&cabi.MaskNote != 0 {
		at := c.p
		c.v()
		col := f.col(colNote, ctx)
		*col = append(*col, c.b[at:c.p]...)
	}
}

// ownBlob is the length from which a column is compressed by itself.
const ownBlob = 400

// encode compresses the columns: V bytes of directory, compressed; the small columns together; the large ones.
func (f *frameState) encode(enc *zstd.Encoder, out []byte) []byte {
	for k := range f.bit {
		if w := &f.bit[k]; w.n > 0 {
			f.put(k, 0, byte(w.acc))
			w.acc, w.n = 0, 0
		}
	}
	var dir, small, big []byte
	for kind := range f.cols {
		for ctx, col := range f.cols[kind] {
			if len(col) == 0 {
				continue
			}
			dir = AppendV(dir, uint64(kind))
			dir = AppendV(dir, uint64(ctx))
			dir = AppendV(dir, uint64(len(col)))
			if len(col) < ownBlob {
				dir = AppendV(dir, 0)
				small = append(small, col...)
				continue
			}
			at := len(big)
			big = enc.EncodeAll(col, big)
			dir = AppendV(dir, uint64(len(big)-at))
		}
	}
	var pre []byte
	pre = enc.EncodeAll(dir, pre)
	n := len(pre)
	pre = enc.EncodeAll(small, pre)
	out = AppendV(out, uint64(n))
	out = AppendV(out, uint64(len(pre)-n))
	out = append(out, pre...)
	return append(out, big...)
}

// sortChunks puts chunks into the order they are packed in: by thread, then by time.
func sortChunks(refs []chunkRef) {
	slices.SortStableFunc(refs, func(a, b chunkRef) int { return cmp.Or(cmp.Compare(a.uid, b.uid), cmp.Compare(a.seq, b.seq)) })
}

func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

package trace

import (
	"fmt"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"prophet/cabi"
)

// frameMax bounds what a frame may unpack to.
const frameMax = 64 << 20

// unframe puts an events frame together again.
type unframe struct {
	cols    [colEnd][]small // by context
	bitbuf  [colEnd]bitReader
	triples []triple
	ctxs    map[ctxKey]uint32
	keyTri  [cabi.KeySlots]uint32
	triKey  []uint32
	nkeys   uint64
	lastPC  uint64
	prevPC  uint64
	prev    Header
	bad     bool
	limit   int
}

type bitReader struct {
	acc uint64
	n   uint
}

// decodeEvents unpacks a frame into its chunks, appending the payloads to out, at most limit bytes in all.
func decodeEvents(dec *zstd.Decoder, b []byte, out []byte, limit int) ([]Header, []byte, error) {
	u := &unframe{ctxs: map[ctxKey]uint32{}, limit: limit}
	if err := u.open(dec, b); err != nil {
		return nil, out, err
	}
	var heads []Header
	for u.left(colHeads, 0) {
		h, apart := u.head()
		if u.bad || int(h.Len) > cabi.ChunkMax || len(out)+int(h.Len) > limit {
			return heads, out, errPacked
		}
		at := len(out)
		if apart {
			out = u.join(out, at+int(h.Len))
		} else {
			out = append(out, u.take(colRaw, 0, uint64(h.Len))...)
		}
		if u.bad || len(out)-at != int(h.Len) {
			return heads, out, errPacked
		}
		h.Sum = xxhash.Sum64(out[at:])
		h.Kind = cabi.ChunkEvents
		heads = append(heads, h)
	}
	return heads, out, nil
}

func (u *unframe) open(dec *zstd.Decoder, b []byte) error {
	s := small{b: b}
	n, m := s.v(), s.v()
	if s.bad || n > uint64(len(s.b)) || m > uint64(len(s.b))-n {
		return errPacked
	}
	dir, err := dec.DecodeAll(s.b[:n], nil)
	if err != nil {
		return fmt.Errorf("%w: %v", errPacked, err)
	}
	shared, err := dec.DecodeAll(s.b[n:n+m], nil)
	if err != nil {
		return fmt.Errorf("%w: %v", errPacked, err)
	}
	big := s.b[n+m:]
	var total uint64
	for d := (small{b: dir}); len(d.b) > 0; {
		kind, ctx, raw, packed := d.v(), d.v(), d.v(), d.v()
		if total += raw; d.bad || kind >= colEnd || ctx >= maxCtx || raw > frameMax || total > 2*frameMax {
			return errPacked
		}
		var col []byte
		if packed == 0 {
			if raw > uint64(len(shared)) {
				return errPacked
			}
			col, shared = shared[:raw], shared[raw:]
		} else {
			if packed > uint64(len(big)) {
				return errPacked
			}
			if col, err = dec.DecodeAll(big[:packed], make([]byte, 0, min(raw, 1<<20))); err != nil {
				return fmt.Errorf("%w: %v", errPacked, err)
			}
			if big = big[packed:]; uint64(len(col)) != raw {
				return errPacked
			}
		}
		c := &u.cols[kind]
		for uint64(len(*c)) <= ctx {
			*c = append(*c, small{})
		}
		(*c)[ctx] = small{b: col}
	}
	return nil
}

func (u *unframe) col(kind int, ctx uint32) *small {
	if c := u.cols[kind]; ctx < uint32(len(c)) {
		return &c[ctx]
	}
	u.bad = true
	return &small{bad: true}
}

func (u *unframe) left(kind int, ctx uint32) bool {
	return !u.bad && ctx < uint32(len(u.cols[kind])) && len(u.cols[kind][ctx].b) > 0
}

func (u *unframe) v(kind int, ctx uint32) uint64 {
	c := u.col(kind, ctx)
	v := c.v()
	u.bad = u.bad || c.bad
	return v
}

func (u *unframe) byte(kind int, ctx uint32) byte {
	c := u.col(kind, ctx)
	if len(c.b) == 0 {
		u.bad = true
		return 0
	}
	x := c.b[0]
	c.b = c.b[1:]
	return x
}

func (u *unframe) take(kind int, ctx uint32, n uint64) []byte {
	c := u.col(kind, ctx)
	if n > uint64(len(c.b)) {
		u.bad = true
		return nil
	}
	s := c.b[:n]
	c.b = c.b[n:]
	return s
}

// raw copies what read moves over.
func (u *unframe) raw(out []byte, kind int, ctx uint32, format string) []byte {
	c := u.col(kind, ctx)
	was := c.b
	for i := range len(format) {
		switch format[i] {
		case 'V':
			c.v()
		case 'S':
			c.s()
		default:
			if len(c.b) < 8 {
				c.bad, c.b = true, nil
			} else {
				c.b = c.b[8:]
			}
		}
	}
	if c.bad {
		u.bad = true
		return out
	}
	return append(out, was[:len(was)-len(c.b)]...)
}

func (u *unframe) head() (Header, bool) {
	h := u.prev
	how := u.v(colHeads, 0)
	h.Flags = uint16(how >> 1)
	uid := uint32(int64(h.UID) + zag(u.v(colHeads, 0)))
	if uid != h.UID {
		h.Seq = ^uint64(0)
	}
	h.UID = uid
	h.Seq += 1 + uint64(zag(u.v(colHeads, 0)))
	h.Base += uint64(zag(u.v(colHeads, 0)))
	h.Proc = uint32(int64(h.Proc) + zag(u.v(colHeads, 0)))
	n, v := u.v(colHeads, 0), u.v(colHeads, 0)
	if n > cabi.ChunkMax || v == 0 || v > cabi.FormatVersion {
		u.bad = true
		return h, false
	}
	h.Len, h.Vers = uint32(n), uint32(v)
	u.prev = h
	return h, how&1 != 0
}

func (u *unframe) reset() {
	clear(u.keyTri[:])
	clear(u.triKey)
	u.nkeys = 0
	u.lastPC = 0
}

func (u *unframe) op() uint64 {
	x := uint64(u.byte(colOps, 0))
	switch {
	case x < 224:
		return x
	case x < 255:
		return 224 + (x-224)<<8 + uint64(u.byte(colOps, 0))
	}
	return u.v(colOps, 0)
}

// join writes the records of one chunk to out, up to this length.
func (u *unframe) join(out []byte, end int) []byte {
	u.reset()
	if len(out) == end && !u.left(colOps, 0) {
		return out
	}
	for {
		x := u.op()
		if u.bad || len(out) > end {
			u.bad = true
			return out
		}
		switch {
		case x == 0:
			return out
		case x >= cabi.FirstKey:
			t := x - cabi.FirstKey
			if t >= uint64(len(u.triples)) || u.triKey[t] == 0 {
				u.bad = true
				return out
			}
			out = AppendV(out, cabi.FirstKey+uint64(u.triKey[t]-1))
			out = u.joinEvent(out, u.triples[t].ctx)
		case x == cabi.TagKey:
			out = AppendV(out, x)
			out = u.joinKey(out)
		case x < cabi.TagLimit:
			out = AppendV(out, x)
			out = u.raw(out, colCtl, uint32(x), operands[x])
			if x == cabi.TagSignal || x == cabi.TagSigRet {
				u.reset()
			}
		default:
			u.bad = true
			return out
		}
	}
}

func (u *unframe) joinKey(out []byte) []byte {
	id := u.v(colKeyRef, 0)
	if id == 0 {
		u.prevPC += uint64(zag(u.v(colPC, 0)))
		t := triple{pc: u.prevPC, call: uint32(u.v(colCall, 0)), obj: Object{uint32(u.v(colUID, 0)), 0}}
		t.obj.Num = u.v(colNum, 0)
		k := ctxKey{t.pc, t.call}
		ctx, ok := u.ctxs[k]
		if !ok {
			if ctx = uint32(len(u.ctxs)); ctx >= maxCtx {
				ctx = t.call % maxCtx
			} else {
				u.ctxs[k] = ctx
			}
		}
		t.ctx = ctx
		u.triples = append(u.triples, t)
		u.triKey = append(u.triKey, 0)
		id = uint64(len(u.triples))
	}
	no := u.v(colKeyNo, 0)
	if no == 0 {
		no = u.nkeys
	} else {
		no--
	}
	if u.bad || id > uint64(len(u.triples)) || no >= cabi.KeySlots {
		u.bad = true
		return out
	}
	id--
	u.keyTri[no] = uint32(id) + 1
	u.triKey[id] = uint32(no) + 1
	if no == u.nkeys {
		u.nkeys++
	}
	t := &u.triples[id]
	out = AppendV(out, no)
	out = AppendV(out, uint64(t.call))
	out = AppendZ(out, int64(t.pc-u.lastPC))
	u.lastPC = t.pc
	out = AppendV(out, uint64(t.obj.UID))
	return AppendV(out, t.obj.Num)
}

func (u *unframe) joinEvent(out []byte, ctx uint32) []byte {
	m := u.byte(colMask, ctx)
	t := u.time(colDt, ctx) << 1
	if m == 0 {
		return AppendV(out, t)
	}
	out = AppendV(out, t|cabi.EvMore)
	out = append(out, m)
	if m&cabi.MaskDuration != 0 {
		out = AppendV(out, u.time(colDur, ctx))
	}
	for i := range 5 {
		if m&(1<<i) != 0 {
			out = u.raw(out, colRet+i, ctx, "V")
		}
	}
	if m&cabi.MaskTail != 0 {
		out = u.raw(out, colTail, ctx, "S")
	}
	if m&cabi.MaskNote != 0 {
		out = u.raw(out, colNote, ctx, "V")
	}
	return out
}

func (u *unframe) time(kind int, ctx uint32) uint64 {
	x := uint64(u.byte(kind, ctx))
	if x < direct {
		return x
	}
	n := uint(x - direct)
	if n < 8 || n > 64 {
		u.bad = true
		return 0
	}
	man := uint64(u.byte(kind+1, ctx))
	if n <= 9 {
		return man | 1<<(n-1)
	}
	return 1<<(n-1) | man<<(n-9) | u.bits(kind+2, n-9)
}

func (u *unframe) bits(kind int, n uint) uint64 {
	if n > 32 {
		lo := u.bits(kind, 32)
		return lo | u.bits(kind, n-32)<<32
	}
	r := &u.bitbuf[kind]
	for r.n < n {
		r.acc |= uint64(u.byte(kind, 0)) << r.n
		r.n += 8
	}
	v := r.acc & (1<<n - 1)
	r.acc >>= n
	r.n -= n
	return v
}

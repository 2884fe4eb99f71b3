package trace

import (
	"encoding/binary"
	"math/bits"
)

// maxVarint is the longest prefix varint: a zero byte and 8 bytes as they are.
const maxVarint = 9

// AppendV appends v as a prefix varint: the zero bits at the bottom of the first byte tell how many bytes follow.
func AppendV(b []byte, v uint64) []byte {
	n := (bits.Len64(v|1) + 6) / 7 // bytes of 7 bits
	if n > 8 {
		b = append(b, 0)
		return binary.LittleEndian.AppendUint64(b, v)
	}
	x := v<<n | 1<<(n-1)
	for range n {
		b = append(b, byte(x))
		x >>= 8
	}
	return b
}

// AppendZ appends a signed number, zigzagged.
func AppendZ(b []byte, v int64) []byte { return AppendV(b, zig(v)) }

// AppendS appends the length of s and s.
func AppendS[T ~string | ~[]byte](b []byte, s T) []byte {
	b = AppendV(b, uint64(len(s)))
	return append(b, s...)
}

func zig(v int64) uint64 { return uint64(v<<1) ^ uint64(v>>63) }
func zag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// lenV is the length of v as AppendV writes it.
func lenV(v uint64) int {
	n := (bits.Len64(v|1) + 6) / 7
	if n > 8 {
		return maxVarint
	}
	return n
}

// cursor reads varints from b[:end]. b is at least slack bytes longer than end, so that a number can be loaded in one
// piece wherever it starts. Reading past end sets bad and yields zeros; callers check bad once a record.
type cursor struct {
	b   []byte
	p   int
	end int
	bad bool
}

// slack is how much longer than its content a buffer given to a cursor is.
const slack = 16

func (c *cursor) v() uint64 {
	p := c.p
	if p >= c.end {
		c.bad = true
		return 0
	}
	x := binary.LittleEndian.Uint64(c.b[p:])
	if x&1 != 0 {
		c.p = p + 1
		return x >> 1 & 0x7f
	}
	n := uint(bits.TrailingZeros32(uint32(x)|1<<8)) + 1
	if n < 9 {
		c.p = p + int(n)
		return x >> n & (1<<(7*n) - 1)
	}
	c.p = p + maxVarint
	return binary.LittleEndian.Uint64(c.b[p+1:])
}

func (c *cursor) z() int64 { return zag(c.v()) }

func (c *cursor) byte() byte {
	if c.p >= c.end {
		c.bad = true
		return 0
	}
	c.p++
	return c.b[c.p-1]
}

// bytes returns the next n bytes without copying.
func (c *cursor) bytes(n uint64) []byte {
	if c.p > c.end || n > uint64(c.end-c.p) {
		c.bad = true
		return nil
	}
	s := c.b[c.p : c.p+int(n) : c.p+int(n)]
	c.p += int(n)
	return s
}

func (c *cursor) s() []byte { return c.bytes(c.v()) }

// over reports whether a read went past the end.
func (c *cursor) over() bool { return c.bad || c.p > c.end }

// padded returns a buffer of n bytes with slack behind it, reusing b where it is large enough.
func padded(b []byte, n int) []byte {
	if cap(b) < n+slack {
		b = make([]byte, n+slack)
	}
	b = b[:n+slack]
	clear(b[n:])
	return b
}

// newCursor copies nothing when s has slack behind its length, else it copies s.
func newCursor(s []byte) cursor {
	b := padded(nil, len(s))
	copy(b, s)
	return cursor{b: b, end: len(s)}
}

// small is a cursor over bytes that have no slack behind them: slower, but needs no copy. It is used on the few
// nested pieces (tails, inputs).
type small struct {
	b   []byte
	bad bool
}

func (c *small) v() uint64 {
	if len(c.b) == 0 {
		c.bad = true
		return 0
	}
	n := bits.TrailingZeros32(uint32(c.b[0])|1<<8) + 1
	if n > len(c.b) {
		c.bad, c.b = true, nil
		return 0
	}
	var x uint64
	if n == maxVarint {
		x = binary.LittleEndian.Uint64(c.b[1:])
		c.b = c.b[n:]
		return x
	}
	for i := n - 1; i >= 0; i-- {
		x = x<<8 | uint64(c.b[i])
	}
	c.b = c.b[n:]
	return x >> uint(n)
}

func (c *small) z() int64 { return zag(c.v()) }

func (c *small) s() []byte {
	n := c.v()
	if n > uint64(len(c.b)) {
		c.bad, c.b = true, nil
		return nil
	}
	s := c.b[:n:n]
	c.b = c.b[n:]
	return s
}

// Operands reads what AppendV, AppendZ and AppendS wrote one after the other: the parts of a structured result. Reading
// past the end yields zeros, and Bad says so.
type Operands struct{ s small }

// NewOperands begins at the start of b.
func NewOperands(b []byte) Operands { return Operands{small{b: b}} }

// V reads a number.
func (o *Operands) V() uint64 { return o.s.v() }

// Z reads a signed number.
func (o *Operands) Z() int64 { return o.s.z() }

// S reads a text; it is a part of what is read.
func (o *Operands) S() []byte { return o.s.s() }

// Left is how many bytes have not been read.
func (o *Operands) Left() int { return len(o.s.b) }

// Bad reports whether a read went past the end.
func (o *Operands) Bad() bool { return o.s.bad }

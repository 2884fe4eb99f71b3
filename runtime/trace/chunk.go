package trace

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"prophet/cabi"
)

// Damage says that a part of a trace cannot be read: where, and why. Readers go on behind it.
type Damage struct {
	File   string // within the trace
	Offset int64
	Reason string
}

func (d *Damage) Error() string {
	return fmt.Sprintf("%s: offset %d: %s", d.File, d.Offset, d.Reason)
}

// IsDamage reports whether err tells of damage, after which reading can go on.
func IsDamage(err error) bool {
	var d *Damage
	return errors.As(err, &d)
}

// Header is cabi.Chunk without what only guards it.
type Header struct {
	Kind  uint16
	Flags uint16
	Len   uint32
	UID   uint32
	Proc  uint32
	Seq   uint64
	Base  uint64
	Vers  uint32
	Sum   uint64
}

var (
	errMagic   = errors.New("no chunk begins here")
	errHeadSum = errors.New("checksum of the chunk's header does not match")
	errLong    = errors.New("chunk is longer than any chunk may be")
	errKind    = errors.New("chunk of an unknown kind")
)

// ParseHeader reads and checks the header of a chunk.
func ParseHeader(b []byte) (Header, error) {
	var h Header
	le := binary.LittleEndian
	if len(b) < cabi.ChunkHeader || le.Uint32(b) != cabi.ChunkMagic {
		return h, errMagic
	}
	if le.Uint64(b[56:]) != xxhash.Sum64(b[:56]) {
		return h, errHeadSum
	}
	h = Header{
		Kind: le.Uint16(b[4:]), Flags: le.Uint16(b[6:]), Len: le.Uint32(b[8:]), UID: le.Uint32(b[12:]),
		Seq: le.Uint64(b[16:]), Base: le.Uint64(b[24:]), Proc: le.Uint32(b[32:]), Vers: le.Uint32(b[36:]),
		Sum: le.Uint64(b[48:]),
	}
	if h.Len > cabi.ChunkMax {
		return h, errLong
	}
	if h.Vers == 0 || h.Vers > cabi.FormatVersion {
		return h, fmt.Errorf("chunk of format %d; this program reads up to %d", h.Vers, cabi.FormatVersion)
	}
	if h.Kind < cabi.ChunkEvents || h.Kind > cabi.ChunkControl {
		return h, errKind
	}
	return h, nil
}

// AppendHeader appends the header as it stands in a file. Sum is taken as it is (see Seal).
func AppendHeader(b []byte, h Header) []byte {
	le := binary.LittleEndian
	at := len(b)
	b = le.AppendUint32(b, cabi.ChunkMagic)
	b = le.AppendUint16(b, h.Kind)
	b = le.AppendUint16(b, h.Flags)
	b = le.AppendUint32(b, h.Len)
	b = le.AppendUint32(b, h.UID)
	b = le.AppendUint64(b, h.Seq)
	b = le.AppendUint64(b, h.Base)
	b = le.AppendUint32(b, h.Proc)
	b = le.AppendUint32(b, h.Vers)
	b = le.AppendUint64(b, 0)
	b = le.AppendUint64(b, h.Sum)
	return le.AppendUint64(b, xxhash.Sum64(b[at:]))
}

// Seal sets the length, version and checksum of h for this payload.
func (h *Header) Seal(payload []byte) {
	h.Len = uint32(len(payload))
	h.Vers = cabi.FormatVersion
	h.Sum = xxhash.Sum64(payload)
}

// MemChunk is a chunk that is not (yet) in a file: the tail of a live thread.
type MemChunk struct {
	Header
	Payload []byte
}

// AppendChunk appends a sealed chunk as it stands in a file.
func AppendChunk(b []byte, c MemChunk) []byte {
	c.Seal(c.Payload)
	b = AppendHeader(b, c.Header)
	return append(b, c.Payload...)
}

// WholePrefix is how many bytes at the start of a payload are whole records. What was copied from the memory of a
// process that died may end in anything.
func WholePrefix(payload []byte, base uint64) int {
	var d Decoder
	var r Record
	d.Reset(payload, base)
	for d.Next(&r) {
	}
	if d.Err() != "" {
		return r.Offset
	}
	return len(payload)
}

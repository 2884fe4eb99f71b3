package demand

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"prophet/cabi"
)

// Vary copies a compiled program, with operations changed: change is called for each, by its number, and says whether it did.
// Codes may become OpNop and numbers others; nothing else may refer to what was there.
func Vary(from, to string, change func(n uint64, o *cabi.ProgOp) bool) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	h, err := head(in)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r, w := bufio.NewReaderSize(in, 1<<20), bufio.NewWriterSize(out, 1<<20)
	if _, err := io.CopyN(w, r, int64(h.OpsAt)); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	var b [opSize]byte
	for n := range h.Ops {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		if o := getOp(b[:]); change(n, &o) {
			putOp(b[:], &o)
		}
		if _, err := w.Write(b[:]); err != nil {
			return err
		}
	}
	if _, err := io.Copy(w, r); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if h.Sum, err = sumOf(out, h); err != nil {
		return err
	}
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := binary.Write(out, binary.LittleEndian, &h); err != nil {
		return err
	}
	return out.Close()
}

func putOp(b []byte, o *cabi.ProgOp) {
	le := binary.LittleEndian
	le.PutUint16(b, o.Code)
	le.PutUint16(b[2:], o.Flags)
	le.PutUint32(b[4:], o.Obj)
	le.PutUint32(b[8:], o.CPU)
	le.PutUint32(b[12:], o.Site)
	le.PutUint64(b[16:], uint64(o.A))
	le.PutUint64(b[24:], uint64(o.B))
	le.PutUint64(b[32:], uint64(o.Want))
}

func getOp(b []byte) cabi.ProgOp {
	le := binary.LittleEndian
	return cabi.ProgOp{Code: le.Uint16(b), Flags: le.Uint16(b[2:]), Obj: le.Uint32(b[4:]), CPU: le.Uint32(b[8:]), Site: le.Uint32(b[12:]),
		A: int64(le.Uint64(b[16:])), B: int64(le.Uint64(b[24:])), Want: int64(le.Uint64(b[32:]))}
}

package trace

import (
	"net/netip"
	"strconv"
)

// Inputs tells how the structured result (TagInput) of each `input HELPER` step is laid out. A helper that is not here
// is shown in hex. Kinds beyond a plain list of fields have a function.
var Inputs = map[string]InputSpec{
	"stat": {Fields: []FieldSpec{
		{"dev", FieldNum}, {"ino", FieldNum}, {"mode", FieldOct}, {"nlink", FieldNum}, {"uid", FieldNum}, {"gid", FieldNum},
		{"rdev", FieldNum}, {"size", FieldNum}, {"blksize", FieldNum}, {"blocks", FieldNum},
		{"atime", FieldTime}, {"mtime", FieldTime}, {"ctime", FieldTime},
	}},
	"addr": {Decode: decodeAddr},
}

// InputSpec lays out one kind of structured result: Fields in order, the last one repeated when Repeat is set, those behind
// the first Least left out when nothing follows, or
// Decode, which appends what it finds to out and reports whether all of b made sense.
type InputSpec struct {
	Fields []FieldSpec
	Repeat bool
	Least  int // how many are always there; 0: all
	Decode func(out []Field, b []byte) ([]Field, bool)
}

// ParseInput takes the nth structured result of an event of this row apart. A result that does not parse, or whose
// helper is unknown, is one field of bytes; ok tells whether it parsed.
func ParseInput(out []Field, row *Row, nth int, b []byte) (fields []Field, ok bool) {
	raw := func() []Field { return append(out[:0], Field{FieldSpec: FieldSpec{"input", FieldHex}, Text: b}) }
	if row == nil || nth >= len(row.Inputs) {
		return raw(), row == nil
	}
	spec, known := Inputs[row.Inputs[nth]]
	if !known {
		return raw(), true
	}
	if spec.Decode != nil {
		if f, ok := spec.Decode(out[:0], b); ok {
			return f, true
		}
		return raw(), false
	}
	s := small{b: b}
	out = out[:0]
	for i := 0; i < len(spec.Fields) || spec.Repeat && len(s.b) > 0; i++ {
		if spec.Least > 0 && i >= spec.Least && len(s.b) == 0 {
			break
		}
		f := Field{FieldSpec: spec.Fields[min(i, len(spec.Fields)-1)]}
		switch f.Kind {
		case FieldStr, FieldPath, FieldHex:
			f.Text = s.s()
		case FieldSnum:
			f.Num = uint64(s.z())
		default:
			f.Num = s.v()
		}
		if s.bad {
			return raw(), false
		}
		out = append(out, f)
	}
	return out, len(s.b) == 0
}

// decodeAddr reads a socket address: V family, S the address's bytes as the kernel lays them out, without the family.
func decodeAddr(out []Field, b []byte) ([]Field, bool) {
	s := small{b: b}
	family := s.v()
	a := s.s()
	if s.bad || len(s.b) != 0 {
		return nil, false
	}
	if text, ok := addrText(family, a); ok {
		return append(out, Field{FieldSpec: FieldSpec{"addr", FieldStr}, Text: []byte(text)}), true
	}
	return append(out, Field{FieldSpec: FieldSpec{"family" + strconv.FormatUint(family, 10), FieldHex}, Text: a}), true
}

// addrText shows an address of a family that it knows.
func addrText(family uint64, a []byte) (string, bool) {
	const unix, inet, inet6 = 1, 2, 10
	switch {
	case family == inet && len(a) >= 6:
		ip := netip.AddrFrom4([4]byte(a[2:6]))
		return netip.AddrPortFrom(ip, uint16(a[0])<<8|uint16(a[1])).String(), true
	case family == inet6 && len(a) >= 22:
		ip := netip.AddrFrom16([16]byte(a[6:22]))
		return netip.AddrPortFrom(ip, uint16(a[0])<<8|uint16(a[1])).String(), true
	case family == unix:
		n := len(a)
		for n > 0 && a[n-1] == 0 {
			n--
		}
		return "unix:" + string(a[:n]), true
	}
	return "", false
}

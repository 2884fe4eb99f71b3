package trace

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"prophet/cabi"
)

// The JSON lines: {"t":ns since start,"thread":…,"n":…,"call":…} for events, {"t","thread","record":…} for the others.
// Text that is not UTF-8 has U+FFFD in its place; data is hex.

func (p *Printer) headJSON(b []byte, r *Record) []byte {
	b = append(b, `{"t":`...)
	b = strconv.AppendInt(b, p.t.Clock.Since(r.Begin), 10)
	b = append(b, `,"thread":`...)
	return appendJSON(b, r.Thread.Name)
}

func (p *Printer) eventJSON(b []byte, r *Record) []byte {
	b = p.headJSON(b, r)
	b = append(b, `,"n":`...)
	b = strconv.AppendUint(b, r.N, 10)
	b = append(b, `,"call":`...)
	b = appendJSON(b, CallName(uint64(r.Call)))
	if r.Row != nil {
		b = append(b, `,"class":"`...)
		b = append(b, r.Row.Class.String()...)
		b = append(b, '"')
	}
	if !r.Obj.None() {
		b = append(b, `,"object":"`...)
		b = p.object(b, r.Obj, r.Row)
		b = append(b, '"')
	}
	if r.Row == nil || r.Row.Ret != RetVoid {
		b = append(b, `,"ret":`...)
		if r.Row != nil && r.Row.Ret == RetUint {
			b = strconv.AppendUint(b, uint64(r.Ret), 10)
		} else {
			b = strconv.AppendInt(b, r.Ret, 10)
		}
	}
	for i := range r.F {
		name := "f" + string(rune('1'+i))
		if r.Row != nil {
			if name = r.Row.F[i]; name == "" {
				continue
			}
		} else if r.F[i] == 0 {
			continue
		}
		b = append(b, ',', '"')
		b = append(b, name...)
		b = append(b, '"', ':')
		b = strconv.AppendInt(b, r.F[i], 10)
	}
	if r.Row == nil && len(r.Tail) > 0 {
		b = append(b, `,"tail":`...)
		b = appendHexJSON(b, r.Tail)
	}
	for i := range r.Fields {
		b = append(b, ',')
		b = appendFieldJSON(b, &r.Fields[i])
	}
	if r.Seq != 0 {
		b = append(b, `,"seq":`...)
		b = strconv.AppendUint(b, r.Seq, 10)
	}
	if r.Timed {
		b = append(b, `,"took":`...)
		b = strconv.AppendInt(b, p.t.Clock.NS(r.End-r.Begin), 10)
	}
	for i, n := range noteNames {
		if r.Note&(1<<i) != 0 {
			b = append(b, ',', '"')
			b = append(b, n...)
			b = append(b, `":true`...)
		}
	}
	if r.PC != 0 {
		b = append(b, `,"at":`...)
		b = appendJSON(b, p.Site(r.Thread.Proc, r.PC))
	}
	return b
}

func appendFieldJSON(b []byte, f *Field) []byte {
	b = appendJSON(b, f.Name)
	b = append(b, ':')
	switch f.Kind {
	case FieldPath, FieldStr:
		return appendJSON(b, f.Text)
	case FieldHex:
		return appendHexJSON(b, f.Text)
	case FieldSnum:
		return strconv.AppendInt(b, int64(f.Num), 10)
	}
	return strconv.AppendUint(b, f.Num, 10)
}

func (p *Printer) attachJSON(b []byte, r *Record) []byte {
	switch r.Tag {
	case cabi.TagData:
		b = append(b, `,"data":`...)
		b = appendHexJSON(b, r.Text[0])
	case cabi.TagHash:
		b = append(b, `,"hash":`...)
		b = appendHexJSON(b, r.Text[0])
	case cabi.TagBigData:
		b = append(b, `,"data_chunk":`...)
		b = strconv.AppendUint(b, r.Nums[0], 10)
		b = append(b, `,"data_bytes":`...)
		b = strconv.AppendUint(b, r.Nums[1], 10)
	case cabi.TagInput:
		p.short, _ = ParseInput(p.short, r.Row, int(min(r.Nums[0], 1<<20)), r.Text[0])
		b = append(b, `,"input`...)
		if r.Nums[0] > 0 {
			b = strconv.AppendUint(b, r.Nums[0]+1, 10)
		}
		b = append(b, `":{`...)
		for i := range p.short {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendFieldJSON(b, &p.short[i])
		}
		b = append(b, '}')
	case cabi.TagStack:
		b = append(b, `,"stack_taken":`...)
		b = appendJSON(b, StackWhy(r.Nums[1]))
		b = append(b, `,"stack":[`...)
		for i, pc := range r.Stack {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, p.Site(r.Thread.Proc, pc))
		}
		b = append(b, ']')
	}
	return b
}

func (p *Printer) controlJSON(b []byte, r *Record) []byte {
	var room [12]item
	what, items := p.describe(room[:0], r)
	b = p.headJSON(b, r)
	b = append(b, `,"record":`...)
	b = appendJSON(b, what)
	for i := range items {
		it := &items[i]
		b = append(b, ',', '"')
		b = append(b, it.name...)
		b = append(b, '"', ':')
		switch it.kind {
		case FieldSnum:
			b = strconv.AppendInt(b, int64(it.num), 10)
		case FieldPath:
			b = appendJSON(b, it.raw)
		case FieldStr:
			b = appendJSON(b, it.text)
		default:
			b = strconv.AppendUint(b, it.num, 10)
		}
	}
	return append(b, '}')
}

func appendHexJSON(b, s []byte) []byte {
	b = append(b, '"')
	for _, c := range s {
		b = append(b, hexDigits[c>>4], hexDigits[c&15])
	}
	return append(b, '"')
}

func appendJSON[T ~string | ~[]byte](b []byte, s T) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		case c < utf8.RuneSelf && c != 0x7f:
			b = append(b, c)
		default:
			r, n := utf8.DecodeRuneInString(string(s[i:min(len(s), i+4)]))
			b = appendRuneJSON(b, r)
			i += n
			continue
		}
		i++
	}
	return append(b, '"')
}

// appendRuneJSON writes out what a terminal might obey.
func appendRuneJSON(b []byte, r rune) []byte {
	if strconv.IsPrint(r) {
		return utf8.AppendRune(b, r)
	}
	for _, u := range utf16.AppendRune(nil, r) {
		b = append(b, '\\', 'u', hexDigits[u>>12], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
	}
	return b
}

// CleanJSON is JSON, as another encoder wrote it, with what a terminal might obey written out.
func CleanJSON(text []byte) []byte {
	b := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r < utf8.RuneSelf && r != 0x7f {
			b = append(b, text[0])
		} else {
			b = appendRuneJSON(b, r)
		}
		text = text[n:]
	}
	return b
}

package trace

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"prophet/cabi"
)

// Printer turns records into lines of text, or of JSON. It allocates only for what it sees first; use one a
// goroutine, and give it records in order (it learns modules and objects from them).
type Printer struct {
	t     *Trace
	json  bool
	sites map[site]string
	last  site // the call site formatted before
	lastS string
	open  bool // an event's line is not ended yet
	short []Field
	names []string // of threads, by UID
	width int
}

type site struct {
	p  *Proc
	pc uint64
}

const maxSites = 1 << 20

// NewPrinter makes a printer of text lines, or JSON lines.
func NewPrinter(t *Trace, json bool) *Printer {
	p := &Printer{t: t, json: json, sites: map[site]string{}, width: 4}
	top := uint32(0)
	for _, th := range t.Threads {
		p.width = max(p.width, len(th.Name))
		if th.UID > top && th.UID < 1<<22 {
			top = th.UID
		}
	}
	p.width = min(p.width, 24)
	p.names = make([]string, top+1)
	for _, th := range t.Threads {
		if th.UID <= top {
			p.names[th.UID] = th.Name
		}
	}
	return p
}

// Observe learns from a record without printing it. Append does so by itself.
func (p *Printer) Observe(r *Record) {
	if r.Tag == cabi.TagModule {
		p.t.learn(r.Thread, r)
		clear(p.sites)
		p.last = site{}
	}
}

// Append appends what the record says to b. The line of an event is ended by the next record or by Flush, as its
// input data follows it.
func (p *Printer) Append(b []byte, r *Record) []byte {
	if r.Attached() {
		if !p.open {
			return b
		}
		if p.json {
			return p.attachJSON(b, r)
		}
		return p.attach(b, r)
	}
	b = p.Flush(b)
	if r.Tag == TagEvent {
		p.open = true
		if p.json {
			return p.eventJSON(b, r)
		}
		return p.event(b, r)
	}
	if r.Tag == cabi.TagKey {
		return b
	}
	p.Observe(r)
	if p.json {
		b = p.controlJSON(b, r)
	} else {
		b = p.control(b, r)
	}
	return append(b, '\n')
}

// Flush ends the line of the last event.
func (p *Printer) Flush(b []byte) []byte {
	if p.open {
		p.open = false
		if p.json {
			b = append(b, '}')
		}
		b = append(b, '\n')
	}
	return b
}

func (p *Printer) name(uid uint32) string {
	if uid < uint32(len(p.names)) && p.names[uid] != "" {
		return p.names[uid]
	}
	return "thread" + strconv.FormatUint(uint64(uid), 10)
}

const spaces = "                                "

// head is what every line begins with: time, thread, number.
func (p *Printer) head(b []byte, r *Record) []byte {
	b = appendSeconds(b, p.t.Clock.Since(r.Begin))
	b = append(b, ' ', ' ')
	n := r.Thread.Name
	b = append(b, n...)
	if len(n) < p.width {
		b = append(b, spaces[:p.width-len(n)]...)
	}
	return append(b, ' ')
}

func (p *Printer) event(b []byte, r *Record) []byte {
	b = p.head(b, r)
	b = append(b, '#')
	at := len(b)
	b = strconv.AppendUint(b, r.N, 10)
	if k := len(b) - at; k < 6 {
		b = append(b, spaces[:6-k]...)
	}
	return p.AppendCall(append(b, ' '), r)
}

// AppendCall appends an event as its line has it, without time, thread and number.
func (p *Printer) AppendCall(b []byte, r *Record) []byte {
	row := r.Row
	if row == nil {
		b = append(b, "call"...)
		b = strconv.AppendUint(b, uint64(r.Call), 10)
		b = append(b, '(')
	} else {
		b = append(b, row.open...)
	}
	first := true
	if !r.Obj.None() {
		b = p.object(b, r.Obj, row)
		first = false
	}
	for i := range r.F {
		name := ""
		if row != nil {
			if name = row.F[i]; name == "" {
				continue
			}
		} else if r.F[i] == 0 {
			continue
		}
		if !first {
			b = append(b, ',', ' ')
		}
		first = false
		if name != "" {
			b = append(b, name...)
			b = append(b, '=')
		}
		if row != nil && row.addrs[i] {
			b = appendHex(b, uint64(r.F[i]))
		} else {
			b = strconv.AppendInt(b, r.F[i], 10)
		}
	}
	if len(r.Tail) != 0 {
		b = p.tail(b, r, first)
	}
	b = append(b, ')')
	b = p.result(b, r)
	if r.Seq != 0 {
		b = append(b, " seq "...)
		b = strconv.AppendUint(b, r.Seq, 10)
	}
	if r.Timed {
		b = append(b, ' ', '<')
		b = appendSeconds(b, p.t.Clock.NS(r.End-r.Begin))
		b = append(b, '>')
	}
	if r.Note != 0 {
		b = appendNotes(b, r.Note)
	}
	if r.PC != 0 {
		b = append(b, ' ', '@')
		b = append(b, p.Site(r.Thread.Proc, r.PC)...)
	}
	return b
}

// object appends an object's name: its kind, the thread that saw it first, its number there.
func (p *Printer) object(b []byte, o Object, row *Row) []byte {
	if row != nil && row.Obj != "" {
		b = append(b, row.Obj...)
	} else {
		b = append(b, "object"...)
	}
	b = append(b, ':')
	return p.objectName(b, o)
}

func (p *Printer) objectName(b []byte, o Object) []byte {
	b = append(b, p.name(o.UID)...)
	b = append(b, '#')
	return strconv.AppendUint(b, o.Num, 10)
}

func (p *Printer) tail(b []byte, r *Record, first bool) []byte {
	if r.Row == nil {
		if !first {
			b = append(b, ',', ' ')
		}
		b = append(b, "tail="...)
		return appendBytes(b, r.Tail)
	}
	for i := range r.Fields {
		if !first {
			b = append(b, ',', ' ')
		}
		first = false
		b = appendField(b, &r.Fields[i])
	}
	return b
}

func appendField(b []byte, f *Field) []byte {
	b = append(b, f.Name...)
	b = append(b, '=')
	switch f.Kind {
	case FieldPath, FieldStr:
		return appendQuoted(b, f.Text)
	case FieldHex:
		return appendBytes(b, f.Text)
	case FieldSnum:
		return strconv.AppendInt(b, int64(f.Num), 10)
	case FieldTime:
		return appendSeconds(b, int64(f.Num))
	case FieldOct:
		b = append(b, '0')
		return strconv.AppendUint(b, f.Num, 8)
	}
	return strconv.AppendUint(b, f.Num, 10)
}

func (p *Printer) result(b []byte, r *Record) []byte {
	kind := RetErrno
	if r.Row != nil {
		kind = r.Row.Ret
	}
	if kind == RetVoid {
		return b
	}
	return appendResult(append(b, " = "...), kind, r.Ret)
}

// ResultText is a call's result as it is printed: errors by their names.
func ResultText(call uint16, ret int64) string {
	kind := RetErrno
	if row := RowOf(uint64(call)); row != nil {
		kind = row.Ret
	}
	return string(appendResult(nil, kind, ret))
}

func appendResult(b []byte, kind RetKind, ret int64) []byte {
	switch {
	case kind == RetUint:
		return strconv.AppendUint(b, uint64(ret), 10)
	case kind == RetErr && ret > 0:
		return appendErrno(b, ret)
	case (kind == RetErrno || kind == RetPtr) && ret < 0:
		b = append(b, "-1 "...)
		return appendErrno(b, -ret)
	case kind == RetPtr:
		return append(b, "ok"...)
	}
	return strconv.AppendInt(b, ret, 10)
}

var noteNames = [...]string{"waited", "cut", "vforked", "delayed", "onlytime"}

func appendNotes(b []byte, note uint8) []byte {
	for i, n := range noteNames {
		if note&(1<<i) != 0 {
			b = append(b, ' ')
			b = append(b, n...)
		}
	}
	return b
}

// Site is a call site as module+offset, or a bare address where the trace does not know a module.
func (p *Printer) Site(proc *Proc, pc uint64) string {
	k := site{proc, pc}
	if k == p.last {
		return p.lastS
	}
	s, ok := p.sites[k]
	if !ok {
		if proc.Module(pc) == nil {
			p.t.learnModules()
		}
		s = proc.Site(pc)
		if len(p.sites) >= maxSites {
			clear(p.sites)
		}
		p.sites[k] = s
	}
	p.last, p.lastS = k, s
	return s
}

// attach appends input data to its event's line.
func (p *Printer) attach(b []byte, r *Record) []byte {
	switch r.Tag {
	case cabi.TagData:
		b = append(b, " data "...)
		b = appendShort(b, r.Text[0])
	case cabi.TagHash:
		b = append(b, " hash "...)
		b = appendBytes(b, r.Text[0])
	case cabi.TagBigData:
		b = append(b, " data chunk "...)
		b = strconv.AppendUint(b, r.Nums[0], 10)
		b = append(b, " of "...)
		b = strconv.AppendUint(b, r.Nums[1], 10)
		b = append(b, " bytes"...)
	case cabi.TagInput:
		p.short, _ = ParseInput(p.short, r.Row, int(min(r.Nums[0], 1<<20)), r.Text[0])
		b = append(b, " {"...)
		for i := range p.short {
			if i > 0 {
				b = append(b, ' ')
			}
			b = appendField(b, &p.short[i])
		}
		b = append(b, '}')
	case cabi.TagStack:
		b = append(b, " stack ("...)
		b = append(b, StackWhy(r.Nums[1])...)
		b = append(b, ')')
		for _, pc := range r.Stack {
			b = append(b, " < "...)
			b = appendText(b, p.Site(r.Thread.Proc, pc))
		}
	}
	return b
}

// appendShort quotes the start of data.
func appendShort(b, s []byte) []byte {
	const most = 48
	if len(s) <= most {
		return appendQuoted(b, s)
	}
	b = appendQuoted(b, s[:most])
	b = append(b, "..."...)
	return strconv.AppendInt(b, int64(len(s)), 10)
}

// appendSeconds appends ns as seconds with nine places.
func appendSeconds(b []byte, ns int64) []byte {
	if ns < 0 {
		b = append(b, '-')
		ns = -ns
	}
	b = strconv.AppendUint(b, uint64(ns)/1e9, 10)
	f := uint32(uint64(ns) % 1e9)
	var d [10]byte
	d[0] = '.'
	hi, lo := f/100000, f%100000 // two independent chains of divisions
	for i := 4; i > 0; i-- {
		d[i] = byte('0' + hi%10)
		hi /= 10
	}
	for i := 9; i > 4; i-- {
		d[i] = byte('0' + lo%10)
		lo /= 10
	}
	return append(b, d[:]...)
}

const hexDigits = "0123456789abcdef"

func appendHex(b []byte, v uint64) []byte {
	b = append(b, '0', 'x')
	return strconv.AppendUint(b, v, 16)
}

func appendBytes(b, s []byte) []byte {
	const most = 64
	for i, c := range s {
		if i == most {
			return append(b, "..."...)
		}
		b = append(b, hexDigits[c>>4], hexDigits[c&15])
	}
	return b
}

// appendText appends text from a trace so that it cannot disturb a terminal.
func appendText[T ~string | ~[]byte](b []byte, s T) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < utf8.RuneSelf && c != 0x7f {
			b = append(b, c)
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			if r, n := utf8.DecodeRuneInString(string(s[i:min(len(s), i+4)])); r != utf8.RuneError && strconv.IsPrint(r) {
				b = utf8.AppendRune(b, r)
				i += n
				continue
			}
		}
		b = append(b, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
		i++
	}
	return b
}

// Clean is text from a trace as it may be shown.
func Clean(s string) string { return string(appendText(nil, s)) }

// CleanLines is the same of several lines, which stay.
func CleanLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Clean(lines[i])
	}
	return strings.Join(lines, "\n")
}

// appendQuoted is appendText in quotes.
func appendQuoted(b []byte, s []byte) []byte {
	b = append(b, '"')
	for {
		i := 0
		for i < len(s) && s[i] >= ' ' && s[i] < 0x7f && s[i] != '"' && s[i] != '\\' {
			i++
		}
		b = append(b, s[:i]...)
		if s = s[i:]; len(s) == 0 {
			return append(b, '"')
		}
		switch c := s[0]; c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
		}
		s = s[1:]
	}
}

// Site is a call site of the process as text, module+offset where the module is known.
func (p *Proc) Site(pc uint64) string {
	m := p.Module(pc)
	if m == nil {
		return string(appendHex(nil, pc))
	}
	path := m.Path[strings.LastIndexByte(m.Path, '/')+1:]
	return string(appendHex(append(appendText(nil, path), '+'), pc-m.Bias))
}

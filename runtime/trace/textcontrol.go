package trace

import (
	"fmt"
	"strconv"
	"strings"

	"prophet/cabi"
)

func appendErrno(b []byte, e int64) []byte {
	if e >= 0 && e < int64(len(errnoNames)) && errnoNames[e] != "" {
		return append(b, errnoNames[e]...)
	}
	b = append(b, "errno "...)
	return strconv.AppendInt(b, e, 10)
}

// SignalName is SIGINT for 2.
func SignalName(n uint64) string {
	if n < uint64(len(signalNames)) && n > 0 {
		return signalNames[n]
	}
	return "signal " + strconv.FormatUint(n, 10)
}

func pick(names []string, n uint64) string {
	if n < uint64(len(names)) {
		return names[n]
	}
	return strconv.FormatUint(n, 10)
}

var (
	procHow    = []string{"root", "forked", "execed"}
	threadHow  = []string{"main", "created", "forked", "found"}
	exitHow    = []string{"exit", "quick", "abort", "exec", "signal"}
	markKind   = []string{"point", "begin", "end"}
	lostWhy    = []string{"?", "write", "ring", "thread", "signal"}
	keptHow    = []string{"clone", "copy", "not", "failed"}
	tokenHow   = []string{"given", "dead", "slept", "spun"}
	tokenAt    = []string{"end", "here"}
	unseenWhat = []string{"?", "static program", "set-uid program", "foreign program", "io_uring", "direct system call", "futex", "program with system calls of its own", "sandbox that forbids recording", "CPU time by stacks of a timer, as the program uses SIGPROF itself:"}
)

// ExitHow, KeptHow, LostWhy and UnseenWhat are the words for what a record says.
func ExitHow(n uint64) string    { return pick(exitHow, n) }
func KeptHow(n uint64) string    { return pick(keptHow, n) }
func LostWhy(n uint64) string    { return pick(lostWhy, n) }
func UnseenWhat(n uint64) string { return pick(unseenWhat, n) }

// ProcHow, ThreadHow and MarkKind are the same of how a process or thread came to be, and of what a mark is.
func ProcHow(n uint64) string   { return pick(procHow, n) }
func ThreadHow(n uint64) string { return pick(threadHow, n) }
func MarkKind(n uint64) string  { return pick(markKind, n) }

// StackWhy is why a stack was taken, and what is missing of it.
func StackWhy(bits uint64) string {
	s := "rate"
	switch bits & (cabi.StackWait | cabi.StackHolder) {
	case cabi.StackWait:
		s = "wait"
	case cabi.StackHolder:
		s = "holder"
	case cabi.StackWait | cabi.StackHolder:
		s = "wait+holder"
	}
	if bits&cabi.StackCut != 0 {
		s += ",cut"
	}
	if bits&cabi.StackLost != 0 {
		s += ",lost"
	}
	return s
}

// TokenHow is how the token of a serial run came to a thread.
func TokenHow(n uint64) string { return pick(tokenHow, n&^cabi.TokenHere) }

// CallName is the name of a call, known to this version or not.
func CallName(id uint64) string {
	if id == 0 {
		return "none"
	}
	if r := RowOf(id); r != nil {
		return r.Name
	}
	return "call" + strconv.FormatUint(id, 10)
}

// item is one field of a control record.
type item struct {
	name string
	kind FieldKind
	text string
	num  uint64
	raw  []byte
}

// describe names the parts of a control record.
func (p *Printer) describe(out []item, r *Record) (string, []item) {
	n := &r.Nums
	num := func(name string, v uint64) { out = append(out, item{name: name, num: v}) }
	snum := func(name string, v uint64) { out = append(out, item{name: name, kind: FieldSnum, num: v}) }
	word := func(name, s string) { out = append(out, item{name: name, kind: FieldStr, text: s}) }
	text := func(name string, b []byte) { out = append(out, item{name: name, kind: FieldPath, raw: b}) }
	hex := func(name string, v uint64) { out = append(out, item{name: name, kind: FieldHex, num: v}) }
	switch r.Tag {
	case cabi.TagObject:
		word("object", p.name(uint32(min(n[0], 1<<32-1)))+"#"+strconv.FormatUint(n[1], 10))
		word("kind", ObjKindName(n[2]))
		hex("at", n[3])
		text("detail", r.Text[0])
		return "object", out
	case cabi.TagCPU:
		out = append(out, item{name: "used", kind: FieldTime, num: n[0]})
		return "cpu", out
	case cabi.TagTime:
		return "time", out
	case cabi.TagOurs:
		num("ticks", n[0])
		return "ours", out
	case cabi.TagSignal:
		word("signal", SignalName(n[0]))
		word("during", CallName(n[1]))
		snum("code", n[2])
		num("pid", n[3])
		return "signal", out
	case cabi.TagSigRet:
		word("signal", SignalName(n[0]))
		return "sigreturn", out
	case cabi.TagThread:
		num("uid", n[0])
		num("parent", n[1])
		num("nth", n[2])
		num("tid", n[3])
		word("how", pick(threadHow, n[4]))
		return "thread", out
	case cabi.TagProc:
		num("number", n[0])
		num("parent", n[1])
		num("nth", n[3])
		num("pid", n[4])
		num("ppid", n[5])
		word("how", pick(procHow, n[6]))
		exe, rest, _ := strings.Cut(string(r.Text[0]), "\x00")
		_, args, _ := strings.Cut(rest, "\x00")
		text("exe", []byte(exe))
		text("args", []byte(strings.ReplaceAll(strings.TrimSuffix(args, "\x00"), "\x00", " ")))
		return "process", out
	case cabi.TagModule:
		hex("low", n[0])
		num("bytes", n[1])
		hex("bias", n[2])
		text("path", r.Text[0])
		word("build", string(appendBytes(nil, r.Text[1])))
		return "module", out
	case cabi.TagRSS:
		num("pages", n[0])
		return "resident", out
	case cabi.TagMark:
		word("kind", pick(markKind, n[0]))
		text("name", r.Text[0])
		return "mark", out
	case cabi.TagLeft:
		word("call", CallName(n[0]))
		out = append(out, item{name: "after", kind: FieldTime, num: uint64(p.t.Clock.NS(n[1]))})
		return "left", out
	case cabi.TagLost:
		word("what", LostWhy(n[0]))
		num("count", n[1])
		return "lost", out
	case cabi.TagLevel:
		word("level", LevelName(uint32(n[0])))
		return "level", out
	case cabi.TagExit:
		word("how", ExitHow(n[0]))
		snum("status", n[1])
		num("rchar", n[2])
		num("wchar", n[3])
		num("own", n[4])
		out = append(out, item{name: "cpu", kind: FieldTime, num: n[5]})
		out = append(out, item{name: "children", kind: FieldTime, num: n[6]})
		return "exit", out
	case cabi.TagKept:
		num("dev", n[0])
		num("ino", n[1])
		num("size", n[2])
		word("how", pick(keptHow, n[3]))
		text("path", r.Text[0])
		return "kept", out
	case cabi.TagWas:
		num("dev", n[0])
		num("ino", n[1])
		word("mode", fmt.Sprintf("%#o", n[2]))
		num("uid", n[3])
		num("gid", n[4])
		out = append(out, item{name: "mtime", kind: FieldTime, num: n[5]})
		if len(r.Text[0]) > 0 {
			text("link", r.Text[0])
		}
		return "was", out
	case cabi.TagUnseen:
		word("what", UnseenWhat(n[0]))
		num("arg", n[1])
		text("detail", r.Text[0])
		return "unseen", out
	case cabi.TagFork:
		num("nth", n[0])
		num("pid", n[1])
		num("how", n[2])
		return "fork", out
	case cabi.TagClock:
		num("ticks", n[0])
		out = append(out, item{name: "monotonic", kind: FieldTime, num: n[1]}, item{name: "realtime", kind: FieldTime, num: n[2]})
		return "clock", out
	case cabi.TagToken:
		num("number", n[0])
		word("how", TokenHow(n[1]))
		word("at", pick(tokenAt, n[1]/cabi.TokenHere))
		return "token", out
	case cabi.TagSigInfo:
		for i, name := range []string{"first", "second", "third", "fourth"} {
			num(name, n[i])
		}
		return "siginfo", out
	case cabi.TagPlace:
		hex("pc", n[0])
		hex("sp", n[1]&^cabi.PlaceOut)
		for i, name := range []string{"first", "second", "third"} {
			hex(name, n[2+i])
		}
		return "place", out
	case cabi.TagFrames:
		num("stack", n[0])
		num("bytes", uint64(len(r.Text[0])))
		return "frames", out
	case cabi.TagStack:
		num("stack", n[0])
		word("taken", StackWhy(n[1]))
		num("frames", uint64(len(r.Stack)))
		return "stack", out
	case cabi.TagSample:
		num("stack", n[0])
		out = append(out, item{name: "used", kind: FieldTime, num: n[1]})
		num("frames", uint64(len(r.Stack)))
		return "sample", out
	}
	return "record" + strconv.Itoa(int(r.Tag)), out
}

// OrderLevel is the level that records order and nothing else.
const OrderLevel = 1<<cabi.Sync | 1<<cabi.Stdio | 1<<cabi.Thread | 1<<cabi.Signal | 1<<cabi.Mark

// LevelName is the word for a level.
func LevelName(l uint32) string {
	switch l {
	case cabi.LevelOff:
		return "off"
	case OrderLevel:
		return "order"
	case cabi.LevelFull:
		return "full"
	}
	return "0x" + strconv.FormatUint(uint64(l), 16)
}

// LevelByName returns the level of that name.
func LevelByName(s string) (uint32, bool) {
	switch s {
	case "off":
		return cabi.LevelOff, true
	case "order":
		return OrderLevel, true
	case "full":
		return cabi.LevelFull, true
	}
	return 0, false
}

func (p *Printer) control(b []byte, r *Record) []byte {
	var room [12]item
	what, items := p.describe(room[:0], r)
	b = p.head(b, r)
	b = append(b, "-       "...)
	b = append(b, what...)
	for i := range items {
		it := &items[i]
		b = append(b, ' ')
		b = append(b, it.name...)
		b = append(b, '=')
		switch it.kind {
		case FieldNum:
			b = strconv.AppendUint(b, it.num, 10)
		case FieldSnum:
			b = strconv.AppendInt(b, int64(it.num), 10)
		case FieldHex:
			b = appendHex(b, it.num)
		case FieldTime:
			b = appendSeconds(b, int64(it.num))
		case FieldPath:
			b = appendQuoted(b, it.raw)
		default:
			b = appendText(b, it.text)
		}
	}
	return b
}

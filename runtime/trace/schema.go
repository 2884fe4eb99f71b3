package trace

import (
	"strings"

	"prophet/cabi"
)

// RetKind is how a row encodes its result.
type RetKind uint8

// The encodings of results.
const (
	RetErrno RetKind = iota // the result; negative is -errno
	RetErr                  // an error number
	RetPtr                  // 1, or -errno for NULL
	RetInt
	RetUint
	RetVoid
)

var retKinds = map[string]RetKind{"errno": RetErrno, "err": RetErr, "ptr": RetPtr, "int": RetInt, "uint": RetUint, "void": RetVoid}

// FieldKind is what a field of a tail or an input is.
type FieldKind uint8

// The kinds of fields.
const (
	FieldNum FieldKind = iota
	FieldSnum
	FieldPath
	FieldStr
	FieldTime // ns, shown as seconds
	FieldHex  // bytes, shown in hex
	FieldOct
)

// FieldSpec names one field.
type FieldSpec struct {
	Name string
	Kind FieldKind
}

// Row is a row of the table of calls, as the decoder needs it: its Rec taken apart.
type Row struct {
	*cabi.Call
	Ret    RetKind
	Obj    string // kind of the object; "" when it has none
	F      [3]string
	Seq    bool
	Tail   []FieldSpec
	Inputs []string // helpers of structured results, in order
	Reads  bool     // input data follows
	Writes bool
	Random bool
	In     bool // its result, where positive, is how many bytes it took in
	Out    bool // and gave out

	open  string // what is printed before the arguments: the name and a bracket
	addrs [3]bool
}

// rows is the table by ID; nil where no call has that ID.
var rows = buildRows()

func buildRows() []*Row {
	var max uint16
	for i := range cabi.Calls {
		max = maxOf(max, cabi.Calls[i].ID)
	}
	t := make([]*Row, int(max)+1)
	for i := range cabi.Calls {
		t[cabi.Calls[i].ID] = parseRow(&cabi.Calls[i])
	}
	return t
}

func maxOf(a, b uint16) uint16 {
	if a > b {
		return a
	}
	return b
}

// RowOf returns the row of a call, or nil when this version of Prophet does not know it.
func RowOf(call uint64) *Row {
	if call < uint64(len(rows)) {
		return rows[call]
	}
	return nil
}

func parseRow(c *cabi.Call) *Row {
	r := &Row{Call: c, open: c.Name + "("}
	for _, step := range strings.Split(c.Rec, ";") {
		w := strings.Fields(step)
		if len(w) == 0 {
			continue
		}
		arg := ""
		if len(w) > 1 {
			arg, _, _ = strings.Cut(w[1], "=")
		}
		switch w[0] {
		case "ret":
			r.Ret = retKinds[arg]
		case "obj":
			r.Obj = arg
		case "f1", "f2", "f3":
			i := w[0][1] - '1'
			r.F[i] = arg
			r.addrs[i] = arg == "addr" || strings.HasSuffix(arg, "addr")
		case "seq":
			r.Seq = true
		case "path":
			r.Tail = append(r.Tail, FieldSpec{arg, FieldPath})
		case "num":
			r.Tail = append(r.Tail, FieldSpec{arg, FieldNum})
		case "snum":
			r.Tail = append(r.Tail, FieldSpec{arg, FieldSnum})
		case "str":
			r.Tail = append(r.Tail, FieldSpec{arg, FieldStr})
		case "data", "dataiov":
			r.Reads = true
		case "wrote", "wroteiov":
			r.Writes = true
		case "random":
			r.Random = true
		case "input":
			r.Inputs = append(r.Inputs, arg)
		}
	}
	moved := moves[strings.TrimSuffix(strings.TrimSuffix(c.Name, "v2"), "64")]
	r.In = (r.Reads || moved&movesIn != 0) && !counts[c.Name]
	r.Out = (r.Writes || moved&movesOut != 0) && !counts[c.Name]
	return r
}

const movesIn, movesOut = 1, 2

// moves are calls that move bytes where their steps do not tell.
var moves = map[string]int{"sendmsg": movesOut, "recvmsg": movesIn, "sendfile": movesIn | movesOut, "copy_file_range": movesIn | movesOut,
	"splice": movesIn | movesOut, "msgrcv": movesIn}

// counts are calls that move data and whose result is something else.
var counts = map[string]bool{"mq_send": true, "mq_timedsend": true}

var objNames = [...]string{"", "mutex", "rwlock", "cond", "barrier", "sem", "spin", "once", "guard", "stdio", "fd", "path",
	"thread", "process", "clock", "timer", "futex", "rand", "shared"}

// ObjKindName is the word for a kind of object.
func ObjKindName(kind uint64) string {
	if kind < uint64(len(objNames)) {
		return objNames[kind]
	}
	return "object"
}

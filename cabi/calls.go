package cabi

// Class groups calls; the recording level has a bit for each (1 << Class). Append-only.
type Class uint8

// The classes.
const (
	Disk Class = iota
	Net
	Sync
	Thread // threads and processes
	Time
	Random
	Shape // the machine's shape and who we are
	Signal
	Memory
	Stdio
	Mark
	classes
)

var classNames = [classes]string{"disk", "net", "sync", "thread", "time", "random", "shape", "signal", "memory", "stdio", "mark"}

func (c Class) String() string {
	if c < classes {
		return classNames[c]
	}
	return "unknown"
}

// Body says how a row's wrapper comes to be.
type Body uint8

// The bodies.
const (
	Plain Body = iota // printed by tools/gen from Rec
	Hand              // written by hand in shim/hook_*.c; Rec tells the decoder what it records
	Known             // not intercepted; Note says why
)

// Support is how well a call is covered by a part of Prophet.
type Support uint8

// The support levels.
const (
	Full Support = iota
	Partial
	None
)

// Call is one row of the table of intercepted functions.
//
// Rec is a list of steps separated by ';'. The generator prints the wrapper from it, the decoder reads events by
// it, and `prophet calls` shows it:
//
//	ret errno|err|ptr|int|uint|void   how the result is encoded: -1 with errno (as -errno), an error number,
//	                             a pointer (1, or -errno for NULL), a number as it is, nothing. Default: errno
//	obj KIND EXPR                the object: KIND is fd, path, mutex, …: shim_obj_KIND(t, EXPR)
//	f1|f2|f3 NAME[=EXPR]         a predicted number; EXPR defaults to NAME
//	seq                          the event has a place in its object's order (hand-written wrappers only)
//	path NAME[=EXPR]             tail: a path, P
//	num NAME[=EXPR]              tail: a number, V
//	snum NAME[=EXPR]             tail: a signed number, Z
//	str NAME[=EXPR]              tail: a string, S
//	data FD BUF LEN              input data of LEN bytes (when > 0) that came from FD
//	wrote FD BUF LEN             output data: hashed when inputs are
//	dataiov FD V N LEN           the same of the first LEN bytes of N pieces
//	wroteiov FD V N LEN
//	random BUF LEN               input data that is always kept
//	input HELPER ARGS…           structured result: shim_input_HELPER(&ev, ARGS); Go decodes it by HELPER's name
//	pre HELPER ARGS…             shim_pre_HELPER(&ev, ARGS) before the call
//	do HELPER ARGS…              shim_do_HELPER(&ev, ARGS) after the call, before the event is written; `r` is the result
//	post HELPER ARGS…            shim_post_HELPER(&ev, ARGS) after the event is written
//
// EXPR and ARGS are C over the parameters and r (without spaces).
type Call struct {
	ID      uint16 // stored in traces: never changed, never used again
	Name    string // as the linker knows it
	Sig     string // C prototype; parameters are named
	Class   Class
	Body    Body
	Block   bool   // can wait: two stamps
	Rec     string // see above
	Number  string // of a plain row: the system call that takes the same arguments and does the same; made by number it is this event
	Sys     string // of a plain row that blocks: the system call that glibc's function is, "read fd buf n" (see shim_may_ask)
	Reexec  string // how it is re-executed: real, order, feed, none
	Feed    string // statements in C that give the caller what the expected event x has (shim/feed.h); "ret": only the result; "try": the call is made, too, and how that goes does not matter; "REAL()": made in its place. Otherwise a stand-in by hand, if any
	Skip    string // what of the event is not compared in a re-execution: f1, f2, f3, ret, obj, tail
	Issue   string // how it is issued: same, order, map, cpu, skip
	Support Support
	Version string // the symbol's version when it is not the default one; such rows are amd64's alone
	Default string // the version to export the default one with, where another row has the name with an older one
	Test    string // program in tests/calls that calls it
	Note    string
}

// Calls is the whole table, in the order of its parts. IDs are unique; lookups go through ByID.
var Calls = join(callsSync, callsDisk, callsFiles, callsNet, callsStdio, callsThread, callsTime, callsShape, callsSignal, callsUnseen)

func join(parts ...[]Call) []Call {
	var all []Call
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

var byID = func() map[uint16]*Call {
	m := make(map[uint16]*Call, len(Calls))
	for i := range Calls {
		m[Calls[i].ID] = &Calls[i]
	}
	return m
}()

// ByID returns the row of a call, or nil.
func ByID(id uint16) *Call { return byID[id] }

// ClassByName returns the class of that name.
func ClassByName(name string) (Class, bool) {
	for i, n := range classNames {
		if n == name {
			return Class(i), true
		}
	}
	return 0, false
}

// ClassSet is a set of classes, by bit.
type ClassSet uint32

// Has reports whether the class is in the set.
func (s ClassSet) Has(c Class) bool { return s>>c&1 != 0 }

// SetOf makes a set.
func SetOf(list ...Class) ClassSet {
	var s ClassSet
	for _, c := range list {
		s |= 1 << c
	}
	return s
}

// Classes is how many classes there are.
const Classes = int(classes)

package client

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Kind says what an event is.
type Kind uint32

// The kinds of events.
const (
	Call     Kind = 1
	MarkSeen Kind = 2 // Event.Call is "point", "begin" or "end", its one field the name
)

// Flags of an event.
const (
	Waited   = 1 << iota // it had to wait
	Cut                  // its texts are longer than what was kept
	Vforked              // made by a vforked child
	Delayed              // a delay was injected
	OnlyTime             // its result was not known when it was written
	Timed    = 1 << 8    // End was measured
)

// Field is an argument of a call: text, or a number.
type Field struct {
	Name   string
	Text   []byte // nil for a number
	Number int64  // of an unsigned one the same bits
	Signed bool
}

// Event is one event of a trace. prophet.h says what its fields are.
type Event struct {
	Kind         Kind
	Thread       string
	UID, Process uint32
	PID, TID     uint32
	Number       uint64
	Call         string
	Class        string
	CallID       uint32
	Flags        uint32
	Begin, End   time.Duration // since the start of the run
	Object       string
	ObjectUID    uint32
	ObjectNumber uint64
	Errno        syscall.Errno
	Ret          int64
	Order        uint64
	PC           uint64
	Fields       []Field
}

// The structures of prophet.h.
type cField struct {
	name, text *byte
	length     uint64
	value      int64
	kind, _    uint32
}

type cEvent struct {
	size, kind     uint32
	thread         *byte
	uid, process   uint32
	pid, tid       uint32
	number         uint64
	call, category *byte
	callID, flags  uint32
	begin, end     int64
	object         *byte
	objectNumber   uint64
	objectUID      uint32
	err            int32
	ret            int64
	order, pc      uint64
	fields, _      uint32
	field          *cField
}

type cInfo struct {
	size, processes, threads, complete uint32
	ticksHz, damage                    uint64
	start                              int64
	chunks                             uint64
}

// Info is what a trace says about its run.
type Info struct {
	Processes, Threads int
	Complete           bool // the run has ended and its trace was completed
	Damage             uint64
	Start              time.Time
	Chunks             uint64
}

// Damage says that a part of the trace cannot be read; reading goes on behind it.
type Damage struct{ Text string }

func (d *Damage) Error() string { return d.Text }

// Trace is an open trace, to be used by one goroutine at a time.
type Trace struct {
	l     *library
	h     uintptr
	e     *cEvent
	calls map[uint32]string
	names map[uint32]string
}

// Open opens a trace, a directory or a packed file.
func Open(path string) (*Trace, error) {
	l, err := load()
	if err != nil {
		return nil, err
	}
	t := &Trace{l: l, e: &cEvent{}, calls: map[uint32]string{}, names: map[uint32]string{}}
	name := cstring(path)
	h := new(uintptr)
	r := call(l.open, uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(h)))
	runtime.KeepAlive(name)
	if t.h = *h; r < 0 {
		defer t.Close()
		return nil, t.fail(r)
	}
	return t, nil
}

func (t *Trace) fail(r int) error {
	s := ""
	if t.h != 0 {
		s = callText(t.l.traceError, t.h)
	}
	if s == "" {
		s = callText(t.l.reason, uintptr(r))
	}
	return &Error{syscall.Errno(-r), s}
}

// Close releases the trace.
func (t *Trace) Close() error {
	if t.h != 0 {
		purego.SyscallN(t.l.close, t.h)
		t.h = 0
	}
	return nil
}

// Info tells about the run.
func (t *Trace) Info() (Info, error) {
	i := &cInfo{size: uint32(unsafe.Sizeof(cInfo{}))}
	if r := call(t.l.about, t.h, uintptr(unsafe.Pointer(i))); r < 0 {
		return Info{}, t.fail(r)
	}
	return Info{int(i.processes), int(i.threads), i.complete != 0, i.damage, time.Unix(0, i.start), i.chunks}, nil
}

// Rewind begins again: at the first event of all threads for uid 0, else of the thread with that number.
func (t *Trace) Rewind(uid uint32) error {
	if r := call(t.l.rewind, t.h, uintptr(uid)); r < 0 {
		return t.fail(r)
	}
	return nil
}

// Next returns the next event in the order of time, io.EOF at the end. After a *Damage reading may go on.
func (t *Trace) Next() (*Event, error) {
	t.e.size = uint32(unsafe.Sizeof(cEvent{}))
	switch r := call(t.l.next, t.h, uintptr(unsafe.Pointer(t.e))); {
	case r == 0:
		return nil, io.EOF
	case r == -int(syscall.EBADMSG):
		return nil, &Damage{callText(t.l.traceError, t.h)}
	case r < 0:
		return nil, t.fail(r)
	}
	return t.event(), nil
}

// event copies what the library filled.
func (t *Trace) event() *Event {
	c := t.e
	e := &Event{Kind: Kind(c.kind), UID: c.uid, Process: c.process, PID: c.pid, TID: c.tid, Number: c.number,
		Class: text(c.category), CallID: c.callID, Flags: c.flags, Begin: time.Duration(c.begin), End: time.Duration(c.end),
		Object: text(c.object), ObjectUID: c.objectUID, ObjectNumber: c.objectNumber, Errno: syscall.Errno(c.err), Ret: c.ret,
		Order: c.order, PC: c.pc}
	e.Thread = once(t.names, c.uid, c.thread)
	if e.Kind == Call {
		e.Call = once(t.calls, c.callID, c.call)
	} else {
		e.Call = text(c.call)
	}
	for _, f := range unsafe.Slice(c.field, c.fields) {
		g := Field{Name: text(f.name), Number: f.value, Signed: f.kind == 0}
		if f.kind == 2 {
			g.Text = append([]byte{}, unsafe.Slice(f.text, f.length)...)
		}
		e.Fields = append(e.Fields, g)
	}
	return e
}

// once copies a text that is the same for the same number.
func once(m map[uint32]string, key uint32, p *byte) string {
	s, ok := m[key]
	if !ok {
		s = text(p)
		m[key] = s
	}
	return s
}

// Events ranges over the events of the trace from where it stands. Damage comes as an error with a nil event, and the
// range goes on behind it; any other error is the last.
func (t *Trace) Events() iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		for {
			e, err := t.Next()
			if err == io.EOF {
				return
			}
			var d *Damage
			if !yield(e, err) || err != nil && !errors.As(err, &d) {
				return
			}
		}
	}
}

func (e *Event) String() string {
	return fmt.Sprintf("%s #%d %s(%s) = %d", e.Thread, e.Number, e.Call, e.Object, e.Ret)
}

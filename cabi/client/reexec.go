package client

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
)

// ReexecOptions says how to re-execute. The zero value is as this process runs.
type ReexecOptions struct {
	Args    []string // the program and its arguments; nil: as the trace says
	Env     []string // nil: this process's
	Dir     string   // where to run; "": here
	Stdin   *os.File // nil: this process's
	Stdout  *os.File
	Flags   []string // further flags of replayd
	Replayd string   // "": found by PROPHET_REPLAYD, beside the library, or by PATH
	Control bool     // with a control socket
}

// Result is how a re-execution ended.
type Result struct {
	Status    int            // exit status; 125: diverged or could not be re-executed; -1: ended by Signal
	Signal    syscall.Signal // 0 for none
	Identical bool           // every event was as recorded
	Events    uint64         // of an identical one
	Threads   int
	Processes int
	Report    string // the end of what replayd and the program wrote to standard error
}

// Reexec is a re-execution under way, to be used by one goroutine at a time.
type Reexec struct {
	l *library
	h uintptr
}

type cOptions struct {
	size, control uint32
	in, out       int32
	flags, env    **byte
	dir, replayd  *byte
}

type cResult struct {
	size           uint32
	status, signal int32
	identical      uint32
	events         uint64
	threads, procs uint32
}

// list is a NULL-terminated array of C strings; nil for nil.
func list(all []string) **byte {
	if all == nil {
		return nil
	}
	out := make([]*byte, len(all)+1)
	for i, s := range all {
		out[i] = cstring(s)
	}
	return &out[0]
}

// StartReexec starts a re-execution of a trace.
func StartReexec(trace string, o ReexecOptions) (*Reexec, error) {
	l, err := load()
	if err != nil {
		return nil, err
	}
	if trace, err = filepath.Abs(trace); err != nil {
		return nil, err
	}
	c := &cOptions{size: uint32(unsafe.Sizeof(cOptions{})), in: -1, out: -1, flags: list(o.Flags), env: list(o.Env)}
	if o.Control {
		c.control = 1
	}
	if o.Stdin != nil {
		c.in = int32(o.Stdin.Fd())
	}
	if o.Stdout != nil {
		c.out = int32(o.Stdout.Fd())
	}
	if o.Dir != "" {
		c.dir = cstring(o.Dir)
	}
	if o.Replayd != "" {
		c.replayd = cstring(o.Replayd)
	}
	x := &Reexec{l: l}
	args, name, h := list(o.Args), cstring(trace), new(uintptr)
	r := call(l.reexec, uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(args)), uintptr(unsafe.Pointer(c)), uintptr(unsafe.Pointer(h)))
	runtime.KeepAlive(args)
	runtime.KeepAlive(name)
	runtime.KeepAlive(c)
	runtime.KeepAlive(o)
	if x.h = *h; r < 0 {
		defer x.Close()
		return nil, x.fail(r)
	}
	return x, nil
}

func (x *Reexec) fail(r int) error {
	s := ""
	if x.h != 0 {
		s = callText(x.l.reexecError, x.h)
	}
	if s == "" {
		s = callText(x.l.reason, uintptr(r))
	}
	return &Error{syscall.Errno(-r), s}
}

// slice is how long one wait in C takes at most, in ms, so that a context is heard.
const slice = 20

// Wait waits for the end of the re-execution, or of the context: then it still runs, until Close.
func (x *Reexec) Wait(ctx context.Context) (*Result, error) {
	c := &cResult{}
	for {
		c.size = uint32(unsafe.Sizeof(cResult{}))
		switch r := call(x.l.wait, x.h, slice, uintptr(unsafe.Pointer(c))); {
		case r < 0:
			return nil, x.fail(r)
		case r == 1:
			return &Result{Status: int(c.status), Signal: syscall.Signal(c.signal), Identical: c.identical != 0, Events: c.events,
				Threads: int(c.threads), Processes: int(c.procs), Report: x.Report()}, nil
		}
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
	}
}

// Report is the end of what replayd and the program have written to standard error so far.
func (x *Reexec) Report() string { return callText(x.l.report, x.h) }

// PID is replayd's.
func (x *Reexec) PID() int { return call(x.l.pid, x.h) }

// Socket is the path of the control socket; "" without one.
func (x *Reexec) Socket() string { return callText(x.l.socket, x.h) }

// Ask makes a request of replayd's control protocol (package replayd/proto) and fills answer, when that is not nil, from
// the JSON object that comes. request is a struct or a map without an id:
//
//	x.Ask(ctx, map[string]any{"do": "run-to", "thread": "p0/1", "event": 17}, nil)
//
// A refusal is an *Error that wraps syscall.EPROTO. Of the context only its deadline counts.
func (x *Reexec) Ask(ctx context.Context, request, answer any) error {
	b, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	ms := -1
	if end, ok := ctx.Deadline(); ok {
		ms = int(min(max(time.Until(end).Milliseconds(), 1), 1<<30))
	}
	s, line := cstring(string(b)), new(*byte)
	r := call(x.l.ask, x.h, uintptr(unsafe.Pointer(s)), uintptr(ms), uintptr(unsafe.Pointer(line)))
	if r < 0 {
		return x.fail(r)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal([]byte(text(*line)), answer)
}

// Pause stops the world: all threads stand, and so does their time.
func (x *Reexec) Pause(ctx context.Context) error {
	return x.Ask(ctx, map[string]string{"do": "pause"}, nil)
}

// Resume lets a paused world go on.
func (x *Reexec) Resume(ctx context.Context) error {
	return x.Ask(ctx, map[string]string{"do": "resume"}, nil)
}

// Close lets go: a re-execution that still runs is ended.
func (x *Reexec) Close() error {
	if x.h != 0 {
		purego.SyscallN(x.l.free, x.h)
		x.h = 0
	}
	return nil
}

// Reexecute runs a trace again and waits for its end.
func Reexecute(ctx context.Context, trace string, o ReexecOptions) (*Result, error) {
	x, err := StartReexec(trace, o)
	if err != nil {
		return nil, err
	}
	r, err := x.Wait(ctx)
	return r, errors.Join(err, x.Close())
}

// Package proto is the control protocol of replayd: what is said over the unix socket that `replayd … --control SOCKET`
// makes, and how it is read. Both sides distrust each other's bytes: every line is bounded, every field checked.
//
// # The connection
//
// The socket is of mode 0600; the kernel says who connects (SO_PEERCRED), and only the daemon's own user is
// served. One JSON object a line (LF), UTF-8. The daemon speaks first, then each request gets one answer, in order.
// A line that is no request, or one longer than 64 KiB, is answered with an error; after a line that is too long the connection is closed. Up to 16
// connections at a time. Closing the connection while an answer is awaited gives up what was asked; the
// world stays as it then is.
//
//	← {"hello":"prophet","v":1,"world":"recording","trace":"/tmp/app.prophet","pid":4711}
//	→ {"id":1,"do":"pause"}
//	← {"id":1,"ok":true,"stop":{"reason":"paused","took_ns":210345,"halted":1}}
//	→ {"id":2,"do":"step"}
//	← {"id":2,"ok":false,"code":"only-reexec","error":"only a re-execution can be stepped","hint":"…"}
//
// `v` grows when a client must know more to understand what is said; new fields and requests do not change it. The daemon refuses
// requests with fields that it does not know, so that a wish is never half granted.
//
// # Requests
//
//	do       fields                                       answer
//	status                                                status: every thread
//	pause                                                 stop
//	resume                                                stop
//	continue                                              stop, when the world stands by itself: at a break, or it has ended
//	clock                                                 clock
//	run-to   thread and event, or time_ns, or mark        stop, when it is reached or cannot be
//	step     thread ("": all), count (1)                  stop
//	break    object or call, thread; clear: take it away  stop with reason "set" or "cleared"
//	detach                                                stop with reason "detached"; from then on the world is a recording
//
// thread is a thread's name in the trace (p0, p0/1, p0.2/1) or its uid in decimal, object one's name as `prophet dump` has it (p0#3). Times are ns of virtual time since the start of the run.
package proto

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Bounds.
const (
	Version     = 1
	RequestMax  = 64 << 10
	AnswerMax   = 16 << 20
	TextMax     = 256 // of one field of a request
	Connections = 16
	CountMax    = 1 << 40
)

// Do is what a request asks for.
type Do string

// All that can be asked for.
const (
	DoStatus   Do = "status"
	DoPause    Do = "pause"
	DoResume   Do = "resume"
	DoClock    Do = "clock"
	DoRunTo    Do = "run-to"
	DoContinue Do = "continue"
	DoStep     Do = "step"
	DoBreak    Do = "break"
	DoDetach   Do = "detach"
)

// Hello is the daemon's first line.
type Hello struct {
	Hello string `json:"hello"` // "prophet"
	V     int    `json:"v"`
	World string `json:"world"` // "recording" or "re-execution"
	Trace string `json:"trace"`
	PID   int    `json:"pid"` // of the daemon
}

// Request is one line of a client.
type Request struct {
	ID     uint64 `json:"id"`
	Do     Do     `json:"do"`
	Thread string `json:"thread,omitempty"`
	Event  uint64 `json:"event,omitempty"`
	TimeNS uint64 `json:"time_ns,omitempty"`
	Mark   string `json:"mark,omitempty"`
	Count  uint64 `json:"count,omitempty"`
	Object string `json:"object,omitempty"`
	Call   string `json:"call,omitempty"`
	Clear  bool   `json:"clear,omitempty"`
}

// Answer is the daemon's line to a request.
type Answer struct {
	ID     uint64  `json:"id"`
	OK     bool    `json:"ok"`
	Code   Code    `json:"code,omitempty"`
	Error  string  `json:"error,omitempty"`
	Hint   string  `json:"hint,omitempty"` // what to do
	Status *Status `json:"status,omitempty"`
	Stop   *Stop   `json:"stop,omitempty"`
	Clock  *Clock  `json:"clock,omitempty"`
}

// Code says which kind of error it is.
type Code string

// The codes.
const (
	BadRequest Code = "bad-request"
	OnlyReexec Code = "only-reexec" // a run that is being recorded cannot do that
	NotPaused  Code = "not-paused"
	NotStarted Code = "not-started" // the program has not begun to record yet
	Ended      Code = "ended"
	Failed     Code = "failed"
)

// Status is what every thread is doing.
type Status struct {
	World   string   `json:"world"`
	Trace   string   `json:"trace"`
	Paused  bool     `json:"paused"`
	Level   string   `json:"level,omitempty"`
	Serial  bool     `json:"serial,omitempty"`
	Threads []Thread `json:"threads"`
	Breaks  []string `json:"breaks,omitempty"`
}

// Thread is one of them.
type Thread struct {
	Name    string `json:"name"` // in the trace
	UID     uint32 `json:"uid"`
	PID     uint32 `json:"pid"` // where the daemon runs, as gdb needs it
	TID     uint32 `json:"tid"`
	Event   uint64 `json:"event"`          // how many it has had
	Call    string `json:"call,omitempty"` // that it is inside of
	SinceNS int64  `json:"since_ns,omitempty"`
	Last    string `json:"last,omitempty"`   // the call of its last event
	State   string `json:"state"`            // running, parked, in call, stopped, waiting, ending (asked for more than the trace has), ended, diverged, dead
	Object  string `json:"object,omitempty"` // that it waits at
	Turn    uint64 `json:"turn,omitempty"`   // its own turn there
	At      uint64 `json:"at,omitempty"`     // the one that has to be taken, or given back, before
	For     string `json:"for,omitempty"`    // by this thread
}

// Stop is how the world came to stand, or to go. waiting: the thread cannot go on, as it waits at Object for the turn of For,
// or in its call for what is outside of Prophet's sight.
type Stop struct {
	Reason string `json:"reason"` // paused, resumed, reached, stepped, waiting, broke, set, cleared, detached, ended, diverged
	Thread string `json:"thread,omitempty"`
	Event  uint64 `json:"event,omitempty"`
	Call   string `json:"call,omitempty"`
	Object string `json:"object,omitempty"`
	For    string `json:"for,omitempty"`
	TookNS int64  `json:"took_ns,omitempty"`
	Halted int    `json:"halted,omitempty"` // processes that had to be stopped by a signal
	Moving []int  `json:"moving,omitempty"` // tids of threads that could not be stopped
}

// Clock is virtual time: what the program's clocks show.
type Clock struct {
	Paused   bool   `json:"paused"`
	RealNS   uint64 `json:"realtime_ns"`
	MonoNS   uint64 `json:"monotonic_ns"`
	SinceNS  uint64 `json:"since_start_ns"`
	BehindNS uint64 `json:"behind_ns"` // the kernel's clocks: how long the run has been paused
}

// Error is an answer that is one, and any error of a world that should arrive with its code and hint.
type Error struct {
	Code Code
	Text string
	Hint string
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Text
	}
	return e.Text + "; " + e.Hint
}

// Errorf makes an Error without a hint.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Text: fmt.Sprintf(format, args...)}
}

// Refuse is the answer to a request that failed.
func Refuse(id uint64, err error) Answer {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Code: Failed, Text: err.Error()}
	}
	return Answer{ID: id, Code: e.Code, Error: e.Text, Hint: e.Hint}
}

// ParseRequest reads one line. What it returns has been checked. The id is good where it could be read, also with an
// error.
func ParseRequest(line []byte) (Request, error) {
	var r Request
	if len(line) > RequestMax {
		return r, Errorf(BadRequest, "the request is longer than %d bytes", RequestMax)
	}
	if !utf8.Valid(line) {
		return r, Errorf(BadRequest, "the request is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, Errorf(BadRequest, "not a request: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return r, Errorf(BadRequest, "a line holds one request")
	}
	return r, r.check()
}

func (r *Request) check() error {
	for _, s := range []string{r.Thread, r.Mark, r.Object, r.Call} {
		if len(s) > TextMax {
			return Errorf(BadRequest, "a name is longer than %d bytes", TextMax)
		}
	}
	if r.Count > CountMax || r.Event > CountMax {
		return Errorf(BadRequest, "no run has that many events")
	}
	none := Request{ID: r.ID, Do: r.Do}
	switch r.Do {
	case DoStatus, DoPause, DoResume, DoContinue, DoClock, DoDetach:
		if *r != none {
			return Errorf(BadRequest, "%s takes no further fields", r.Do)
		}
	case DoRunTo:
		n := 0
		for _, is := range []bool{r.Event != 0, r.TimeNS != 0, r.Mark != ""} {
			if is {
				n++
			}
		}
		if n != 1 || r.Event != 0 && r.Thread == "" {
			return &Error{BadRequest, "run-to takes one aim", "give thread and event, or time_ns, or mark"}
		}
		if r.Count != 0 || r.Object != "" || r.Call != "" || r.Clear {
			return Errorf(BadRequest, "run-to takes thread, event, time_ns and mark")
		}
	case DoStep:
		if r.Event != 0 || r.TimeNS != 0 || r.Mark != "" || r.Object != "" || r.Call != "" || r.Clear {
			return Errorf(BadRequest, "step takes thread and count")
		}
	case DoBreak:
		if (r.Object == "") == (r.Call == "") {
			return &Error{BadRequest, "break takes one place", "give object or call"}
		}
		if r.Event != 0 || r.TimeNS != 0 || r.Mark != "" || r.Count != 0 {
			return Errorf(BadRequest, "break takes object or call, thread and clear")
		}
	case "":
		return Errorf(BadRequest, "the request does not say what to do")
	default:
		return &Error{BadRequest, fmt.Sprintf("%q cannot be asked for", r.Do), "there are status, pause, resume, continue, clock, run-to, step, break, detach"}
	}
	return nil
}

// ParseAnswer reads one line of a daemon.
func ParseAnswer(line []byte) (Answer, error) {
	var a Answer
	if len(line) > AnswerMax {
		return a, fmt.Errorf("the daemon's answer is longer than %d bytes", AnswerMax)
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return a, fmt.Errorf("the daemon's answer cannot be read: %w", err)
	}
	if a.OK == (a.Error != "") {
		return a, errors.New("the daemon's answer contradicts itself")
	}
	return a, nil
}

// ParseHello reads a daemon's first line.
func ParseHello(line []byte) (Hello, error) {
	var h Hello
	if err := json.Unmarshal(line, &h); err != nil || h.Hello != "prophet" {
		return h, errors.New("what listens there is not replayd")
	}
	if h.V != Version {
		return h, fmt.Errorf("the daemon speaks version %d of the protocol, this is %d: use programs of one build", h.V, Version)
	}
	return h, nil
}

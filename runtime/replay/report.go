package replay

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// Result is how a re-execution went, as --json prints it.
type Result struct {
	Identical  bool        `json:"identical"`
	Events     uint64      `json:"events"`       // compared
	Quick      uint64      `json:"events_quick"` // of these, compared where they lie in the trace, as they came as predicted
	Threads    int         `json:"threads"`
	Processes  int         `json:"processes"`
	Signals    uint32      `json:"signals_between_calls"`
	Placed     uint32      `json:"signals_placed"` // that came between two calls as well, but where they were
	Pids       uint32      `json:"pids_translated"`
	Status     int         `json:"status"`          // exit status of replayd
	CPUNS      int64       `json:"cpu_ns"`          // CPU time of the program and its surroundings
	Stood      string      `json:"stood,omitempty"` // the recorded run was ended from outside, and this one stood there, too
	Error      string      `json:"error,omitempty"`
	Difference *Difference `json:"difference,omitempty"`
	Cut        uint64      `json:"operations_cut,omitempty"` // of an issue, that its trace does not have: nothing is proven of these
	Learnt     string      `json:"learnt,omitempty"`         // the trace of a run that differed and went on as it came
}

// Difference is the first one, and all that is known of it. Texts are as they may be shown.
type Difference struct {
	What         string     `json:"what"` // call, result, field, …; stall, spin
	Headline     string     `json:"headline"`
	Thread       string     `json:"thread,omitempty"`
	Process      string     `json:"process,omitempty"`
	PID          uint32     `json:"pid,omitempty"` // as recorded
	Event        uint64     `json:"event"`         // its number in the thread, as dump has it
	Call         string     `json:"call,omitempty"`
	Expected     string     `json:"expected,omitempty"`
	ExpectedSite string     `json:"expected_site,omitempty"`
	Came         string     `json:"came,omitempty"`
	CameSite     string     `json:"came_site,omitempty"`
	Detail       string     `json:"detail,omitempty"` // which of its parts differs
	Last         []string   `json:"last,omitempty"`
	Standing     []Standing `json:"threads,omitempty"`
	Held         []string   `json:"held,omitempty"`
	Cycle        []string   `json:"cycle,omitempty"`
	Causes       []Cause    `json:"causes"`
}

// Standing is where a thread was when all stopped.
type Standing struct {
	Thread string `json:"thread"`
	State  string `json:"state"`
	Event  uint64 `json:"event"`
	Call   string `json:"call,omitempty"`
	Object string `json:"object,omitempty"` // that it waits for its turn at
	Place  uint64 `json:"place,omitempty"`
	Ahead  uint64 `json:"ahead,omitempty"` // turns that come before
	By     string `json:"by,omitempty"`    // who takes the first of them
	ByAt   uint64 `json:"by_event,omitempty"`
}

// Cause is a likely one, and the fact that speaks for it.
type Cause struct {
	Cause string `json:"cause"`
	Why   string `json:"why"`
}

// What differs, by cabi's numbers.
var whats = map[uint32]string{
	cabi.DiffersCall: "call", cabi.DiffersResult: "result", cabi.DiffersField: "field", cabi.DiffersObject: "object",
	cabi.DiffersTurn: "turn", cabi.DiffersText: "text", cabi.DiffersData: "data", cabi.DiffersThread: "thread",
	cabi.DiffersMore: "more", cabi.DiffersLess: "less", cabi.DiffersTrace: "trace", cabi.DiffersSignal: "signal", cabi.DiffersFault: "fault", cabi.DiffersExit: "exit",
}

// Of differences that no thread has found.
const (
	WhatStall  = "stall"  // nothing can move
	WhatSpin   = "spin"   // a thread runs without coming to its next event
	WhatStatus = "status" // the run ended otherwise
	WhatLess   = "less"
)

// CallName is the name of a call.
func CallName(id uint32) string {
	if id == 0 {
		return "nothing"
	}
	return trace.CallName(uint64(id))
}

func threadName(t *trace.Trace, uid uint32) string {
	if th := t.ThreadByUID(uid); th != nil {
		return th.Name
	}
	return fmt.Sprintf("number %d", uid)
}

// objectName names an object as dump does, with its kind where the row of a call tells.
func objectName(t *trace.Trace, id uint64, row *trace.Row) string {
	switch id {
	case 0:
		return "no object"
	case cabi.ReplayToken:
		return "the token"
	case cabi.ReplayQueue:
		return "a queue of messages"
	}
	kind := "object"
	if row != nil && row.Obj != "" {
		kind = row.Obj
	}
	return fmt.Sprintf("%s:%s#%d", kind, threadName(t, uint32(id>>40)), id&(1<<40-1))
}

func cstring(b []byte) string {
	if i := strings.IndexByte(string(b), 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// rebuild makes a record of what came.
func rebuild(th *trace.Thread, r *cabi.ReplayReport) *trace.Record {
	var out trace.Record
	e := trace.NewEncoder(1, 0, 0, func(c trace.MemChunk) error {
		var d trace.Decoder
		d.Reset(c.Payload, 0)
		var x trace.Record
		for d.Next(&x) {
			if x.Tag == trace.TagEvent {
				out = x
			}
		}
		return nil
	})
	in := trace.Record{Call: uint16(r.Came), Obj: nameOf(r.CameO), Ret: int64(r.CameRet), Seq: r.CameSeq, Note: uint8(r.CameNote)}
	for i, f := range r.CameF {
		in.F[i] = int64(f)
	}
	in.Tail = r.Tail[:min(int(r.TailLen), len(r.Tail))]
	e.Event(&in)
	e.Flush(0)
	out.Thread = th
	return &out
}

// came is what came, as dump would have it.
func came(t *trace.Trace, th *trace.Thread, r *cabi.ReplayReport) string {
	if r.Came == 0 {
		return ""
	}
	if r.Whole == 0 || th == nil {
		return CallName(r.Came)
	}
	rec := rebuild(th, r)
	if rec.Row == nil {
		return CallName(r.Came)
	}
	b := trace.NewPrinter(t, false).AppendCall(nil, rec)
	if r.DataLen > 0 {
		if r.Hashed != 0 {
			b = append(b, " hash "...)
			b = hex.AppendEncode(b, binary.LittleEndian.AppendUint64(nil, r.DataHash))
		}
		b = append(b, " data "...)
		if r.DataAt > 0 {
			b = fmt.Appendf(b, "from byte %d ", r.DataAt)
		}
		n := min(r.DataLen-min(r.DataAt, r.DataLen), uint64(len(r.Data)), 48)
		b = append(b, '"')
		b = append(b, trace.Clean(string(r.Data[:n]))...)
		b = append(b, '"')
	}
	return clip(string(b))
}

// Outside is what a report asks of the world that the trace does not tell. Each may be nil.
type Outside struct {
	Args    []string // what was started
	Env     []string // with which environment; nil: the recorded one
	Stat    func(path string) (size, mtimeNS int64, ok bool)
	BuildID func(path string) []byte             // nil when there is none
	Site    func(uid uint32, pc uint64) string   // call site in the process of that thread, while it is there
	Func    func(path string, off uint64) string // the function that lies there; "" when nobody says
}

// Differ reports the difference that a thread has found.
func (s *State) Differ(t *trace.Trace, o *Outside) *Difference {
	r := &s.Head.Report
	d := &Difference{What: whats[r.What], Event: r.Event, Call: CallName(r.Came)}
	if d.What == "" {
		d.What = fmt.Sprintf("difference %d", r.What)
	}
	th := t.ThreadByUID(r.UID)
	a := &at{end: true}
	if th != nil {
		s.place(d, t, th)
		a = lookAt(t, th, r.Event, lastEvents)
		d.Expected, d.Last = a.line, a.last
	} else {
		d.Thread = fmt.Sprintf("number %d", r.UID)
	}
	if a.found && a.rec.PC != 0 {
		d.ExpectedSite = site(th.Proc, a.rec.PC, o)
	}
	if r.CamePC != 0 {
		if o.Site != nil {
			d.CameSite = clip(trace.Clean(o.Site(r.UID, r.CamePC)))
		}
		if d.CameSite == "" && th != nil {
			d.CameSite = site(th.Proc, r.CamePC, o)
		}
	}
	d.Came = came(t, th, r)
	row := trace.RowOf(uint64(r.Came))
	want, detail := CallName(r.Want), ""
	text := trace.Clean(cstring(r.Text[:]))
	switch r.What {
	case cabi.DiffersCall:
		if a.end {
			want = "the end of the thread"
		}
		detail = fmt.Sprintf("expected %s, got %s", want, CallName(r.Came))
	case cabi.DiffersResult:
		call := uint16(r.Came)
		detail = fmt.Sprintf("%s: expected result %s, got %s", CallName(r.Came), trace.ResultText(call, int64(r.WantV)), trace.ResultText(call, int64(r.CameV)))
		if text != "" {
			detail += fmt.Sprintf(", of \"%s\"", text)
		}
	case cabi.DiffersField:
		name := "number " + text
		if row != nil && len(text) == 1 && text[0] >= '1' && text[0] <= '3' && row.F[text[0]-'1'] != "" {
			name = row.F[text[0]-'1']
		}
		detail = fmt.Sprintf("%s: expected %s=%d, got %d", CallName(r.Came), name, int64(r.WantV), int64(r.CameV))
	case cabi.DiffersObject:
		detail = fmt.Sprintf("%s: expected %s, got %s", CallName(r.Came), objectName(t, r.WantV, row), objectName(t, r.CameV, row))
	case cabi.DiffersTurn:
		detail = fmt.Sprintf("%s: expected place %d in the order of %s, got %d", CallName(r.Came), r.WantV, objectName(t, r.WantO, row), r.CameV)
	case cabi.DiffersText:
		detail = CallName(r.Came) + ": other arguments"
		if text != "" {
			detail = fmt.Sprintf("%s: another text: \"%s\"", CallName(r.Came), text)
		}
	case cabi.DiffersData:
		detail = CallName(r.Came) + ": other data"
		if r.WantV != 0 && r.WantV != r.CameV {
			detail += fmt.Sprintf(" (expected %d bytes, got %d)", r.WantV, r.CameV)
		} else {
			detail += fmt.Sprintf(" of %d bytes", r.CameV)
		}
	case cabi.DiffersThread:
		detail = fmt.Sprintf("a thread that the trace does not have (creation %d of thread %s)", r.CameV, threadName(t, uint32(r.WantV)))
	case cabi.DiffersMore:
		detail = "expected the end of the process, got " + CallName(r.Came)
	case cabi.DiffersLess:
		detail = fmt.Sprintf("expected %s, got the end of the process (%s, status %d)", want, trace.ExitHow(uint64(r.Came)), int64(r.CameV))
		d.Call, d.Came = "", fmt.Sprintf("the end of the process: %s, status %d", trace.ExitHow(uint64(r.Came)), int64(r.CameV))
	case cabi.DiffersExit:
		detail = fmt.Sprintf("the process ends: expected status %d, got %d (%s)", int64(r.WantV), int64(r.CameV), trace.ExitHow(uint64(r.Came)))
		d.Call, d.Came = "", fmt.Sprintf("the end of the process: %s, status %d", trace.ExitHow(uint64(r.Came)), int64(r.CameV))
	case cabi.DiffersSignal:
		detail = fmt.Sprintf("signal %d of the trace was not handled", r.WantV)
	case cabi.DiffersFault:
		detail = fmt.Sprintf("%s, which the trace does not have here", trace.SignalName(r.CameV))
	case cabi.DiffersTrace:
		detail = "the trace cannot be read on"
	default:
		detail = fmt.Sprintf("%s: %s", d.What, d.Call)
	}
	if a.end && r.What == cabi.DiffersMore {
		d.Expected = "the end of the process"
	}
	d.Detail = clip(detail)
	d.Headline = fmt.Sprintf("thread %s, event %d: %s", d.Thread, d.Event, d.Detail)
	sv := s.standing(d, t, a)
	d.Causes = s.causes(t, o, d, th, a, sv)
	return d
}

// place says which thread it is about.
func (s *State) place(d *Difference, t *trace.Trace, th *trace.Thread) {
	d.Thread, d.Process, d.PID = th.Name, th.Proc.Name, th.Proc.PID
}

func site(p *trace.Proc, pc uint64, o *Outside) string {
	out := p.Site(pc)
	if m := p.Module(pc); m != nil && o.Func != nil {
		if f := o.Func(m.Path, pc-m.Bias); f != "" {
			out += " (" + trace.Clean(f) + ")"
		}
	}
	return clip(out)
}

// Text is the report for people, bounded in lines; the headline comes first.
func (d *Difference) Text() string {
	var b strings.Builder
	word := "diverged: "
	if d.What == WhatStall || d.What == WhatSpin {
		word = "stalled: "
	}
	b.WriteString(word + d.Headline)
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "\n  %-9s ", what)
		fmt.Fprintf(&b, format, args...)
	}
	some := func(what string, all []string, most int) {
		for i, s := range all {
			if i == most {
				line(what, "… and %d more", len(all)-i)
				break
			}
			line(what, "%s", s)
		}
	}
	if d.Process != "" {
		line("process", "%s, recorded as pid %d", d.Process, d.PID)
	}
	if d.Expected != "" {
		line("expected", "%s", d.Expected)
	}
	if d.Came != "" {
		line("got", "%s", d.Came)
	}
	if d.CameSite != "" {
		line("at", "%s", d.CameSite)
		if d.ExpectedSite != "" && d.ExpectedSite != d.CameSite {
			line("not at", "%s", d.ExpectedSite)
		}
	} else if d.ExpectedSite != "" && strings.HasSuffix(d.ExpectedSite, ")") {
		line("at", "%s", d.ExpectedSite)
	}
	some("before", d.Last, lastEvents)
	some("cycle", d.Cycle, 10)
	for i := range d.Standing {
		if i == 10 {
			line("thread", "… and %d more", len(d.Standing)-i)
			break
		}
		line("thread", "%s", d.Standing[i].text())
	}
	some("held", d.Held, 4)
	for i, c := range d.Causes {
		if i == 4 {
			break
		}
		line("cause", "%s: %s", c.Cause, c.Why)
	}
	return b.String()
}

func (st *Standing) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, event %d: %s", st.Thread, st.Event, st.State)
	if st.Call != "" {
		b.WriteString(" in " + st.Call)
	}
	if st.Object != "" {
		if st.Place != 0 {
			fmt.Fprintf(&b, ", for place %d of %s", st.Place, st.Object)
		} else {
			b.WriteString(", at " + st.Object)
		}
		if st.Ahead == 1 {
			b.WriteString(", 1 turn away")
		} else if st.Ahead > 1 && st.Ahead < 1<<32 {
			fmt.Fprintf(&b, ", %d turns away", st.Ahead)
		}
		if st.By != "" {
			fmt.Fprintf(&b, "; next is thread %s at its event %d", st.By, st.ByAt)
		}
	}
	return b.String()
}

package perfetto

import (
	"container/heap"
	"math"
	"strings"

	"prophet/cabi"
	"prophet/runtime/links"
	"prophet/runtime/pass"
	"prophet/runtime/trace"
)

func (e *exporter) visit(s *pass.Seen) error {
	r := s.Record
	if r == nil {
		e.flush()
		for i := range s.Links {
			e.arrow(&s.Links[i], nil)
		}
		return e.err
	}
	if !r.Attached() {
		e.flush()
		if len(e.strings) >= maxStrings || len(e.objects) >= maxStrings || len(e.sites) >= maxStrings {
			e.clear(false)
		}
		e.count(e.ns(r.Begin))
	}
	switch {
	case r.Tag == cabi.TagModule:
		e.printer.Observe(r)
		clear(e.sites)
	case r.Tag == trace.TagEvent && s.Wanted:
		e.begin(r)
		if s.Leads {
			e.lead(r)
		}
	case r.Attached():
		if e.open {
			e.attach(r)
		}
	case e.o.Time(r.Begin) && e.o.Thread(r.Thread) && r.Thread != e.t.Run:
		e.control(r)
	}
	for i := range s.Links {
		e.arrow(&s.Links[i], r)
	}
	return e.err
}

// begin opens an event: what belongs to it may follow.
func (e *exporter) begin(r *trace.Record) {
	s := e.thread(r.Thread)
	e.open = true
	e.of = event{th: s, timed: r.Timed && r.End > r.Begin, name: e.callName(r), ends: e.of.ends[:0]}
	e.of.begin = max(e.ns(r.Begin), s.last)
	e.of.end = max(e.ns(r.End), e.of.begin)
	s.last = e.of.end
	b := e.event[:0]
	if r.Row != nil {
		e.of.class = e.class(r.Row.Class)
		b = e.arguments(b, r)
	}
	if !r.Obj.None() {
		b = e.annotate(b, "object", annotationIntern, e.object(r.Obj, r.Row))
	}
	if r.Seq != 0 {
		b = e.annotate(b, "seq", annotationUint, r.Seq)
	}
	if in, out := pass.Bytes(r); in|out != 0 {
		b = e.annotate(b, "bytes", annotationUint, max(in, out))
		e.moved(r, in, out)
	}
	if r.Note&cabi.NoteWaited != 0 {
		b = e.annotate(b, "waited", annotationBool, 1)
	}
	if r.PC != 0 {
		b = e.annotate(b, "call site", annotationIntern, e.site(r.Thread.Proc, r.PC))
	}
	b = e.annotate(b, "event", annotationUint, r.N)
	e.event = b
	if r.Row != nil && r.Row.Obj == "thread" && strings.HasSuffix(r.Row.Name, "setname_np") && len(r.Fields) == 1 && r.Ret == 0 {
		e.rename(r.Obj.UID, string(r.Fields[0].Text))
	}
	if r.Row != nil && r.Row.Name == "prctl" && r.F[0] == 15 && len(r.Fields) == 1 { // PR_SET_NAME
		e.rename(r.Thread.UID, string(r.Fields[0].Text))
	}
}

// arguments adds what the call was given and what it said.
func (e *exporter) arguments(b []byte, r *trace.Record) []byte {
	if r.Row.Ret != trace.RetVoid {
		switch {
		case r.Ret == 0 && r.Row.Ret != trace.RetPtr, r.Ret > 0 && r.Row.Ret == trace.RetErrno, r.Row.Ret == trace.RetInt:
			b = e.annotate(b, "result", annotationInt, uint64(r.Ret))
		case r.Row.Ret == trace.RetUint:
			b = e.annotate(b, "result", annotationUint, uint64(r.Ret))
		default:
			b = e.annotate(b, "result", annotationIntern, e.value(trace.ResultText(r.Call, r.Ret)))
		}
	}
	for i, name := range r.Row.F {
		if name == "" || name == "addr" || strings.HasSuffix(name, "handle") {
			continue // an address says nothing beside the object's name
		}
		b = e.annotate(b, name, annotationInt, uint64(r.F[i]))
	}
	for i := range r.Fields {
		b = e.field(b, &r.Fields[i])
	}
	return b
}

const maxText = 1024

func (e *exporter) field(b []byte, f *trace.Field) []byte {
	switch f.Kind {
	case trace.FieldPath, trace.FieldStr:
		return e.annotateText(b, f.Name, string(f.Text[:min(len(f.Text), maxText)]))
	case trace.FieldHex:
		return b
	case trace.FieldSnum:
		return e.annotate(b, f.Name, annotationInt, f.Num)
	}
	return e.annotate(b, f.Name, annotationUint, f.Num)
}

const maxInputs = 16

// attach adds what belongs to the open event. Input data itself stays in the trace.
func (e *exporter) attach(r *trace.Record) {
	switch r.Tag {
	case cabi.TagInput:
		var ok bool
		if e.inputs, ok = trace.ParseInput(e.inputs, r.Row, int(min(r.Nums[0], 1<<20)), r.Text[0]); ok {
			for i := range e.inputs[:min(len(e.inputs), maxInputs)] {
				e.event = e.field(e.event, &e.inputs[i])
			}
		}
	case cabi.TagStack:
		if len(r.Stack) == 0 {
			return
		}
		var frames []byte
		for i := len(r.Stack) - 1; i >= 0; i-- { // the outermost first
			f := appendBytes(nil, frameFunction, e.printer.Site(r.Thread.Proc, r.Stack[i]))
			frames = appendBytes(frames, stackFrame, f)
		}
		e.event = appendBytes(e.event, eventStack, frames)
	}
}

// flush writes the open event.
func (e *exporter) flush() {
	if !e.open {
		return
	}
	e.open = false
	o := &e.of
	kind := uint64(instant)
	if o.timed {
		kind = sliceBegin
	}
	e.track(o.begin, kind, o.th.uuid, o.name, o.class, e.event)
	for i := range o.ends {
		e.arrive(&o.ends[i])
	}
	if o.timed {
		e.track(o.end, sliceEnd, o.th.uuid, 0, 0, nil)
	}
}

// track writes a TrackEvent; more are further fields of it.
func (e *exporter) track(at int64, kind, uuid, name, class uint64, more []byte) {
	b := e.body[:0]
	b = appendUint(b, eventType, kind)
	b = appendUint(b, eventTrack, uuid)
	if name != 0 {
		b = appendUint(b, eventName, name)
	}
	if class != 0 {
		b = appendUint(b, eventCategory, class)
	}
	b = append(b, more...)
	e.body = b
	e.put(at, packetTrackEvent, b)
}

// rename tells the name that a thread has been given.
func (e *exporter) rename(uid uint32, name string) {
	if th := e.t.ThreadByUID(uid); th != nil && e.o.Thread(th) {
		e.threadTrack(th, name)
	}
}

// Arrows

// kinds is what the instant at the end of an arrow is called.
var kinds = [links.Kinds]string{links.Lock: "let in", links.Wake: "woken", links.Post: "let in", links.Barrier: "let through",
	links.Once: "done by another", links.Data: "data", links.Connect: "connected", links.Start: "started", links.Exit: "ended"}

// shows reports whether an end of a link is in the picture.
func (e *exporter) shows(p *links.Point) bool {
	if !e.o.Time(p.Begin) || !e.o.Thread(p.Thread) {
		return false
	}
	if p.Call == 0 {
		return e.o.Classes == 0 || e.o.Classes.Has(cabi.Thread)
	}
	return e.o.Class(p.Row())
}

// arrow draws a link. r is the record that made it known.
func (e *exporter) arrow(l *links.Link, r *trace.Record) {
	if !e.shows(&l.From) || !e.shows(&l.To) {
		return
	}
	from, to := e.thread(l.From.Thread), e.thread(l.To.Thread)
	cause := e.ns(l.Cause)
	current := func(p *links.Point) bool {
		return e.open && r != nil && p.Call != 0 && e.of.th.th == p.Thread && r.Thread == p.Thread && p.N+1 == e.number(r)
	}
	// Where it begins.
	k := leadKey{l.From.Thread.UID, l.From.N}
	b, led := e.leads[k]
	id := b.flow
	if led = led && l.Kind != links.Exit; !led {
		e.flow++
		id = e.flow
	}
	switch {
	case led:
		delete(e.leads, k) // further effects of the event have arrows of their own
		cause = b.at
	case l.Kind == links.Exit:
		cause = max(cause, from.last)
		from.last = cause
		e.track(cause, instant, from.uuid, e.otherName("end"), e.class(cabi.Thread), appendFixed(nil, eventFlow, id))
	case current(&l.From):
		e.event = appendFixed(e.event, eventFlow, id)
		cause = e.of.begin
	default:
		e.track(cause, instant, from.uuid, e.otherName("to "+to.th.Name), e.class(cabi.Thread), appendFixed(nil, eventFlow, id))
	}
	// Where it ends: within the event that it is an effect of, where that has room.
	d := ending{to: to, flow: id, kind: l.Kind, by: l.From.Thread, at: e.ns(l.Effect), took: e.t.Clock.NS(l.Effect - l.Cause)}
	if l.To.Call == 0 {
		d.at = max(d.at, cause)
		e.ending(d)
		return
	}
	if begin := e.ns(l.To.Begin); d.at > begin {
		d.at--
	}
	d.at = max(d.at, cause)
	if current(&l.To) {
		d.at = max(d.at, e.of.begin)
	}
	e.ending(d)
}

// ending writes the end of an arrow, behind the event that is open: it may begin there.
func (e *exporter) ending(d ending) {
	if e.open {
		e.of.ends = append(e.of.ends, d)
	} else {
		e.arrive(&d)
	}
}

// lead begins an arrow at the open event, whose end may come.
func (e *exporter) lead(r *trace.Record) {
	if len(e.leads) >= maxLeads {
		clear(e.leads) // theirs begin at instants of their own
	}
	e.flow++
	e.leads[leadKey{r.Thread.UID, r.N}] = lead{e.flow, e.of.begin}
	e.event = appendFixed(e.event, eventFlow, e.flow)
}

// number is the number of the event after the one that the record is, or belongs to.
func (e *exporter) number(r *trace.Record) uint64 {
	if r.Tag == trace.TagEvent {
		return r.N + 1
	}
	return r.N
}

func (e *exporter) arrive(d *ending) {
	more := appendFixed(nil, eventFlowEnds, d.flow)
	more = e.annotate(more, "by", annotationIntern, e.value(d.by.Name))
	more = e.annotate(more, "ns since", annotationUint, uint64(max(0, d.took)))
	e.track(d.at, instant, d.to.uuid, e.otherName(kinds[d.kind]), e.class(cabi.Thread), more)
}

// Control records

func (e *exporter) control(r *trace.Record) {
	s := e.thread(r.Thread)
	at := e.ns(r.Begin)
	switch r.Tag {
	case cabi.TagSignal:
		if !e.o.Classes.Has(cabi.Signal) && e.o.Classes != 0 {
			return
		}
		id := e.child(&s.signals, trackOfSignals, s, "signal handlers")
		s.signals.open++
		at = max(at, s.signals.last)
		s.signals.last = at
		var more []byte
		if row := trace.RowOf(r.Nums[1]); row != nil {
			more = e.annotate(more, "during", annotationIntern, e.value(row.Name))
		}
		e.track(at, sliceBegin, id, e.otherName(trace.SignalName(r.Nums[0])), e.class(cabi.Signal), more)
	case cabi.TagSigRet:
		if s.signals.open > 0 {
			s.signals.open--
			e.end(&s.signals, trackOfSignals, s, at)
		}
	case cabi.TagMark:
		if e.o.Classes.Has(cabi.Mark) || e.o.Classes == 0 {
			e.mark(s, r, at)
		}
	case cabi.TagUnseen:
		what := "not seen: " + trace.UnseenWhat(r.Nums[0])
		e.track(max(at, s.last), instant, s.uuid, e.otherName(what), 0, e.annotateText(nil, "detail", string(r.Text[0][:min(len(r.Text[0]), maxText)])))
	case cabi.TagLost:
		e.track(max(at, s.last), instant, s.uuid, e.otherName("lost: "+trace.LostWhy(r.Nums[0])), 0, e.annotate(nil, "count", annotationUint, r.Nums[1]))
	case cabi.TagRSS:
		if pages := r.Nums[0]; pages < math.MaxInt64/uint64(e.page) {
			e.value64(r.Thread.Proc, resident, int64(pages)*e.page, at)
		}
	}
}

// end closes the innermost slice of a track below a thread's.
func (e *exporter) end(u *sub, kind uint64, s *thread, at int64) {
	at = max(at, u.last)
	u.last = at
	e.track(at, sliceEnd, uuid(kind, uint64(s.th.UID)), 0, 0, nil)
}

func (e *exporter) mark(s *thread, r *trace.Record, at int64) {
	name := string(r.Text[0])
	if name == "" {
		name = "mark"
	}
	id := e.child(&s.marks, trackOfMarks, s, "marks")
	at = max(at, s.marks.last)
	s.marks.last = at
	switch r.Nums[0] {
	case cabi.MarkBegin:
		if len(s.names) >= maxMarks {
			return
		}
		s.names = append(s.names, name)
		e.track(at, sliceBegin, id, e.otherName(trace.Clean(name)), e.class(cabi.Mark), nil)
	case cabi.MarkEnd:
		// What was begun inside ends with it; an end without a beginning is none.
		for i := len(s.names) - 1; i >= 0; i-- {
			if s.names[i] != name {
				continue
			}
			for range s.names[i:] {
				e.end(&s.marks, trackOfMarks, s, at)
			}
			s.names = s.names[:i]
			return
		}
	default:
		e.track(at, instant, id, e.otherName(trace.Clean(name)), e.class(cabi.Mark), nil)
	}
}

// Counters

// moved notes bytes that will have been moved when the event ends.
func (e *exporter) moved(r *trace.Record, in, out uint64) {
	read, written := bytesRead, bytesWritten
	if r.Row.Class == cabi.Net {
		read, written = bytesReceived, bytesSent
	}
	add := func(what int, n uint64) {
		if n > 0 {
			heap.Push(&e.moving, move{e.of.end, r.Thread.Proc.Number, what, int64(min(n, 1<<50))})
		}
	}
	add(read, in)
	add(written, out)
	if p := e.procs[r.Thread.Proc.Number]; p == nil {
		e.proc(r.Thread.Proc)
	}
}

func (e *exporter) proc(p *trace.Proc) *proc {
	s := e.procs[p.Number]
	if s == nil {
		s = &proc{}
		e.procs[p.Number] = s
	}
	return s
}

// count takes what has been moved by then.
func (e *exporter) count(now int64) {
	for len(e.moving) > 0 && e.moving[0].at <= now {
		m := heap.Pop(&e.moving).(move)
		p := e.procs[m.proc]
		p.values[m.what] += m.n
		if p.made[m.what] && m.at-p.last[m.what] < counterEvery {
			p.dirty[m.what] = true
			continue
		}
		e.reading(m.proc, p, m.what, m.at)
	}
}

func (e *exporter) value64(of *trace.Proc, what int, v, at int64) {
	p := e.proc(of)
	if p.made[what] && p.values[what] == v {
		return
	}
	p.values[what] = v
	e.reading(of.Number, p, what, at)
}

// reading writes a counter's value.
func (e *exporter) reading(number uint32, p *proc, what int, at int64) {
	id := uuid(trackOfCounter, uint64(what)<<48|uint64(number))
	if !p.made[what] {
		p.made[what] = true
		b := appendUint(nil, trackUUID, id)
		b = appendUint(b, trackParent, uuid(trackOfProcess, uint64(number)))
		b = appendBytes(b, trackName, counterNames[what])
		e.put(-1, packetTrackDescriptor, appendBytes(b, trackCounter, appendUint(nil, counterUnit, unitBytes)))
	}
	at = max(at, p.last[what])
	p.last[what], p.dirty[what] = at, false
	e.track(at, counter, id, 0, 0, appendUint(nil, eventCounter, uint64(p.values[what])))
}

// finish closes what is open.
func (e *exporter) finish() {
	end := int64(0)
	for _, s := range e.threads {
		end = max(end, s.last)
	}
	e.count(math.MaxInt64)
	for _, p := range e.t.Procs {
		if s := e.procs[p.Number]; s != nil {
			for what, dirty := range s.dirty {
				if dirty {
					e.reading(p.Number, s, what, end)
				}
			}
		}
	}
	for _, th := range e.t.Threads {
		s := e.threads[th]
		if s == nil {
			continue
		}
		for ; s.signals.open > 0; s.signals.open-- {
			e.end(&s.signals, trackOfSignals, s, s.last)
		}
		for range s.names {
			e.end(&s.marks, trackOfMarks, s, s.last)
		}
	}
}

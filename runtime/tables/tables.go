// Package tables writes a trace as tables, for databases and spreadsheets: events, links, objects, threads, processes, modules,
// stacks, samples and marks, as parquet or CSV (Schema, Page). One pass in the order of time; rows go out in batches, on a
// second goroutine, and row groups are bounded. In memory are an object's, a thread's and a process's sums, and bounded
// tables of texts and stacks.
package tables

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"prophet/cabi"
	"prophet/runtime/links"
	"prophet/runtime/pass"
	"prophet/runtime/trace"
)

// Format is how tables are written.
type Format int

// The formats.
const (
	CSV Format = iota
	Parquet
)

// Suffix is what the names of its files end with.
func (f Format) Suffix() string {
	if f == CSV {
		return ".csv"
	}
	return ".parquet"
}

// Bounds of what is kept. Variables, so that a test reaches them.
var (
	maxObjects = 1 << 19 // rows of objects
	maxStacks  = 1 << 18 // different stacks
	maxTexts   = 1 << 16 // of a table of texts; then it begins anew
	maxTargets = 1 << 20 // descriptors whose files are remembered, of all processes
)

const batchRows = 1 << 12

// Write reads the trace and writes each table to what create makes for its name. All are closed, whatever happens.
func Write(t *trace.Trace, o pass.Options, f Format, create func(name string) (io.WriteCloser, error)) (*pass.Result, error) {
	w := &writer{t: t, o: &o, f: f, create: create, printer: trace.NewPrinter(t, false), threads: map[*trace.Thread]*thread{}, procs: map[*trace.Proc]*proc{},
		objects: map[objectKey]*Object{}, names: map[nameKey]string{}, sites: map[siteKey]string{}, errs: map[resultKey]string{}, args: map[argsKey]string{},
		stacks: map[stackKey]int64{}}
	defer w.abort()
	if err := w.open(); err != nil {
		return nil, err
	}
	res, err := pass.Read(t, o, w.visit)
	if err != nil {
		return res, err
	}
	if w.lostObjects > 0 {
		res.Say(fmt.Sprintf("objects beyond %d have no row: %d events were of those", maxObjects, w.lostObjects))
	}
	if w.lostStacks > 0 {
		res.Say(fmt.Sprintf("stacks beyond %d are left out: %d events and samples were of those", maxStacks, w.lostStacks))
	}
	return res, w.finish(res)
}

// sink is a table that is being written.
type sink[T any] interface {
	write(rows []T) error
	close(about map[string]string) error
}

// table gathers rows and hands them to a goroutine of its own that writes.
type table[T any, P row[T]] struct {
	out   io.WriteCloser
	sink  sink[T]
	rows  []T
	full  chan []T
	spare chan []T
	done  chan error
	n     int64
}

func openTable[T any, P row[T]](w *writer, name string, t *table[T, P]) error {
	out, err := w.create(name + w.f.Suffix())
	if err != nil {
		return err
	}
	t.out = out
	if w.f == CSV {
		t.sink = newCSV[T, P](out)
	} else {
		t.sink = newParquet[T](out)
	}
	t.full, t.spare, t.done = make(chan []T, 1), make(chan []T, 2), make(chan error, 1)
	go func() {
		var err error
		for rows := range t.full {
			if err == nil {
				err = t.sink.write(rows)
			}
			clear(rows)
			select {
			case t.spare <- rows[:0]:
			default:
			}
		}
		t.done <- err
	}()
	return nil
}

// add makes room for a row and gives it; it is complete when the next one is added.
func (t *table[T, P]) add() *T {
	if len(t.rows) >= batchRows {
		t.pass()
	}
	if t.rows == nil {
		t.rows = make([]T, 0, batchRows)
	}
	t.n++
	t.rows = t.rows[:len(t.rows)+1]
	return &t.rows[len(t.rows)-1]
}

func (t *table[T, P]) pass() {
	t.full <- t.rows
	select {
	case t.rows = <-t.spare:
	default:
		t.rows = nil
	}
}

// last is the row that was added last.
func (t *table[T, P]) last() *T { return &t.rows[len(t.rows)-1] }

// finish writes what is left; close is done in any case, once.
func (t *table[T, P]) finish(about map[string]string) error {
	if t.out == nil {
		return nil
	}
	out := t.out
	t.out = nil
	if len(t.rows) > 0 {
		t.full <- t.rows
	}
	close(t.full)
	err := <-t.done
	if err == nil && about != nil {
		err = t.sink.close(about)
	}
	return errors.Join(err, out.Close())
}

type objectKey struct {
	proc *trace.Proc
	obj  trace.Object
	kind string
}

type nameKey struct {
	obj  trace.Object
	kind string
}

type siteKey struct {
	proc *trace.Proc
	pc   uint64
}

type resultKey struct {
	call uint16
	ret  int64
}

type argsKey struct {
	call uint16
	f    [3]int64
}

type stackKey struct {
	proc *trace.Proc
	text string // its addresses
}

type thread struct {
	row  Thread
	proc *proc
}

type proc struct {
	row     Process
	fds     map[int64]string       // what is behind a number
	numbers map[trace.Object]int64 // what number an object is
}

type writer struct {
	t       *trace.Trace
	o       *pass.Options
	f       Format
	create  func(name string) (io.WriteCloser, error)
	printer *trace.Printer // learns modules

	events    table[Event, *Event]
	links     table[Link, *Link]
	objs      table[Object, *Object]
	thrs      table[Thread, *Thread]
	processes table[Process, *Process]
	modules   table[Module, *Module]
	frames    table[Stack, *Stack]
	samples   table[Sample, *Sample]
	marks     table[Mark, *Mark]

	threads map[*trace.Thread]*thread
	last    *thread
	procs   map[*trace.Proc]*proc
	objects map[objectKey]*Object
	was     objectKey // the object before, and its row
	wasRow  *Object
	names   map[nameKey]string
	sites   map[siteKey]string
	errs    map[resultKey]string
	args    map[argsKey]string
	stacks  map[stackKey]int64
	targets int
	inputs  []trace.Field
	text    []byte

	current     bool         // the last row of events is of the event that records which follow belong to
	of          trace.Object // its object
	made        int64
	lostObjects uint64
	lostStacks  uint64
}

func (w *writer) open() error {
	return errors.Join(openTable(w, "events", &w.events), openTable(w, "links", &w.links), openTable(w, "objects", &w.objs), openTable(w, "threads", &w.thrs),
		openTable(w, "processes", &w.processes), openTable(w, "modules", &w.modules), openTable(w, "stacks", &w.frames), openTable(w, "samples", &w.samples),
		openTable(w, "marks", &w.marks))
}

func (w *writer) finishAll(about map[string]string) error {
	return errors.Join(w.events.finish(about), w.links.finish(about), w.objs.finish(about), w.thrs.finish(about), w.processes.finish(about),
		w.modules.finish(about), w.frames.finish(about), w.samples.finish(about), w.marks.finish(about))
}

func (w *writer) abort() { w.finishAll(nil) }

func (w *writer) since(ticks uint64) int64 { return w.t.Clock.Since(ticks) }

func (w *writer) thread(th *trace.Thread) *thread {
	if w.last != nil && w.last.row.Number == int64(th.UID) {
		return w.last
	}
	s := w.threads[th]
	if s == nil {
		s = &thread{proc: w.proc(th.Proc), row: Thread{Thread: th.Name, Process: th.Proc.Name, Number: int64(th.UID), TID: int64(th.TID),
			How: trace.ThreadHow(th.How), BeginNS: w.since(th.First), EndNS: w.since(th.First)}}
		if uid, _ := th.Origin(); th.How == cabi.ThreadCreated {
			if by := w.t.ThreadByUID(uid); by != nil {
				s.row.Parent = by.Name
			}
		}
		w.threads[th] = s
	}
	w.last = s
	return s
}

func (w *writer) proc(p *trace.Proc) *proc {
	s := w.procs[p]
	if s == nil {
		s = &proc{row: Process{Process: p.Name, Number: int64(p.Number), PID: int64(p.PID), PPID: int64(p.PPID), How: trace.ProcHow(p.How),
			Exe: trace.Clean(p.Exe), Cwd: trace.Clean(p.Cwd), Command: trace.Clean(strings.Join(p.Args, " "))}, fds: map[int64]string{}, numbers: map[trace.Object]int64{}}
		if p.Parent != nil {
			s.row.Parent = p.Parent.Name
			if by := w.procs[p.Parent]; by != nil && w.targets < maxTargets {
				for k, v := range by.fds {
					s.fds[k] = v
				}
				if p.How == cabi.ProcForked {
					for k, v := range by.numbers {
						s.numbers[k] = v
					}
				}
				w.targets += len(s.fds) + len(s.numbers)
			}
		}
		w.procs[p] = s
	}
	return s
}

func (w *writer) visit(s *pass.Seen) error {
	for i := range s.Links {
		w.link(&s.Links[i])
	}
	r := s.Record
	if r == nil || r.Thread == w.t.Run {
		return nil
	}
	if r.Tag == trace.TagEvent {
		w.current = s.Wanted
		w.event(r, s.Wanted)
		return nil
	}
	if r.Attached() {
		w.attach(r)
		return nil
	}
	w.current = false
	w.control(r)
	return nil
}

func (w *writer) event(r *trace.Record, wanted bool) {
	th := w.thread(r.Thread)
	begin, end := w.since(r.Begin), w.since(r.End)
	th.row.EndNS = max(th.row.EndNS, end)
	w.named(r)
	target := w.target(th.proc, r)
	if !wanted {
		return
	}
	e := w.events.add()
	e.Thread, e.Process, e.Event, e.BeginNS = th.row.Thread, th.row.Process, int64(r.N), begin
	if r.Timed {
		e.DurationNS = max(1, end-begin)
		th.row.CallNS += end - begin
	}
	th.row.Events++
	w.of = r.Obj
	e.Target, e.Result, e.Place, e.Waited = target, r.Ret, int64(r.Seq), r.Note&cabi.NoteWaited != 0
	in, out := pass.Bytes(r)
	e.BytesIn, e.BytesOut = int64(in), int64(out)
	kind := "object"
	if r.Row == nil {
		e.Call, e.Class = "call"+strconv.Itoa(int(r.Call)), "unknown"
	} else {
		e.Call, e.Class = r.Row.Name, r.Row.Class.String()
		if r.Ret != 0 {
			e.Error = w.errorName(r)
		}
		e.Arguments = w.arguments(r)
		for i := range r.Fields {
			if f := &r.Fields[i]; f.Kind == trace.FieldPath || f.Kind == trace.FieldStr {
				e.Path = trace.Clean(string(f.Text))
			}
		}
		if r.Row.Obj != "" {
			kind = kinds(r.Row.Obj)
		}
	}
	if !r.Obj.None() {
		e.Object = w.object(r.Obj, kind)
		w.sum(r, e, kind, begin, end)
	}
	if r.PC != 0 {
		e.CallSite = w.site(r.Thread.Proc, r.PC)
	}
}

// named takes the name that a thread is given.
func (w *writer) named(r *trace.Record) {
	const setName = 15 // PR_SET_NAME
	if len(r.Fields) != 1 || r.Ret != 0 {
		return
	}
	switch {
	case strings.HasSuffix(r.Row.Name, "setname_np"):
		if th := w.t.ThreadByUID(r.Obj.UID); th != nil && r.Row.Obj == "thread" {
			was := w.last
			w.thread(th).row.Name = trace.Clean(string(r.Fields[0].Text))
			w.last = was
		}
	case r.Row.Name == "prctl" && r.F[0] == setName:
		w.last.row.Name = trace.Clean(string(r.Fields[0].Text))
	}
}

// kinds is the kind of an object by what its row calls it: descriptors have several names there.
func kinds(obj string) string {
	switch obj {
	case "pair", "socket", "epoll", "eventfd", "timerfd", "signalfd", "dirfd":
		return "fd"
	}
	return obj
}

func bounded[K comparable, V any](m map[K]V) {
	if len(m) >= maxTexts {
		clear(m)
	}
}

func (w *writer) object(o trace.Object, kind string) string {
	k := nameKey{o, kind}
	s, ok := w.names[k]
	if !ok {
		by := "thread" + strconv.FormatUint(uint64(o.UID), 10)
		if th := w.t.ThreadByUID(o.UID); th != nil {
			by = th.Name
		}
		if s = kind + ":" + by + "#" + strconv.FormatUint(o.Num, 10); kind == "thread" && o.Num == 0 {
			s = "thread:" + by
		}
		bounded(w.names)
		w.names[k] = s
	}
	return s
}

// sum adds an event to its object's row.
func (w *writer) sum(r *trace.Record, e *Event, kind string, begin, end int64) {
	k := objectKey{r.Thread.Proc, r.Obj, kind}
	o := w.wasRow
	if o == nil || k != w.was {
		if o = w.objects[k]; o == nil {
			if len(w.objects) >= maxObjects {
				w.lostObjects++
				return
			}
			o = &Object{Object: e.Object, Process: e.Process, Kind: kind, FirstNS: begin}
			w.objects[k] = o
		}
		w.was, w.wasRow = k, o
	}
	o.LastNS = max(o.LastNS, end)
	o.Events++
	o.CallNS += e.DurationNS
	if e.Waited {
		o.Waits++
		o.WaitNS += e.DurationNS
		o.WaitMax = max(o.WaitMax, e.DurationNS)
	}
	if kind != "cond" { // a wait's place is in the order of its mutex
		o.Place = max(o.Place, e.Place)
	}
	o.BytesIn += e.BytesIn
	o.BytesOut += e.BytesOut
	if e.Target != "" {
		o.Detail = e.Target
	}
}

func (w *writer) site(p *trace.Proc, pc uint64) string {
	k := siteKey{p, pc}
	s, ok := w.sites[k]
	if !ok {
		s = w.printer.Site(p, pc)
		bounded(w.sites)
		w.sites[k] = s
	}
	return s
}

func (w *writer) errorName(r *trace.Record) string {
	if failed := r.Ret < 0 && (r.Row.Ret == trace.RetErrno || r.Row.Ret == trace.RetPtr) || r.Ret > 0 && r.Row.Ret == trace.RetErr; !failed {
		return ""
	}
	k := resultKey{r.Call, r.Ret}
	s, ok := w.errs[k]
	if !ok {
		s = strings.TrimPrefix(trace.ResultText(r.Call, r.Ret), "-1 ")
		bounded(w.errs)
		w.errs[k] = s
	}
	return s
}

// arguments is the numbers that the call was given, but for addresses, which say nothing beside the object's name.
func (w *writer) arguments(r *trace.Record) string {
	k := argsKey{call: r.Call}
	shown := false
	for i, name := range r.Row.F {
		if name != "" && name != "addr" && !strings.HasSuffix(name, "handle") {
			k.f[i], shown = r.F[i], true
		}
	}
	s := ""
	if shown {
		var ok bool
		if s, ok = w.args[k]; !ok {
			b := w.text[:0]
			for i, name := range r.Row.F {
				if name != "" && name != "addr" && !strings.HasSuffix(name, "handle") {
					b = append(append(append(b, name...), '='), strconv.FormatInt(k.f[i], 10)...)
					b = append(b, ' ')
				}
			}
			w.text = b
			s = string(b[:len(b)-1])
			bounded(w.args)
			w.args[k] = s
		}
	}
	for i := range r.Fields {
		switch f := &r.Fields[i]; f.Kind {
		case trace.FieldNum, trace.FieldOct, trace.FieldTime:
			s += " " + f.Name + "=" + strconv.FormatUint(f.Num, 10)
		case trace.FieldSnum:
			s += " " + f.Name + "=" + strconv.FormatInt(int64(f.Num), 10)
		}
	}
	return strings.TrimPrefix(s, " ")
}

// What is behind a descriptor

var opens, dups, closes = calls("open", "open64", "openat", "openat64", "creat", "creat64", "__open", "__open64", "__open_2", "__open64_2", "__openat_2", "__openat64_2",
	"mkstemp", "mkstemp64", "mkostemp", "mkostemp64", "memfd_create", "shm_open", "fopen", "fopen64", "mq_open"),
	calls("dup", "dup2", "__dup2", "dup3"), calls("close", "__close", "_IO_file_close", "mq_close")

func calls(names ...string) map[uint16]bool {
	m := map[uint16]bool{}
	for i := range cabi.Calls {
		if slices.Contains(names, cabi.Calls[i].Name) {
			m[cabi.Calls[i].ID] = true
		}
	}
	return m
}

// target follows what descriptors are, and is what the event's is.
func (w *writer) target(p *proc, r *trace.Record) string {
	if r.Row == nil || r.Note&cabi.NoteVforked != 0 { // a vforked child has descriptors of its own
		return ""
	}
	if len(r.Fields) > 0 && opens[r.Call] && r.Ret >= 0 {
		fd := r.Ret
		if f := &r.Fields[0]; f.Kind == trace.FieldNum && f.Name == "fd" { // of a stream
			fd = int64(f.Num)
		}
		path := trace.Clean(string(r.Fields[len(r.Fields)-1].Text))
		w.becomes(p, fd, path)
		return path
	}
	if r.Obj.None() || !isFd(r.Row.Obj) {
		return ""
	}
	fd, ok := p.numbers[r.Obj]
	if !ok {
		return ""
	}
	is := p.fds[fd]
	switch {
	case dups[r.Call] && r.Ret >= 0:
		w.becomes(p, r.Ret, is)
	case closes[r.Call]:
		delete(p.fds, fd)
	}
	return is
}

func isFd(obj string) bool { return kinds(obj) == "fd" }

func (w *writer) becomes(p *proc, fd int64, is string) {
	if _, ok := p.fds[fd]; !ok {
		if w.targets >= maxTargets {
			return
		}
		w.targets++
	}
	p.fds[fd] = is
}

// attach adds what belongs to the last event.
func (w *writer) attach(r *trace.Record) {
	switch r.Tag {
	case cabi.TagInput:
		if r.Row == nil || r.Row.Class != cabi.Net {
			return
		}
		w.ends(r)
	case cabi.TagStack:
		if w.current {
			w.events.last().Stack = w.stack(r)
		}
	}
}

// ends learns the two ends of a connection.
func (w *writer) ends(r *trace.Record) {
	var ok bool
	if w.inputs, ok = trace.ParseInput(w.inputs, r.Row, int(min(r.Nums[0], 1<<20)), r.Text[0]); !ok || len(w.inputs) < 2 {
		return
	}
	var local, peer string
	for i := range w.inputs {
		switch f := &w.inputs[i]; f.Name {
		case "local":
			local = string(f.Text)
		case "peer":
			peer = string(f.Text)
		}
	}
	if local == "" || peer == "" || !w.current {
		return
	}
	e := w.events.last()
	p := w.thread(r.Thread).proc
	is := trace.Clean(local + " > " + peer)
	if strings.HasPrefix(e.Call, "accept") && e.Result >= 0 {
		w.becomes(p, e.Result, is)
	} else if fd, ok := p.numbers[w.of]; ok && strings.HasSuffix(e.Call, "connect") {
		w.becomes(p, fd, is)
	}
	e.Target = is
}

// stack is the number of a stack, whose frames are written when it comes first.
func (w *writer) stack(r *trace.Record) int64 {
	if len(r.Stack) == 0 {
		return 0
	}
	b := w.text[:0]
	for _, pc := range r.Stack {
		b = strconv.AppendUint(b, pc, 36)
		b = append(b, ' ')
	}
	w.text = b
	n := w.stacks[stackKey{r.Thread.Proc, string(b)}]
	if n != 0 {
		return n
	}
	if len(w.stacks) >= maxStacks {
		w.lostStacks++
		return 0
	}
	w.made++
	w.stacks[stackKey{r.Thread.Proc, string(b)}] = w.made
	for i, pc := range r.Stack {
		*w.frames.add() = Stack{w.made, int64(i), w.site(r.Thread.Proc, pc)}
	}
	return w.made
}

// control takes the other records. Threads, processes and modules are told whole, samples and marks by the selection.
func (w *writer) control(r *trace.Record) {
	th := w.thread(r.Thread)
	p := th.proc
	n := &r.Nums
	at := w.since(r.Begin)
	switch r.Tag {
	case cabi.TagObject:
		o := trace.Object{UID: uint32(n[0]), Num: n[1]}
		if n[2] == cabi.ObjFd {
			fd := int64(int32(n[3]))
			if w.targets < maxTargets {
				w.targets++
				p.numbers[o] = fd
			}
			if len(r.Text[0]) > 0 {
				w.becomes(p, fd, trace.Clean(string(r.Text[0])))
			}
		}
	case cabi.TagModule:
		w.printer.Observe(r)
		clear(w.sites)
		*w.modules.add() = Module{p.row.Process, trace.Clean(string(r.Text[0])), hex.EncodeToString(r.Text[1]), "0x" + strconv.FormatUint(n[0], 16), int64(min(n[1], 1<<62))}
	case cabi.TagCPU:
		th.row.CPUNS = int64(min(n[0], 1<<62))
	case cabi.TagRSS:
		page := int64(w.t.Meta.Machine.PageSize)
		if page <= 0 || page > 1<<20 {
			page = 4096
		}
		p.row.PeakBytes = max(p.row.PeakBytes, int64(min(n[0], 1<<40))*page)
	case cabi.TagExit:
		p.row.Exit, p.row.Status = trace.ExitHow(n[0]), int64(n[1])
		p.row.ReadBytes, p.row.WroteBytes, p.row.CPUNS = int64(min(n[2], 1<<62)), int64(min(n[3]-min(n[3], n[4]), 1<<62)), int64(min(n[5], 1<<62))
		p.row.EndNS = at
		w.targets -= len(p.fds) + len(p.numbers)
		if n[0] != cabi.ExitExec { // the program that follows has them yet
			clear(p.fds)
			clear(p.numbers)
		}
	case cabi.TagSample:
		if w.o.Time(r.Begin) && w.o.Thread(r.Thread) {
			*w.samples.add() = Sample{th.row.Thread, at, int64(min(n[1], 1<<62)), w.stack(r)}
		}
	case cabi.TagMark:
		if w.o.Time(r.Begin) && w.o.Thread(r.Thread) && (w.o.Classes == 0 || w.o.Classes.Has(cabi.Mark)) {
			*w.marks.add() = Mark{th.row.Thread, at, trace.MarkKind(n[0]), trace.Clean(string(r.Text[0]))}
		}
	}
}

// link adds a link whose ends are both in events.
func (w *writer) link(l *links.Link) {
	for _, p := range []*links.Point{&l.From, &l.To} {
		if !w.o.Time(p.Begin) || !w.o.Thread(p.Thread) || p.Call != 0 && !w.o.Class(p.Row()) || p.Call == 0 && w.o.Classes != 0 && !w.o.Classes.Has(cabi.Thread) {
			return
		}
	}
	k := w.links.add()
	*k = Link{Kind: l.Kind.String(), FromThread: l.From.Thread.Name, FromEvent: int64(l.From.N), CauseNS: w.since(l.Cause),
		ToThread: l.To.Thread.Name, ToEvent: int64(l.To.N), EffectNS: w.since(l.Effect), HeldEvent: -1, Bytes: int64(l.Bytes)}
	if l.From.Call == 0 { // the record of its end
		k.FromEvent = max(0, k.FromEvent-1)
	}
	if !l.Object.None() {
		kind := "mutex" // of two waits for conditions, if it is neither's own
		for _, p := range []*links.Point{&l.From, &l.To} {
			if row := p.Row(); row != nil && row.Obj != "" && p.Obj == l.Object {
				kind = kinds(row.Obj)
			}
		}
		k.Object = w.object(l.Object, kind)
	}
	if l.Held.Thread != nil {
		k.HeldEvent, k.HeldNS, k.HeldAt = int64(l.Held.N), w.since(l.Held.End), w.site(l.Held.Thread.Proc, l.Held.PC)
	}
}

// finish writes the tables of sums and closes all.
func (w *writer) finish(res *pass.Result) error {
	list := make([]*Object, 0, len(w.objects))
	for _, o := range w.objects {
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b *Object) int {
		return cmp.Or(cmp.Compare(a.FirstNS, b.FirstNS), cmp.Compare(a.Process, b.Process), cmp.Compare(a.Object, b.Object))
	})
	for _, o := range list {
		*w.objs.add() = *o
	}
	begun := map[*proc]bool{}
	for _, th := range w.t.Threads {
		s := w.thread(th)
		*w.thrs.add() = s.row
		p := &s.proc.row
		p.EndNS = max(p.EndNS, s.row.EndNS)
		if !begun[s.proc] || s.row.BeginNS < p.BeginNS {
			p.BeginNS, begun[s.proc] = s.row.BeginNS, true
		}
	}
	for _, x := range w.t.Procs {
		*w.processes.add() = w.proc(x).row
	}
	about := map[string]string{"prophet.version": cabi.Version, "prophet.run": trace.Clean(w.t.Meta.Run), "prophet.events": strconv.FormatUint(res.Events, 10),
		"prophet.events_left_out": strconv.FormatUint(res.Other, 10), "prophet.damaged": strconv.Itoa(res.Damaged),
		"prophet.start_realtime_ns": strconv.FormatInt(w.t.Clock.Real0, 10)}
	if notes := res.Notes(); len(notes) > 0 {
		about["prophet.left_out"] = strings.Join(notes, "; ")
	}
	return w.finishAll(about)
}

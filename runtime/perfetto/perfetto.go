// Package perfetto writes a trace as Perfetto's TrackEvent protocol buffers, which ui.perfetto.dev and trace_processor read.
//
// # What is in it
//
// A track a process and a thread, with the names that Prophet gives them and those that they give themselves. On a thread's
// track a call that takes time is a slice and one that does not is an instant, with its class as the category, and what it
// acts on, its result, its arguments, the bytes it moved and its call site as annotations; stacks where they were taken.
// A signal is an instant, its handler a slice on a track of its own below the thread's, and marks (prophet_begin,
// prophet_end) on another. A process has counters: resident memory and the bytes read, written, sent and received.
//
// Arrows are flows. One begins at the event that let another go on, and ends at an instant at the end of that other, named
// after what it waited for: an arrow must not point back in time, and who waits begins before it is let in.
//
// # How
//
// One pass in the order of time, one packet sequence, strings interned. Slices and readings of a track are in the order of their
// time, ends of arrows and different tracks nearly so: readers sort. Times are CLOCK_MONOTONIC of the machine that recorded, with a snapshot that
// ties it to the wall clock; where the trace has no reading of clocks they count from the start of the run. Text is made
// valid UTF-8, control characters escaped. Memory is that of pass.Read and a bounded table of strings.
package perfetto

import (
	"bufio"
	"container/heap"
	"io"
	"path"
	"strconv"

	"prophet/cabi"
	"prophet/runtime/links"
	"prophet/runtime/pass"
	"prophet/runtime/trace"
)

// Bounds of what is kept. Variables, so that a test reaches them.
var (
	maxStrings = 1 << 18 // interned; then all are told anew
	maxLeads   = 1 << 17 // events whose arrow has been begun and has not come to its end
	maxMarks   = 64      // open at once in a thread
)

// counterEvery is how far apart the readings of one counter of bytes are, at least: 1 ms.
const counterEvery = 1_000_000

// What is counted of a process.
const (
	resident = iota
	bytesRead
	bytesWritten
	bytesSent
	bytesReceived
	counters
)

var counterNames = [counters]string{"resident memory", "bytes read", "bytes written", "bytes sent", "bytes received"}

// Tracks of a thread or a process are numbered by what they are: kind<<56 | number.
const (
	trackOfProcess = 1 + iota
	trackOfThread
	trackOfSignals
	trackOfMarks
	trackOfCounter // | which<<48
)

func uuid(kind, number uint64) uint64 { return kind<<56 | number }

// Write reads the trace and writes it to w.
func Write(w io.Writer, t *trace.Trace, o pass.Options) (*pass.Result, error) {
	e := &exporter{w: bufio.NewWriterSize(w, 1<<20), t: t, o: &o, printer: trace.NewPrinter(t, false),
		threads: map[*trace.Thread]*thread{}, procs: map[uint32]*proc{}, strings: map[string]uint64{},
		objects: map[objectKey]uint64{}, sites: map[siteKey]uint64{}, leads: map[leadKey]lead{}}
	e.mono = int64(t.Mono0())
	e.page = int64(t.Meta.Machine.PageSize)
	if e.page <= 0 || e.page > 1<<20 {
		e.page = 4096
	}
	e.head()
	res, err := pass.Read(t, o, e.visit)
	if err != nil {
		return res, err
	}
	e.finish()
	if e.err == nil {
		e.err = e.w.Flush()
	}
	return res, e.err
}

// exporter is the state of one Write.
type exporter struct {
	w       *bufio.Writer
	err     error // of w
	t       *trace.Trace
	o       *pass.Options
	printer *trace.Printer // learns modules
	mono    int64
	page    int64

	threads map[*trace.Thread]*thread
	last    *thread
	procs   map[uint32]*proc

	strings  map[string]uint64    // annotation values, by their text
	objects  map[objectKey]uint64 // and those that are often asked for, by what they are of
	sites    map[siteKey]uint64
	iid      uint64 // the last one given
	names    [1 << 11]uint64
	others   map[string]uint64 // names that are no calls'
	keys     map[string]uint64
	classes  [64]uint64
	interned []byte // to go with the next packet

	flow   uint64
	leads  map[leadKey]lead // arrows begun at an event that may yet have an effect
	moving moves

	open   bool   // an event waits for what belongs to it
	event  []byte // its annotations and flows
	of     event
	packet []byte
	body   []byte
	note   []byte
	inputs []trace.Field
}

// event is what is known of the one that is open, as its record is gone by then.
type event struct {
	th         *thread
	begin, end int64
	timed      bool
	name       uint64
	class      uint64
	ends       []ending // arrows that became known with it: their ends follow its beginning
}

// ending is the end of an arrow: an instant.
type ending struct {
	to   *thread
	flow uint64
	kind links.Kind
	by   *trace.Thread
	at   int64
	took int64
}

type objectKey struct {
	obj  trace.Object
	call uint16 // its row has the kind
}

type siteKey struct {
	proc *trace.Proc
	pc   uint64
}

type leadKey struct {
	uid uint32
	n   uint64
}

type lead struct {
	flow uint64
	at   int64
}

type thread struct {
	th      *trace.Thread
	uuid    uint64
	last    int64 // ns: nothing on its track begins before
	signals sub
	marks   sub
	names   []string // of open marks
}

// sub is a track below a thread's.
type sub struct {
	made bool
	last int64
	open int
}

type proc struct {
	values [counters]int64
	last   [counters]int64 // ns of the last reading
	dirty  [counters]bool
	made   [counters]bool
}

// ns is a stamp on the clock of the trace.
func (e *exporter) ns(ticks uint64) int64 { return max(0, e.mono+e.t.Clock.Since(ticks)) }

// put writes a packet: its timestamp, its data as field, and what it interned.
func (e *exporter) put(at int64, field uint64, data []byte) {
	b := e.packet[:0]
	if at >= 0 {
		b = appendUint(b, packetTimestamp, uint64(at))
	}
	b = appendUint(b, packetSequence, 1)
	if len(e.interned) > 0 {
		b = appendBytes(b, packetInternedData, e.interned)
		e.interned = e.interned[:0]
	}
	b = appendUint(b, packetSequenceFlags, needsState)
	b = appendBytes(b, field, data)
	e.packet = b
	e.write(b)
}

func (e *exporter) write(packet []byte) {
	var h [12]byte
	if e.err == nil {
		_, e.err = e.w.Write(appendVarint(appendTag(h[:0], tracePacket, wireBytes), uint64(len(packet))))
	}
	if e.err == nil {
		_, e.err = e.w.Write(packet)
	}
}

// clear begins the incremental state anew: what is interned is forgotten, numbers are not given twice.
func (e *exporter) clear(first bool) {
	clear(e.strings)
	clear(e.objects)
	clear(e.sites)
	e.names, e.classes = [1 << 11]uint64{}, [64]uint64{}
	e.others, e.keys = map[string]uint64{}, map[string]uint64{}
	b := appendUint(nil, packetSequence, 1)
	b = appendUint(b, packetSequenceFlags, stateCleared)
	b = appendBytes(b, packetDefaults, appendUint(nil, defaultsClock, clockMonotonic))
	if first {
		b = appendUint(b, packetFirst, 1)
	}
	e.write(b)
}

// head writes the clocks and the tracks.
func (e *exporter) head() {
	e.clear(true)
	clock := func(id, ns uint64) []byte {
		return appendBytes(nil, snapshotClocks, appendUint(appendUint(nil, clockID, id), clockTimestamp, ns))
	}
	b := clock(clockMonotonic, uint64(e.mono))
	if e.t.Clock.Real0 > 0 {
		b = append(b, clock(clockRealtime, uint64(e.t.Clock.Real0))...)
	}
	b = appendUint(b, snapshotPrimary, clockMonotonic)
	e.put(e.mono, packetClockSnapshot, b)
	wanted := map[*trace.Proc]bool{}
	for _, th := range e.t.Threads {
		if e.o.Thread(th) {
			wanted[th.Proc] = true
		}
	}
	for _, p := range e.t.Procs {
		if wanted[p] {
			e.process(p)
		}
	}
	for _, th := range e.t.Threads {
		if e.o.Thread(th) {
			e.threadTrack(th, "")
		}
	}
}

// pidOf and tidOf are ids for Perfetto, to which 0 is the kernel: where the trace is damaged and does not say, numbers
// above all that a kernel gives.
func pidOf(p *trace.Proc) uint64    { return knownID(p.PID, p.Number) }
func tidOf(th *trace.Thread) uint64 { return knownID(th.TID, th.UID) }
func knownID(id, number uint32) uint64 {
	const most = 1 << 22
	if id == 0 || id > most {
		return most + uint64(number%(1<<30))
	}
	return uint64(id)
}

func (e *exporter) process(p *trace.Proc) {
	name := p.Name
	for q, hops := p, 0; q != nil && hops < 1<<10; q, hops = q.Parent, hops+1 {
		if q.Exe != "" { // a forked one runs its parent's program
			name += " " + path.Base(q.Exe)
			break
		}
	}
	d := appendUint(nil, processPID, pidOf(p))
	for i, a := range p.Args {
		if i == 64 {
			break
		}
		d = appendBytes(d, processCmdline, trace.Clean(a[:min(len(a), 1024)]))
	}
	d = appendBytes(d, processName, trace.Clean(name))
	b := appendUint(nil, trackUUID, uuid(trackOfProcess, uint64(p.Number)))
	b = appendBytes(b, trackName, trace.Clean(name))
	e.put(-1, packetTrackDescriptor, appendBytes(b, trackProcess, d))
}

func (e *exporter) threadTrack(th *trace.Thread, own string) {
	name := th.Name
	if own != "" {
		name += " " + own
	}
	d := appendUint(nil, threadPID, pidOf(th.Proc))
	d = appendUint(d, threadTID, tidOf(th))
	d = appendBytes(d, threadName, trace.Clean(name))
	b := appendUint(nil, trackUUID, uuid(trackOfThread, uint64(th.UID)))
	b = appendUint(b, trackParent, uuid(trackOfProcess, uint64(th.Proc.Number)))
	b = appendBytes(b, trackName, trace.Clean(name))
	e.put(-1, packetTrackDescriptor, appendBytes(b, trackThread, d))
}

// child makes a track below a thread's.
func (e *exporter) child(s *sub, kind uint64, th *thread, name string) uint64 {
	id := uuid(kind, uint64(th.th.UID))
	if !s.made {
		s.made = true
		b := appendUint(nil, trackUUID, id)
		b = appendUint(b, trackParent, th.uuid)
		e.put(-1, packetTrackDescriptor, appendBytes(b, trackName, name))
	}
	return id
}

func (e *exporter) thread(th *trace.Thread) *thread {
	if e.last != nil && e.last.th == th {
		return e.last
	}
	s := e.threads[th]
	if s == nil {
		s = &thread{th: th, uuid: uuid(trackOfThread, uint64(th.UID))}
		e.threads[th] = s
	}
	e.last = s
	return s
}

// intern gives a text its number in one of the tables of InternedData.
func (e *exporter) intern(table uint64, text string) uint64 {
	e.iid++
	b := appendBytes(appendUint(e.note[:0], internIID, e.iid), internText, text)
	e.note = b
	e.interned = appendBytes(e.interned, table, b)
	return e.iid
}

func (e *exporter) callName(r *trace.Record) uint64 {
	if int(r.Call) >= len(e.names) || r.Row == nil {
		return e.otherName("call" + strconv.Itoa(int(r.Call)))
	}
	n := &e.names[r.Call]
	if *n == 0 {
		*n = e.intern(internNames, r.Row.Name)
	}
	return *n
}

func (e *exporter) otherName(s string) uint64 {
	n := e.others[s]
	if n == 0 {
		n = e.intern(internNames, s)
		e.others[s] = n
	}
	return n
}

func (e *exporter) class(c cabi.Class) uint64 {
	n := &e.classes[c%64]
	if *n == 0 {
		*n = e.intern(internCategories, c.String())
	}
	return *n
}

func (e *exporter) key(s string) uint64 {
	n := e.keys[s]
	if n == 0 {
		n = e.intern(internKeys, s)
		e.keys[s] = n
	}
	return n
}

// value is the number of an annotation's text.
func (e *exporter) value(s string) uint64 {
	n := e.strings[s]
	if n == 0 {
		s = trace.Clean(s)
		n = e.intern(internValues, s)
		e.strings[s] = n
	}
	return n
}

func (e *exporter) object(o trace.Object, row *trace.Row) uint64 {
	k := objectKey{obj: o}
	if row != nil {
		k.call = row.ID
	}
	n := e.objects[k]
	if n == 0 {
		kind := "object"
		if row != nil && row.Obj != "" {
			kind = row.Obj
		}
		n = e.value(e.objectText(o, kind))
		e.objects[k] = n
	}
	return n
}

func (e *exporter) objectText(o trace.Object, kind string) string {
	by := "thread" + strconv.FormatUint(uint64(o.UID), 10)
	if th := e.t.ThreadByUID(o.UID); th != nil {
		by = th.Name
	}
	if kind == "thread" && o.Num == 0 {
		return by
	}
	return kind + ":" + by + "#" + strconv.FormatUint(o.Num, 10)
}

func (e *exporter) site(p *trace.Proc, pc uint64) uint64 {
	k := siteKey{p, pc}
	n := e.sites[k]
	if n == 0 {
		n = e.value(e.printer.Site(p, pc))
		e.sites[k] = n
	}
	return n
}

// Annotations of the event that is being made.

func (e *exporter) annotate(b []byte, key string, field, v uint64) []byte {
	d := appendUint(e.note2(), annotationName, e.key(key))
	return appendBytes(b, eventAnnotation, appendUint(d, field, v))
}

func (e *exporter) annotateText(b []byte, key, text string) []byte {
	d := appendUint(e.note2(), annotationName, e.key(key))
	return appendBytes(b, eventAnnotation, appendBytes(d, annotationText, trace.Clean(text)))
}

// note2 is room for an annotation.
func (e *exporter) note2() []byte { return e.body[:0] }

// moves are bytes that are on their way, by when their event ends: then they are counted.
type moves []move

type move struct {
	at   int64
	proc uint32
	what int
	n    int64
}

func (m moves) Len() int           { return len(m) }
func (m moves) Less(i, j int) bool { return m[i].at < m[j].at }
func (m moves) Swap(i, j int)      { m[i], m[j] = m[j], m[i] }
func (m *moves) Push(x any)        { *m = append(*m, x.(move)) }
func (m *moves) Pop() any {
	o := *m
	x := o[len(o)-1]
	*m = o[:len(o)-1]
	return x
}

var _ heap.Interface = (*moves)(nil)

// Package summary reads a whole trace once and tells what a person asks first: what ran, for how long, who waited for
// what, what was recorded at what price, and what was not seen. It does no I/O of its own and reads no clock.
package summary

import (
	"cmp"
	"slices"
	"sync"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// Summary is what Of finds. Times are ns.
type Summary struct {
	Events    uint64
	ByClass   [cabi.Classes]int64
	Blocked   [cabi.Classes]int64 // time inside of calls that have an end of their own
	Unknown   int64               // events of calls that this version does not know
	Waits     []Wait              // by time, the longest first
	Start     uint64              // ticks
	End       uint64
	Processes int
	Threads   int
	Chunks    int
	Bytes     int64 // as written, without inputs and hashes
	Inputs    int64
	Hashes    int64
	Kept      []Kept
	Unseen    []Count
	Lost      []Count
	Signals   int64
	Marks     int64
	Preempted int64 // times that a serial run was not serial
	PeakPages uint64
	Cover     trace.Cover
	Root      *Exit // how the first process ended, in the last program that it became; nil when it did not tell
	Recovered bool
	Damage    []error
	Damaged   int
	Points    []trace.ClockPoint
}

// Wait is what threads waited for at one object.
type Wait struct {
	Object trace.Object
	Kind   string
	Thread string // that saw the object first
	Times  int64
	NS     int64
	MaxNS  int64
	Seq    uint64 // its highest place in order: how often it was taken
	Call   string // of the longest wait
	Proc   *trace.Proc
	PC     uint64
}

// Kept is a file whose content before the run was kept, or not.
type Kept struct {
	Path string
	Size uint64
	How  uint64
}

// Count is how often something was found.
type Count struct {
	What string
	N    uint64
}

// Exit is how a process ended.
type Exit struct {
	How                      uint64
	Status                   int64
	RChar, WChar, Own        uint64
	CPUNS, ChildNS           uint64
	readSeen, writeSeen, cpu uint64
	modules                  uint64
	at                       uint64 // ticks
	told                     bool
}

// maxObjects bounds how many objects' waits are kept apart, maxNames how many different kept files and unseen things.
const (
	maxObjects = 1 << 18
	maxNames   = 256
)

type counted struct{ reads, writes bool }

// kernelCounts says which rows' results are in the kernel's rchar and wchar: those that go through read and write,
// whatever the descriptor; recv and send do not.
var kernelCounts = func() map[string]counted {
	m := map[string]counted{}
	for _, n := range []string{"read", "pread", "pread64", "readv", "preadv", "preadv64", "preadv2", "preadv64v2", "__read_chk", "__pread_chk", "__pread64_chk", "__read", "__pread64", "_IO_file_read"} {
		m[n] = counted{reads: true}
	}
	for _, n := range []string{"write", "pwrite", "pwrite64", "writev", "pwritev", "pwritev64", "pwritev2", "pwritev64v2", "__write", "__pwrite64", "_IO_file_write"} {
		m[n] = counted{writes: true}
	}
	for _, n := range []string{"sendfile", "sendfile64", "copy_file_range"} {
		m[n] = counted{true, true}
	}
	return m
}()

type objKey struct {
	obj  trace.Object
	kind string
}

// part is what one thread adds.
type part struct {
	th      *trace.Thread
	byCall  []int64
	blocked [cabi.Classes]int64 // ticks
	waits   map[objKey]*Wait
	end     uint64
	inputs  int64
	hashes  int64
	prevEnd uint64
	run     uint64 // ticks of running since the last CPU sample
	cpu     uint64
	read    uint64
	write   uint64
	signals int64
	marks   int64
	preempt int64
	modules uint64
	unknown int64
	peak    uint64
	nap     uint64 // ticks: longer calls are not running
	kept    []Kept
	unseen  map[string]uint64
	lost    map[string]uint64
	exit    *Exit
	clock   *trace.Clock
	points  []trace.ClockPoint
	counts  []counted
	recent  [64]seqSlot // of seqs, so that a lock taken again and again asks no map
	seqs    map[trace.Object]uint64
}

// seqSlot is the highest place in an object's order that the thread has had.
type seqSlot struct {
	obj trace.Object
	seq uint64
}

// order notes the place of an event in its object's order.
func (p *part) order(r *trace.Record) {
	s := &p.recent[(r.Obj.Num^uint64(r.Obj.UID))%uint64(len(p.recent))]
	if s.obj != r.Obj {
		p.keep(s)
		s.obj, s.seq = r.Obj, 0
	}
	if r.Seq > s.seq {
		s.seq = r.Seq
	}
}

func (p *part) keep(s *seqSlot) {
	if s.seq == 0 {
		return
	}
	if was, ok := p.seqs[s.obj]; ok && was < s.seq || !ok && len(p.seqs) < maxObjects {
		p.seqs[s.obj] = s.seq
	}
}

// napNS is how long a call may take and still count as running, as the recorder has it (GAP_NS in shim/ring.c).
const napNS = 40_000

// Of reads the trace on up to workers goroutines.
func Of(t *trace.Trace, workers int, prog trace.Progress) (*Summary, error) {
	var mu sync.Mutex
	var parts []*part
	counts := make([]counted, 1<<16)
	for i := range cabi.Calls {
		counts[cabi.Calls[i].ID] = kernelCounts[cabi.Calls[i].Name]
	}
	res, err := t.Walk(workers, func(th *trace.Thread) trace.Visit {
		p := &part{th: th, byCall: make([]int64, 2048), waits: map[objKey]*Wait{}, seqs: map[trace.Object]uint64{}, end: th.First, prevEnd: th.First, clock: &t.Clock,
			nap: t.Clock.Hz / (1e9 / napNS), counts: counts}
		mu.Lock()
		parts = append(parts, p)
		mu.Unlock()
		return p.visit
	}, prog)
	if err != nil {
		return nil, err
	}
	s := &Summary{Events: res.Events, Damage: append(t.Damage, res.Damage...), Damaged: res.Damaged + len(t.Damage)}
	s.Processes, s.Threads, s.Chunks = len(t.Procs), len(t.Threads), t.Chunks()
	s.Bytes = res.Bytes
	s.Start = t.Clock.Ticks0
	s.End = s.Start
	slices.SortFunc(parts, func(a, b *part) int { return cmp.Compare(a.th.UID, b.th.UID) })
	waits := map[objKey]*Wait{}
	exits := map[*trace.Proc]*Exit{}
	unseen, lost := map[string]uint64{}, map[string]uint64{}
	for _, p := range parts {
		s.take(p, t, waits, exits, unseen, lost)
	}
	data := t.DataBytes()
	s.Inputs += data
	s.Bytes -= s.Inputs - data + s.Hashes
	s.Unseen, s.Lost = sorted(unseen), sorted(lost)
	seqs := map[trace.Object]uint64{}
	for _, p := range parts {
		for i := range p.recent {
			p.keep(&p.recent[i])
		}
		for o, n := range p.seqs {
			seqs[o] = max(seqs[o], n)
		}
	}
	for _, w := range waits {
		w.Thread = "?"
		w.Seq = seqs[w.Object]
		if th := t.ThreadByUID(w.Object.UID); th != nil {
			w.Thread = th.Name
		}
		s.Waits = append(s.Waits, *w)
	}
	slices.SortFunc(s.Waits, func(a, b Wait) int {
		return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.Object.UID, b.Object.UID), cmp.Compare(a.Object.Num, b.Object.Num))
	})
	s.cover(t, exits)
	return s, nil
}

func sorted(m map[string]uint64) []Count {
	var c []Count
	for k, n := range m {
		c = append(c, Count{k, n})
	}
	slices.SortFunc(c, func(a, b Count) int { return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.What, b.What)) })
	return c
}

func (p *part) visit(r *trace.Record) error {
	if r.Tag != trace.TagEvent {
		p.control(r)
		return nil
	}
	if r.Call < 2048 {
		p.byCall[r.Call]++
	} else {
		p.unknown++
	}
	if r.Begin > p.prevEnd {
		p.run += r.Begin - p.prevEnd
	}
	p.prevEnd = r.End
	if r.End > p.end {
		p.end = r.End
	}
	if r.Timed {
		p.timed(r)
	}
	if r.Seq != 0 {
		p.order(r)
	}
	// What follows the record of its end (streams flushed last) is not in the kernel's counts, which were read then.
	if c := p.counts[r.Call]; (c.reads || c.writes) && r.Ret > 0 && p.exit == nil {
		if c.reads {
			p.read += uint64(r.Ret)
		}
		if c.writes {
			p.write += uint64(r.Ret)
		}
	}
	return nil
}

// tellsWait says whether calls on this kind of object note that they waited. Others, as a wait for a condition, wait
// whenever they take time.
func tellsWait(kind string) bool {
	switch kind {
	case "mutex", "rwlock", "spin", "sem", "once", "guard", "stdio":
		return true
	}
	return false
}

func (p *part) timed(r *trace.Record) {
	d := r.End - r.Begin
	if d < p.nap {
		p.run += d
	}
	if r.Row == nil {
		return
	}
	p.blocked[r.Row.Class] += int64(d)
	if r.Obj.None() || r.Note&cabi.NoteWaited == 0 && (r.Row.Class != cabi.Sync || tellsWait(r.Row.Obj)) {
		return
	}
	k := objKey{r.Obj, r.Row.Obj}
	w := p.waits[k]
	if w == nil {
		if len(p.waits) >= maxObjects {
			return
		}
		w = &Wait{Object: r.Obj, Kind: r.Row.Obj}
		p.waits[k] = w
	}
	w.Times++
	w.NS += int64(d) // ticks, until take
	if int64(d) > w.MaxNS {
		w.MaxNS, w.Call, w.PC, w.Proc = int64(d), r.Row.Name, r.PC, p.th.Proc
	}
}

func (p *part) control(r *trace.Record) {
	n := &r.Nums
	if r.End > p.end {
		p.end = r.End
	}
	switch r.Tag {
	case cabi.TagData, cabi.TagInput: // bytes read, and what the kernel told in a structure
		p.inputs += int64(len(r.Text[0])) + 2
	case cabi.TagHash:
		p.hashes += 9
	case cabi.TagCPU:
		p.cpu, p.run = n[0], 0
		p.prevEnd = r.End
	case cabi.TagRSS:
		p.peak = max(p.peak, n[0])
	case cabi.TagSignal:
		p.signals++
	case cabi.TagModule:
		p.modules++
	case cabi.TagMark:
		p.marks++
	case cabi.TagKept:
		if len(p.kept) < maxNames {
			p.kept = append(p.kept, Kept{string(r.Text[0]), n[2], n[3]})
		}
	case cabi.TagToken:
		if how := n[1] &^ cabi.TokenHere; how == cabi.TokenSlept || how == cabi.TokenSpun {
			p.preempt++
		}
	case cabi.TagUnseen:
		what := trace.UnseenWhat(n[0])
		if len(r.Text[0]) > 0 {
			what += " " + trace.Clean(string(r.Text[0][:min(len(r.Text[0]), 200)]))
		}
		add(&p.unseen, what, 1)
	case cabi.TagLost:
		add(&p.lost, trace.LostWhy(n[0]), max(1, lostCount(n[0], n[1])))
	case cabi.TagExit:
		p.exit = &Exit{How: n[0], Status: int64(n[1]), RChar: n[2], WChar: n[3], Own: n[4], CPUNS: n[5], ChildNS: n[6], at: r.Begin, told: true}
	case cabi.TagClock:
		if len(p.points) < 64 {
			p.points = append(p.points, trace.ClockPoint{Ticks: n[0], Mono: n[1], Real: n[2]})
		} else {
			p.points[63] = trace.ClockPoint{Ticks: n[0], Mono: n[1], Real: n[2]}
		}
	}
}

// lostCount is how many things a TagLost record stands for: a failed write says its errno instead.
func lostCount(why, n uint64) uint64 {
	if why == cabi.LostWrite {
		return 1
	}
	return n
}

func add(m *map[string]uint64, what string, n uint64) {
	if *m == nil {
		*m = map[string]uint64{}
	}
	if _, ok := (*m)[what]; !ok && len(*m) >= maxNames {
		what = "others"
	}
	(*m)[what] += n
}

func (s *Summary) take(p *part, t *trace.Trace, waits map[objKey]*Wait, exits map[*trace.Proc]*Exit, unseen, lost map[string]uint64) {
	for id, n := range p.byCall {
		if n == 0 {
			continue
		}
		if row := trace.RowOf(uint64(id)); row != nil {
			s.ByClass[row.Class] += n
		} else {
			s.Unknown += n
		}
	}
	s.Unknown += p.unknown
	for c, ticks := range p.blocked {
		s.Blocked[c] += t.Clock.NS(uint64(ticks))
	}
	for k, w := range p.waits {
		w.NS, w.MaxNS = t.Clock.NS(uint64(w.NS)), t.Clock.NS(uint64(w.MaxNS))
		o := waits[k]
		if o == nil {
			if len(waits) < maxObjects {
				waits[k] = w
			}
			continue
		}
		o.Times += w.Times
		o.NS += w.NS
		if w.MaxNS > o.MaxNS {
			o.MaxNS, o.Call, o.PC, o.Proc = w.MaxNS, w.Call, w.PC, w.Proc
		}
	}
	s.End = max(s.End, p.end)
	s.Inputs += p.inputs
	s.Hashes += p.hashes
	s.Signals += p.signals
	s.Marks += p.marks
	s.Preempted += p.preempt
	s.PeakPages = max(s.PeakPages, p.peak)
	s.Points = append(s.Points, p.points...)
	s.Kept = append(s.Kept, p.kept[:min(len(p.kept), max(0, maxNames-len(s.Kept)))]...)
	s.Recovered = s.Recovered || p.th.Recovered()
	for what, n := range p.unseen {
		add(&unseen, what, n)
	}
	for what, n := range p.lost {
		add(&lost, what, n)
	}
	e := exits[p.th.Proc]
	if e == nil {
		e = &Exit{}
		exits[p.th.Proc] = e
	}
	if p.exit != nil {
		p.exit.readSeen, p.exit.writeSeen, p.exit.cpu, p.exit.modules = e.readSeen, e.writeSeen, e.cpu, e.modules
		*e = *p.exit
	}
	e.readSeen += p.read
	e.writeSeen += p.write
	e.cpu += p.cpu + uint64(t.Clock.NS(p.run))
	e.modules += p.modules
}

// What the kernel and the dynamic linker read of a program's files for it to begin, which the kernel counts as read by the
// process: the first bytes of the program, its headers and those of its interpreter, and as much of each library as the
// dynamic linker looks at, those that are loaded later, too.
const (
	execReads    = 256 + 28 + 64 + (13+11)*56 + 2*784 // the last of the C library's, which has more headers than others
	libraryReads = 832
	notLibraries = 3 // modules: the program, the dynamic linker, the kernel's
)

// loading is how much was read to load the program of p.
func loading(p *trace.Proc, e *Exit) uint64 {
	if p.How == cabi.ProcForked || e == nil {
		return 0
	}
	return execReads + libraryReads*(max(e.modules, notLibraries)-notLibraries)
}

// first is the program that a process began with, before any exec.
func first(p *trace.Proc) *trace.Proc {
	for hops := 0; p.How == cabi.ProcExeced && p.Parent != nil && p.Parent.PID == p.PID && hops < 1<<10; hops++ {
		p = p.Parent
	}
	return p
}

// cover adds up what the kernel counted and what the events explain. The kernel counts a process over all programs it
// ran, so those that another followed by exec count with the last one; and it adds a child's counts to its parent's
// when the parent has waited for it, so those are taken off there. What was read to load a program is nobody's.
func (s *Summary) cover(t *trace.Trace, exits map[*trace.Proc]*Exit) {
	replaced := map[*trace.Proc]bool{}
	for _, p := range t.Procs {
		if p.How == cabi.ProcExeced && p.Parent != nil && p.Parent.PID == p.PID {
			replaced[p.Parent] = true
		}
	}
	type bytes struct{ read, write uint64 }
	last, children := map[*trace.Proc]*Exit{}, map[*trace.Proc]bytes{}
	for _, p := range t.Procs {
		if e := exits[p]; e != nil && e.told && !replaced[p] {
			last[first(p)] = e
		}
	}
	for p, e := range last {
		if p.Parent == nil {
			continue
		}
		by := first(p.Parent)
		if b := last[by]; b != nil && e.at <= b.at {
			children[by] = bytes{children[by].read + e.RChar, children[by].write + e.WChar}
		}
	}
	c := &s.Cover
	for _, p := range t.Procs {
		e := exits[p]
		if e == nil {
			continue
		}
		if p.Number == 0 {
			s.Root = last[p]
		}
		if replaced[p] {
			continue
		}
		if !e.told {
			c.NoExit++
			continue
		}
		own, read, write, load := e.Own, e.readSeen, e.writeSeen, loading(p, e)
		cpu := e.cpu
		for q, hops := p, 0; q.How == cabi.ProcExeced && q.Parent != nil && q.Parent.PID == q.PID && hops < 1<<10; hops++ {
			q = q.Parent
			load += loading(q, exits[q])
			if b := exits[q]; b != nil {
				own, read, write = own+b.Own, read+b.readSeen, write+b.writeSeen
			}
		}
		of := children[first(p)]
		counted := e.RChar - min(of.read, e.RChar)
		c.ReadBytes += counted - min(load, counted-min(read, counted))
		c.WriteBytes += e.WChar - min(of.write+own, e.WChar)
		c.ReadSeen += read
		c.WriteSeen += write
		c.CPUNS += e.CPUNS
		c.CPUSeen += min(cpu, e.CPUNS)
	}
	for _, u := range s.Unseen {
		c.UnseenCount += u.N
	}
}

// Duration is from the start of the run to its last event.
func (s *Summary) Duration(c *trace.Clock) int64 { return c.NS(s.End - s.Start) }

// Totals is what meta.json keeps of it.
func (s *Summary) Totals() *trace.Totals {
	t := &trace.Totals{Processes: s.Processes, Threads: s.Threads, Events: s.Events, ByClass: map[string]int64{}, Chunks: s.Chunks,
		Bytes: s.Bytes, InputBytes: s.Inputs, HashBytes: s.Hashes, Damaged: s.Damaged, PerEvent: s.PerEvent(), Preempted: s.Preempted}
	for c, n := range s.ByClass {
		if n > 0 {
			t.ByClass[cabi.Class(c).String()] = n
		}
	}
	for _, k := range s.Kept {
		if k.How == cabi.KeptClone || k.How == cabi.KeptCopy {
			t.KeptBytes += int64(k.Size)
		}
	}
	for _, l := range s.Lost {
		t.Lost += l.N
	}
	return t
}

// PerEvent is how many bytes an event takes as written, without inputs and hashes.
func (s *Summary) PerEvent() float64 {
	if s.Events == 0 {
		return 0
	}
	return float64(s.Bytes) / float64(s.Events)
}

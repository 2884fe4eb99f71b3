package issued

import (
	"container/heap"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"prophet/cabi"
	"prophet/runtime/demand"
	"prophet/runtime/summary"
	"prophet/runtime/trace"
)

// Source is what an issuer trace is made of: home's trace, the program it was compiled to, the map of that, and the log of an issue.
type Source struct {
	Trace   *trace.Trace
	Program string
	Map     string
	Log     string
	Target  string // what is said of where it was issued
}

// Result is what Make made.
type Result struct {
	Events uint64 `json:"events"`
	Ops    uint64 `json:"operations"`     // that the log has
	Cut    uint64 `json:"operations_cut"` // of these, what nobody knows what the program does in their place
	Cuts   []Cut  `json:"cuts,omitempty"` // where threads are cut: the first ones
}

// Cut is where a thread of an issuer trace ends before its time.
type Cut struct {
	Thread string `json:"thread"`
	Event  uint64 `json:"event"` // the last one that is told, plus one
	Call   string `json:"call"`
}

// cutsMax bounds how many cuts are told.
const cutsMax = 100

// Make makes the issuer trace out, a directory that must not be there yet: each thread with the events that it went through, at the
// times and in the orders of the issue. What the program was given is what home's program was given at the events that were issued.
func Make(s Source, out string) (res *Result, err error) {
	if err := s.Trace.Meta.Whole(); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Trace.Path, err)
	}
	m := &maker{src: s, res: &Result{}, shared: map[trace.Object]*named{}, procs: map[uint32]*space{}, born: map[uint32]*space{}, uids: map[uint32]uint64{}, made: map[int]uint64{}}
	if m.prog, err = readProgram(s.Program); err != nil {
		return nil, err
	}
	if m.home, err = demand.ReadMap(s.Map); err != nil {
		return nil, err
	}
	if m.log, err = Open(s.Log); err != nil {
		return nil, err
	}
	defer m.log.Close()
	if m.home.Program != m.prog.Sum || m.log.Program != m.prog.Sum || m.home.Ops != m.prog.Ops || len(m.log.Threads) != len(m.prog.threads) {
		return nil, errors.New("the map, the log and the program are not of one another")
	}
	for i := range m.log.Threads {
		// As much as the engine has room for: the log comes from elsewhere, and each of its operations becomes events here.
		if m.log.Threads[i].Logged > 2*m.prog.threads[i].Count+1024 {
			return nil, fmt.Errorf("%w: thread %d has more operations than can be", errLog, i)
		}
	}
	streams := demand.Streams(s.Trace)
	if len(streams) != len(m.prog.threads) {
		return nil, errors.New("the program is of another trace")
	}
	if m.h, err = openHome(s.Trace, streams); err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp(filepath.Dir(out), ".issued-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	dir := filepath.Join(work, "run.prophet")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	if err := m.write(dir); err != nil {
		return nil, err
	}
	var damage []error
	if err := errors.Join(s.Trace.CopyKept(dir, func(e error) { damage = append(damage, e) }, nil), errors.Join(damage...)); err != nil {
		return nil, err
	}
	if err := m.finish(dir); err != nil {
		return nil, err
	}
	return m.res, os.Rename(dir, out)
}

// maker is the state of Make.
type maker struct {
	src    Source
	prog   *program
	home   *demand.Map
	log    *Log
	h      *home
	w      *trace.Writer
	res    *Result
	waits  map[uint64]*demand.MapWait
	drops  map[dropKey]bool
	lanes  []*lane
	shared map[trace.Object]*named
	procs  map[uint32]*space // by number
	born   map[uint32]*space // of processes that have been forked and have not come yet
	uids   map[uint32]uint64 // objects that threads have named
	made   map[int]uint64    // threads that there are: ticks of that
}

type dropKey struct {
	thread uint32
	unit   uint64
}

// lane is a thread that was issued.
type lane struct {
	n       int
	streams []*homeStream
	stream  int
	enc     *trace.Encoder
	space   *space
	uid     uint32
	events  uint64
	data    uint64 // chunks of it
	it      *Iter
	next    entry
	more    bool // next is there
	begun   bool
	over    bool
	last    uint64 // ticks of the end of the last operation
	cpu     uint64 // ns
	steps   []step
	call    *trace.Row // of the last event
}

type entry struct {
	cabi.ProgLog
	unknown bool
}

// step is a unit of home's as it was issued.
type step struct {
	u      *unit
	stream *homeStream // it is of
	begin  uint64      // ticks of its event
	end    uint64
	from   uint64 // home's ticks that are issued at base, with so many of the for one
	base   uint64
	rate   float64
	own    bool // it is the operation's own
	ret    int64
	given  bool // ret counts
	wait   bool // a wait for a condition: nothing stands before it
	names  bool // only what it names, which it does before it waits
	fork   uint32
	forks  bool
	cut    bool
}

// at maps a time of home's near a step to one of the issue.
func (s *step) at(home uint64) uint64 {
	if home <= s.from {
		return s.base
	}
	return min(s.base+uint64(float64(home-s.from)*s.rate), s.begin)
}

// key orders steps of different threads: who takes a place in an object's order has it at the end of the call, who gives one at its beginning.
func (s *step) key() uint64 {
	if s.u.is && !s.names && takes(s.u.event.Row) {
		return s.end
	}
	return s.begin
}

type laneHeap []*lane

func (h laneHeap) Len() int { return len(h) }
func (h laneHeap) Less(i, j int) bool {
	if a, b := h[i].steps[0].key(), h[j].steps[0].key(); a != b {
		return a < b
	}
	return h[i].n < h[j].n
}
func (h laneHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *laneHeap) Push(x any)   { *h = append(*h, x.(*lane)) }
func (h *laneHeap) Pop() any {
	l := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return l
}

// write writes all threads' streams, in the order of the issue.
func (m *maker) write(dir string) error {
	m.waits, m.drops = map[uint64]*demand.MapWait{}, map[dropKey]bool{}
	for i := range m.home.Waits {
		m.waits[m.home.Waits[i].Op] = &m.home.Waits[i]
	}
	for _, d := range m.home.Drops {
		for k := range uint64(d.Count) {
			m.drops[dropKey{d.Thread, d.Unit + k}] = true
		}
	}
	if err := trace.WriteMeta(dir, m.meta()); err != nil {
		return err
	}
	w, err := trace.NewWriter(dir)
	if err != nil {
		return err
	}
	m.w = w
	err = m.all()
	return errors.Join(err, w.Close())
}

func (m *maker) all() error {
	var h laneHeap
	for n := range m.log.Threads {
		m.res.Ops += m.log.Threads[n].Logged
		if m.log.Threads[n].Logged == 0 || len(m.h.threads[n].streams) == 0 {
			continue
		}
		l := &lane{n: n, streams: m.h.threads[n].streams, it: m.log.Iter(n)}
		m.lanes = append(m.lanes, l)
		if err := m.fetch(l); err != nil {
			return err
		}
		if err := m.fill(l); err != nil {
			return err
		}
		if len(l.steps) > 0 {
			h = append(h, l)
		}
	}
	heap.Init(&h)
	for len(h) > 0 {
		l := h[0]
		if err := m.step(l, &l.steps[0]); err != nil {
			return err
		}
		l.steps = l.steps[1:]
		if len(l.steps) == 0 {
			if err := m.fill(l); err != nil {
				return err
			}
		}
		if len(l.steps) > 0 {
			heap.Fix(&h, 0)
		} else {
			heap.Pop(&h)
		}
	}
	if err := m.silent(); err != nil {
		return err
	}
	for _, l := range m.lanes {
		if l.enc == nil {
			continue
		}
		if l.over || m.log.Threads[l.n].Over == 0 { // how much it had used where it is cut: nobody could tell computing from waiting otherwise
			l.enc.Copy(&trace.Record{Tag: cabi.TagCPU, Begin: l.last, End: l.last, Nums: [8]uint64{l.cpu}})
		}
		flags := uint16(0)
		if !l.over && l.streams[l.stream].th.Tail {
			flags = cabi.ChunkLast
		}
		if err := l.enc.Flush(flags); err != nil {
			return err
		}
	}
	return nil
}

// silent begins the streams of threads that were there when the issue ended, and had come to nothing that is told: what they do is
// to be learnt, so whoever executes the program in this order has to know them.
func (m *maker) silent() error {
	lanes := map[int]*lane{}
	for _, l := range m.lanes {
		lanes[l.n] = l
	}
	for _, n := range slices.Sorted(maps.Keys(m.made)) {
		at := m.made[n]
		l := lanes[n]
		if l == nil {
			l = &lane{n: n, streams: m.h.threads[n].streams}
			m.lanes = append(m.lanes, l)
		}
		if l.space != nil {
			continue
		}
		u, st, err := m.h.unit(n, 0)
		if err != nil {
			return err
		}
		m.begin(l, at)
		s := step{u: u, stream: st, begin: at, end: at, from: ^uint64(0), base: at}
		for i := range u.before {
			m.control(l, &s, u.before[i])
			if u.before[i].Tag == cabi.TagThread {
				break
			}
		}
	}
	return nil
}

// fetch reads the next entry of a lane's log.
func (m *maker) fetch(l *lane) error {
	err := l.it.Next(&l.next.ProgLog)
	if err == io.EOF {
		l.more = false
		return nil
	}
	if err != nil {
		return err
	}
	if l.next.Op >= m.prog.Ops || l.next.End < l.next.Begin || m.prog.region(l.next.Op) < 0 {
		return fmt.Errorf("%w: thread %d has an operation that is none", errLog, l.n)
	}
	l.more, l.next.unknown = true, l.it.Unknown
	return nil
}

// kindOf is what of a result decides the way on.
func kindOf(result int64) int64 { return cabi.Kind(result) }

// fill makes steps of the next operations, until there are some.
func (m *maker) fill(l *lane) error {
	l.steps = l.steps[:0:0]
	for len(l.steps) == 0 && l.more && !l.over {
		e := l.next
		if err := m.fetch(l); err != nil {
			return err
		}
		if !l.begun { // where a thread begins is said before its first operation
			l.begun, l.last = true, e.Begin
			m.made[l.n] = e.Begin
			continue
		}
		if err := m.operation(l, &e); err != nil {
			return err
		}
		l.last = e.End
	}
	if t := &m.log.Threads[l.n]; len(l.steps) == 0 && !l.over && m.log.Status == cabi.ResultDiverged && t.Over == 0 {
		l.over = true
		return m.begunWait(l, t.At)
	}
	return nil
}

// begunWait says what a wait as the program made it names, where the issue ended before the wait did: it had begun.
func (m *maker) begunWait(l *lane, at uint64) error {
	w := m.waits[at]
	if w == nil || len(m.home.Preds) > 0 || at >= m.prog.Ops || m.prog.region(at) != l.n || m.prog.codes[at] != cabi.OpCondwait {
		return nil
	}
	u, st, err := m.h.unit(l.n, w.Unit)
	if err != nil || !u.is || u.event.Row == nil {
		return err
	}
	l.steps = append(l.steps, step{u: u, stream: st, begin: l.last, end: l.last, wait: true, names: true})
	return nil
}

// operation makes the steps of an operation that was issued.
func (m *maker) operation(l *lane, e *entry) error {
	p, k := m.prog, e.Op
	h := p.region(k)
	first := p.run(k)
	var from uint64
	if first > p.threads[h].First {
		from = m.home.Ends[first-1]
	}
	to := m.home.Ends[k]
	for i := first; i <= k; i++ {
		l.cpu += uint64(float64(p.cpus[i]) * m.scale())
	}
	code := p.codes[k]
	wait := m.waits[k]
	if wait != nil {
		to = wait.Unit
	}
	own := to > from && wait == nil && code != cabi.OpRelease
	s := span{l: l, h: h, from: from, to: to, begin: l.last, end: e.Begin, own: own, main: to - 1, e: e}
	if code == cabi.OpExit {
		s.to = m.h.threads[h].total // nothing comes after it but what the process says of its end
	}
	cut := e.unknown
	state := p.flags[k]&cabi.OpState != 0
	if p.flags[k]&cabi.OpChoice != 0 && !(state && code == cabi.OpPread) && wait == nil && own && kindOf(e.Result) != kindOf(p.wants[k]) {
		// The event is that of who had this result here, and was followed from here.
		d := uint64(0)
		if l.more && !cut {
			d = p.run(l.next.Op)
		}
		if d > p.threads[p.region(max(d, 1)-1)].First && p.sites[d-1] == p.sites[k] && kindOf(p.wants[d-1]) == kindOf(e.Result) {
			s.as, s.instead = d-1, true
		} else {
			cut = true
		}
		s.ret, s.given = e.Result, !state
	}
	if code == cabi.OpFork && int(p.objs[k]) < len(p.mains) {
		if main := p.mains[p.objs[k]]; int(main) < len(m.h.threads) && len(m.h.threads[main].streams) > 0 {
			s.fork, s.forks = m.h.threads[main].streams[0].th.Proc.Number, true
		}
	}
	if code == cabi.OpCreate {
		if n := int(p.objs[k]); n < len(m.h.threads) && len(m.h.threads[n].streams) > 0 && m.made[n] == 0 {
			m.made[n] = e.End
		}
	}
	if err := m.units(&s); err != nil {
		return err
	}
	if wait != nil && (e.Seq != 0 || e.Result != 0) {
		if err := m.waited(l, h, wait, e); err != nil {
			return err
		}
	}
	if cut {
		l.over = true
		if n := len(l.steps); n > 0 {
			l.steps[n-1].cut = true
		}
		left := uint64(0)
		for l.more {
			left++
			if err := m.fetch(l); err != nil {
				return err
			}
		}
		m.res.Cut += left
		if len(l.steps) == 0 {
			m.told(l)
		}
	}
	return nil
}

func (m *maker) scale() float64 {
	if m.log.Scale == 0 {
		return 1
	}
	return m.log.Scale
}

// told notes where a thread is cut.
func (m *maker) told(l *lane) {
	if len(m.res.Cuts) < cutsMax {
		c := Cut{Thread: l.streams[l.stream].th.Name, Event: l.events}
		if l.call != nil {
			c.Call = l.call.Name
		}
		m.res.Cuts = append(m.res.Cuts, c)
	}
}

// span is units of a thread of home's that were issued between two times.
type span struct {
	l          *lane
	h          int
	from, to   uint64
	begin, end uint64
	own        bool // main is the operation's own event
	main       uint64
	e          *entry
	as         uint64 // the operation whose event it is instead
	instead    bool
	ret        int64
	given      bool
	fork       uint32
	forks      bool
}

// units makes the steps of a span. Times between operations are home's, stretched.
func (m *maker) units(s *span) error {
	if s.to <= s.from {
		return nil
	}
	type one struct {
		u   *unit
		st  *homeStream
		own bool
	}
	var list []one
	for n := s.from; n < s.to; n++ {
		if m.drops[dropKey{uint32(s.h), n}] {
			continue
		}
		u, st, err := m.h.unit(s.h, n)
		if err != nil {
			return err
		}
		if s.instead && n == s.main {
			h := m.prog.region(s.as)
			v, _, err := m.h.unit(h, m.home.Ends[s.as]-1)
			if err != nil {
				return err
			}
			both := *v
			both.before = u.before
			u = &both
		}
		list = append(list, one{u, st, s.own && n == s.main})
	}
	if len(list) == 0 {
		return nil
	}
	// Home's times: from the end of the event before to the beginning of the last one.
	low, high := uint64(0), uint64(0)
	if s.from > 0 {
		if u, st, err := m.h.unit(s.h, s.from-1); err == nil && u.is && st == list[0].st {
			low = u.event.End
		}
	}
	for i := range list {
		u := list[i].u
		if low == 0 {
			low = begins(u)
		}
		high = max(high, begins(u))
		if list[i].own {
			break
		}
		if u.is {
			high = max(high, u.event.End)
		}
	}
	rate := 0.0
	if high > low && s.end > s.begin {
		rate = float64(s.end-s.begin) / float64(high-low)
	}
	for i := range list {
		u := list[i].u
		x := step{u: u, stream: list[i].st, from: low, base: s.begin, rate: rate, begin: s.end, end: s.end}
		if u.is {
			x.begin = x.at(u.event.Begin)
			x.end = max(x.begin, x.at(u.event.End))
		}
		if list[i].own {
			x.own, x.begin, x.end = true, s.e.Begin, s.e.End
			x.ret, x.given, x.fork, x.forks = s.ret, s.given, s.fork, s.forks
		}
		s.l.steps = append(s.l.steps, x)
	}
	return nil
}

// begins is the first time of home's that a unit tells.
func begins(u *unit) uint64 {
	if len(u.before) > 0 {
		return u.before[0].Begin
	}
	return u.event.Begin
}

// waited makes the one wait of a thread that had to.
func (m *maker) waited(l *lane, h int, w *demand.MapWait, e *entry) error {
	late := e.Result != 0
	n, thread := w.Unit, h
	var u *unit
	var st *homeStream
	var err error
	if w.Skip > 0 {
		if late {
			n += uint64(w.Skip) - 1
		}
		if u, st, err = m.h.unit(thread, n); err != nil {
			return err
		}
	}
	if u == nil || late != (u.event.Ret != 0) && len(m.home.Preds) > 0 { // waits as the program made them are of no predicate
		if int(w.Pred) >= len(m.home.Preds) {
			return errors.New("the map names a predicate that is none")
		}
		p := m.home.Preds[w.Pred]
		uid, at := p.UID, p.N
		if late && p.LateUID != 0 || uid == 0 {
			uid, at = p.LateUID, p.LateN
		}
		place, ok := m.h.places[uid]
		if !ok {
			return errors.New("the map names a wait that is none")
		}
		st = m.h.threads[place.thread].streams[place.stream]
		if u, _, err = m.h.unit(place.thread, st.base+at); err != nil {
			return err
		}
	}
	if !u.is || u.event.Row == nil {
		return errors.New("the map names a wait that is none")
	}
	x := step{u: u, stream: st, begin: e.Begin, end: e.End, own: true, ret: e.Result, given: true, wait: true}
	before := x
	before.names = true
	l.steps = append(l.steps, before, x)
	return nil
}

// finish completes meta.json.
func (m *maker) finish(dir string) error {
	t, err := trace.Open(dir)
	if err != nil {
		return err
	}
	defer t.Close()
	sum, err := summary.Of(t, 1, nil)
	if err != nil {
		return err
	}
	meta := m.meta()
	meta.Issued.Cut = m.res.Cut
	meta.Totals, meta.Cover = sum.Totals(), &sum.Cover
	m.res.Events = sum.Events
	return trace.WriteMeta(dir, meta)
}

// meta is home's, but for what the issue says.
func (m *maker) meta() *trace.Meta {
	meta := *m.src.Trace.Meta
	meta.TicksHz = m.log.Hz
	meta.Issued, meta.Beside = &trace.Issued{Run: meta.Run, Target: m.src.Target, Scale: m.log.Scale}, nil
	meta.Options.Serial, meta.Options.Flight = false, 0
	if meta.Ended != nil {
		ended := *meta.Ended
		ended.At = int64(m.log.Nanos)
		meta.Ended = &ended
	}
	return &meta
}

package report

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"prophet/cabi"
	"prophet/runtime/links"
	"prophet/runtime/summary"
	"prophet/runtime/trace"
)

// collector is what one pass over the merged stream fills. Times in it are ticks.
type collector struct {
	t      *trace.Trace
	o      Options
	sum    *summary.Summary
	start  uint64
	end    uint64
	bins   int
	width  uint64 // ticks of a bin
	wide   uint64 // ticks of a step of the overview
	byUID  map[uint32]*thread
	order  []*thread
	lanes  []lane
	over   []uint64 // group*overviewSteps+step: ticks
	count  []uint64 // counter*overviewSteps+step
	pick   picker
	stats  []stat
	slow   [groups]slowest
	table  *table
	locks  lockTable
	links  *links.Tracker
	labels []string
	label  map[string]uint32
	print  *trace.Printer
	rss    map[*trace.Proc]uint64
	pages  uint64
	peak   map[*trace.Proc]uint64
	exits  map[*trace.Proc]exit
	begun  map[*trace.Proc]span
	stacks map[place]*seenStack
	timed  uint64
	open   int // threads that had not ended when their process did
}

type exit struct {
	how    uint64
	status int64
	cpu    uint64
}

type span struct{ from, to, events uint64 }

// thread is a thread as far as the stream has been read.
type thread struct {
	th     *trace.Thread
	index  int
	lane   int
	first  uint64
	end    uint64
	events uint64
	time   [groups]uint64
	calls  [groups]uint64
	cpu    uint64 // ns, as last sampled
	ran    uint64 // ticks between calls since then
	held   []held
	does   fdOp // this and the next: of the event before, for what follows it
	ret    int64
	obj    trace.Object
	pc     uint64
	begin  uint64
	ticks  uint64
	group  Group
	slow   bool // it is among the slowest
	open   bool // see Thread.Open
	label  string
}

// lane is a thread's part of the timeline while it is collected.
type lane struct {
	th   *thread
	time []uint64 // group*bins+bin
	all  uint64
}

// stat is what is known of calls of one name on one kind of descriptor.
type stat struct {
	info   *callInfo
	on     fdKind
	group  Group
	n      uint64
	failed uint64
	hist   Hist
	parts  *blocks
}

func (s *stat) title() string {
	if s.info.row == nil {
		return "a call of a newer Prophet"
	}
	if s.on != fdUnknown {
		return s.info.name + " (" + fdKindNames[s.on] + ")"
	}
	return s.info.name
}

// maxLabels bounds the names of files, connections and locks that slices carry.
const maxLabels = 1 << 18

// Of reads the trace: once for what the kernel's counts say, once in the order of time.
func Of(t *trace.Trace, o Options, prog trace.Progress) (*Report, error) {
	o.fill()
	half := func(part int64) trace.Progress {
		if prog == nil {
			return nil
		}
		return func(done, all int64) { prog(done+part*all, 2*all) }
	}
	sum, err := summary.Of(t, o.Workers, half(0))
	if err != nil {
		return nil, err
	}
	c := newCollector(t, o, sum)
	if err := c.read(half(1)); err != nil {
		return nil, err
	}
	return c.report(), nil
}

func newCollector(t *trace.Trace, o Options, sum *summary.Summary) *collector {
	c := &collector{t: t, o: o, sum: sum, start: sum.Start, end: max(sum.End, sum.Start+1), byUID: map[uint32]*thread{}, label: map[string]uint32{"": 0},
		labels: []string{""}, print: trace.NewPrinter(t, false), rss: map[*trace.Proc]uint64{}, peak: map[*trace.Proc]uint64{},
		exits: map[*trace.Proc]exit{}, begun: map[*trace.Proc]span{}, stacks: map[place]*seenStack{}}
	c.table = newTable(c.labelOf)
	c.locks = newLockTable(c)
	c.links = links.New(t)
	c.pick.most = o.Slices
	c.stats = make([]stat, statCount)
	c.over = make([]uint64, Groups*overviewSteps)
	c.count = make([]uint64, counters*overviewSteps)
	all := c.end - c.start
	threads := slices.Clone(t.Threads)
	slices.SortStableFunc(threads, func(a, b *trace.Thread) int {
		return cmp.Or(cmp.Compare(a.Proc.Number, b.Proc.Number), cmp.Compare(a.UID, b.UID))
	})
	drawn := busiest(threads, o.Lanes)
	c.bins = binsFor(len(drawn))
	c.width = all/uint64(c.bins) + 1
	c.wide = all/overviewSteps + 1
	for i, th := range threads {
		x := &thread{th: th, index: i, lane: -1, first: th.First, end: th.First}
		if drawn[th] {
			x.lane = len(c.lanes)
			c.lanes = append(c.lanes, lane{th: x, time: make([]uint64, Groups*c.bins)})
		}
		c.byUID[th.UID] = x
		c.order = append(c.order, x)
	}
	return c
}

// busiest are the threads with the most records.
func busiest(threads []*trace.Thread, most int) map[*trace.Thread]bool {
	list := slices.Clone(threads)
	slices.SortStableFunc(list, func(a, b *trace.Thread) int { return cmp.Compare(b.Bytes, a.Bytes) })
	m := map[*trace.Thread]bool{}
	for _, th := range list[:min(most, len(list))] {
		m[th] = true
	}
	return m
}

// read visits all records in the order of time. What is damaged is passed over: the summary has told of it.
func (c *collector) read(prog trace.Progress) error {
	m := c.t.Merge()
	var n uint64
	for {
		r, err := m.Next()
		if err == io.EOF {
			return nil // what the tracker's Finish would tell, ends of threads and processes, is not asked for
		}
		var bad *trace.Damage
		if errors.As(err, &bad) {
			continue
		}
		if err != nil {
			return err
		}
		if n++; n&0xfffff == 0 && prog != nil {
			prog(int64(r.Begin-min(c.start, r.Begin)), int64(c.end-c.start))
		}
		found := c.links.Add(r)
		for i := range found {
			c.locks.link(&found[i])
		}
		x := c.byUID[r.Thread.UID]
		if x == nil || x.th != r.Thread {
			continue // what belongs to the run, and not to a thread
		}
		if r.Tag == trace.TagEvent {
			c.event(x, r)
		} else {
			c.control(x, r)
		}
	}
}

func (c *collector) ns(ticks uint64) int64 { return c.t.Clock.NS(ticks) }

// since is a stamp as ns from the start of the run, never before it.
func (c *collector) since(ticks uint64) int64 { return c.ns(c.offset(ticks)) }

// offset is a stamp in ticks from the start of the run, within the run.
func (c *collector) offset(ticks uint64) uint64 {
	return min(ticks-min(ticks, c.start), c.end-c.start)
}

func (c *collector) labelOf(s string) uint32 {
	if n, ok := c.label[s]; ok {
		return n
	}
	if len(c.labels) >= maxLabels {
		return 0
	}
	n := uint32(len(c.labels))
	c.label[s] = n
	c.labels = append(c.labels, s)
	return n
}

// unknown is the row of calls that this version does not know.
var unknown = callInfo{name: "unknown", group: Others, stat: statUnknown}

func (c *collector) event(x *thread, r *trace.Record) {
	in := &unknown
	if r.Row != nil {
		in = &infos[r.Call]
	}
	x.events++
	if r.Begin > x.end {
		x.ran += r.Begin - x.end
	}
	x.end = max(x.end, r.End)
	c.count[countEvents*overviewSteps+int(c.offset(r.Begin)/c.wide)]++
	x.does, x.ret, x.obj, x.pc, x.begin, x.ticks, x.slow = in.does, r.Ret, r.Obj, r.PC, r.Begin, 0, false
	var tgt *target
	if in.ofFd && !r.Obj.None() {
		tgt = c.table.of(r.Obj)
	}
	if in.does != fdNothing {
		if in.does == fdClose && tgt == nil { // the number is in the event as well
			tgt = c.table.proc(r.Thread.Proc).fds[r.F[0]]
		}
		c.table.event(r, in.does)
		if in.does == fdOpen && r.Ret >= 0 {
			tgt = c.table.proc(r.Thread.Proc).fds[r.Ret]
		}
	}
	on := fdUnknown
	if tgt != nil && in.byFd {
		on = tgt.kind
	}
	st := &c.stats[in.stat*int(fdKinds)+int(on)]
	if st.info == nil {
		*st = stat{info: in, on: on, group: in.groupOf(on)}
	}
	st.n++
	if r.Ret < 0 && r.Row != nil && (r.Row.Ret == trace.RetErrno || r.Row.Ret == trace.RetPtr) {
		st.failed++
	}
	if in.sync && !r.Obj.None() {
		c.locks.event(x, r, in)
	}
	g := st.group
	x.calls[g]++
	var ticks uint64
	if r.Timed && r.End > r.Begin {
		ticks = r.End - r.Begin
		c.took(x, r, in, st, tgt, ticks)
	}
	if tgt != nil {
		tgt.took(r, in, uint64(c.ns(ticks)))
		c.bytes(x, r, in)
	}
	if in.named {
		c.nameThread(x, r)
	}
}

// took takes an event that has an end of its own.
func (c *collector) took(x *thread, r *trace.Record, in *callInfo, st *stat, tgt *target, ticks uint64) {
	g := st.group
	if g == Locks && in.tells && r.Note&cabi.NoteWaited == 0 {
		g = Others // it took time, but the lock was free
	}
	c.timed++
	x.ticks, x.group = ticks, g
	x.time[g] += ticks
	st.hist.Add(uint64(c.ns(ticks)))
	if st.parts == nil {
		st.parts = &blocks{}
	}
	st.parts.add(int(c.offset(r.Begin)/c.wide*uint64(len(blocks{}))/overviewSteps), uint64(c.ns(ticks)))
	from, to := c.offset(r.Begin), c.offset(r.End)
	spread(c.over[int(g)*overviewSteps:int(g+1)*overviewSteps], from, to, c.wide)
	if x.lane >= 0 {
		l := &c.lanes[x.lane]
		l.all++
		spread(l.time[int(g)*c.bins:int(g+1)*c.bins], from, to, c.width)
		if ticks >= c.pick.min {
			label := uint32(0)
			if tgt != nil {
				label = tgt.label
			} else if in.sync && !r.Obj.None() {
				label = c.locks.label(r.Obj)
			}
			c.pick.add(slice{begin: r.Begin, ticks: ticks, lane: int32(x.lane), label: label, name: uint16(in.stat*int(fdKinds) + int(st.on)), group: g})
		}
	}
	c.slow[g].offer(c, x, r, st, tgt, ticks)
}

// bytes counts what an event moved.
func (c *collector) bytes(x *thread, r *trace.Record, in *callInfo) {
	if in.moves == moveNone || in.moves == moveSync || r.Ret <= 0 {
		return
	}
	step := int(c.offset(r.End) / c.wide)
	if in.moves != moveOut {
		c.count[countIn*overviewSteps+step] += uint64(r.Ret)
	}
	if in.moves != moveIn {
		c.count[countOut*overviewSteps+step] += uint64(r.Ret)
	}
	if in.moves == moveBoth {
		to := trace.Object{UID: uint32(uint64(r.F[1]) >> 40), Num: uint64(r.F[1]) & (1<<40 - 1)} // as shim/object.h packs it
		if t := c.table.of(to); t != nil {
			t.Writes++
			t.Written += uint64(r.Ret)
		}
	}
}

// nameThread takes the name that a thread is given.
func (c *collector) nameThread(x *thread, r *trace.Record) {
	const prSetName = 15
	var name string
	for i := range r.Fields {
		if r.Fields[i].Name == "name" {
			name = string(r.Fields[i].Text)
		}
	}
	switch {
	case name == "" || r.Ret != 0:
	case r.Row.Obj == "thread":
		if o := c.byUID[r.Obj.UID]; o != nil && !r.Obj.None() {
			o.label = name
		}
	case r.F[0] == prSetName:
		x.label = name
	}
}

func (c *collector) control(x *thread, r *trace.Record) {
	x.end = max(x.end, r.End)
	n := &r.Nums
	switch r.Tag {
	case cabi.TagModule:
		c.print.Observe(r)
	case cabi.TagObject:
		c.table.object(r)
		c.locks.object(r)
	case cabi.TagInput:
		c.table.input(r, x.does, x.ret, x.obj)
	case cabi.TagStack:
		c.stack(x, r)
	case cabi.TagCPU:
		x.cpu, x.ran = n[0], 0
	case cabi.TagRSS:
		c.resident(x, n[0], r.End)
	case cabi.TagExit:
		if n[0] != cabi.ExitExec {
			c.exits[x.th.Proc] = exit{n[0], int64(n[1]), n[5]}
		}
	}
}

// resident takes how many pages a process has.
func (c *collector) resident(x *thread, pages, at uint64) {
	p := x.th.Proc
	pages = min(pages, 1<<36)
	c.pages += pages - c.rss[p]
	c.rss[p] = pages
	c.peak[p] = max(c.peak[p], pages)
	size := uint64(max(c.t.Meta.Machine.PageSize, 4096))
	step := &c.count[countResident*overviewSteps+int(c.offset(at)/c.wide)]
	*step = max(*step, c.pages*size)
}

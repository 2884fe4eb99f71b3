package demand

import (
	"io"
	"math"
	"time"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// pending is an operation whose demand is not settled yet: gap ns lie before it, of which the thread ran a share that
// the next reading of its CPU time tells.
type pending struct {
	cabi.ProgOp
	gap    int64
	usual  int64  // a gap at its place
	single bool   // its own time is part of the next gap
	wait   bool   // it stands for events of waiting,
	skip   uint32 // so many
	place  place
	row    int64  // of the table, that wants to know where it came to lie, plus 1
	was    int64  // the gap as it was
	begin  uint64 // ticks of home's event; 0: it is of none
	end    uint64
	what   uint32
	as     uint16 // the code that home.go says of it; 0: its own
	ofLoop bool   // a condition wait that an OpWait stands for
	cut    bool   // a signal came in it: what of the gap it did not run in is its own
	prefix bool   // an issue took it there: its demand is that target's
	upto   uint64 // how many of its thread's events come before its end
	since  uint64 // a wait: the first event that it stands for
}

// emitter makes the operations of one thread.
type emitter struct {
	*compiler
	th    *thread
	out   *opWriter
	queue []uint32 // files of its events with names

	window                []pending
	gaps                  int64 // ns in the window that it may have run in
	longest               []int64
	calls                 int64 // CPU ns that its calls took, but for those that waited: between these
	waitsLeast, waitsMost int64
	cpu                   uint64
	cpuSeen               bool
	sampled               bool // a reading of its CPU time, that is not settled yet
	sampledAt             uint64
	sampledCPU            uint64
	end                   uint64 // ticks of the last event's end
	ours                  uint64 // ticks since then that were the recorder's
	oursCPU               uint64 // ns of the thread's CPU time that were
	last                  uint64 // where it was
	began                 bool
	carry                 int64 // ns of demand too short to be issued yet, or issued too much
	forks                 map[uint32]uint64
	popened               map[int64]*group
	vforked               *group // whose operations these are, until it becomes another program
	lock                  int    // in the window: a file lock that waits for its place and length
	lockSite              siteKey
	ends                  int // in the window: an accept or connect that waits for its ends
	size                  int // in the window: a name that waits for what it stands for
	row                   *trace.Row
	ending                bool // the process ends with this thread
	done                  bool
	body                  *bodyAt
	skip                  int       // condition waits that an OpWait stands for
	held                  []uint32  // mutexes
	home                  *atWriter // nil: nobody wants to know
	during                uint16    // the call that a signal came in; 0: none
	past                  past
	prefix                bool   // it is where an issue led it
	earlier               uint64 // events of the streams before this one, and their ends
	seen                  uint64 // of this one
}

// bodyAt is a section that is being kept as a body.
type bodyAt struct {
	role  roleAt
	first uint64
}

const (
	shortest = 40      // ns of demand that are worth a loop
	widest   = 1 << 31 // ns that an operation can have before it
	sleepAdd = 55_000  // ns that a sleep takes longer than asked for
	switched = 3_000   // CPU ns of a call that waited
	carryMin = -20_000

	outsideLeast = 100_000 // ns that a call has to wait for what is not in the run, to be slept
)

// emit makes the operations of a thread.
func (e *emitter) emit() error {
	e.lock, e.ends, e.size = -1, -1, -1
	e.forks, e.popened = map[uint32]uint64{}, map[int64]*group{}
	for _, p := range e.before[e.th.group] {
		if e.th.group.main == e.th {
			e.window = append(e.window, p)
			e.gaps += p.gap
		}
	}
	for _, stream := range e.th.streams {
		e.seen = 0
		if !e.began && stream.How != cabi.ThreadFound {
			// It may compute for long before its first call, and had used nothing when it was made; a program had its loader before that.
			e.begin(stream.First)
			e.cpuSeen = stream.How != cabi.ThreadMain
		}
		it := e.t.Iter(stream)
		var r trace.Record
		for {
			err := it.Next(&r)
			if err == io.EOF {
				break
			}
			if err != nil {
				if trace.IsDamage(err) {
					continue
				}
				return err
			}
			if err := e.record(stream, &r); err != nil {
				return err
			}
		}
		e.earlier += e.seen + 1
	}
	if e.sampled {
		e.gap(e.sampledAt, math.MaxInt64/4)
		if err := e.sample(e.sampledCPU); err != nil {
			return err
		}
	}
	if err := e.flush(0, 0); err != nil {
		return err
	}
	// The end of the process may have come between an unlock and its record.
	for _, m := range e.held {
		if err := e.out.put(cabi.ProgOp{Code: cabi.OpUnlock, Obj: m}); err != nil {
			return err
		}
	}
	e.out.units.reach(e.earlier)
	last := cabi.ProgOp{Code: cabi.OpEnd, Obj: e.th.n}
	if e.ending && !e.done {
		last.Code = cabi.OpExit
	}
	if e.home != nil {
		e.home.put(&pending{ProgOp: last, begin: e.end, end: e.end}, uint32(e.out.n), e.th.n)
	}
	return e.out.put(last)
}

func (e *emitter) record(stream *trace.Thread, r *trace.Record) error {
	if e.sampled && r.Tag != cabi.TagRSS {
		// The sample lies in a gap of which only now is known where that is.
		e.sampled = false
		usual := int64(math.MaxInt64 / 4)
		if r.Tag == trace.TagEvent {
			usual = e.gapUsual[gapPlace(e.last, r.PC)]
		}
		// A vforked child writes here what its own clock says.
		if childs := r.Note&cabi.NoteVforked != 0 && r.Tag == trace.TagEvent || e.sampledCPU < e.cpu; !childs {
			e.gap(e.sampledAt, usual)
			if err := e.sample(e.sampledCPU); err != nil {
				return err
			}
		}
	}
	switch r.Tag {
	case trace.TagEvent:
		return e.event(stream, r)
	case cabi.TagCPU:
		e.sampled, e.sampledAt, e.sampledCPU = true, r.Begin, r.Nums[0]-min(r.Nums[0], e.oursCPU)
	case cabi.TagOurs:
		if r.Begin > e.end { // a process's start is ours from before its stream on
			e.ours += min(r.Nums[0], r.Begin-e.end)
		}
		e.oursCPU += uint64(e.t.Clock.NS(r.Nums[0]))
	case cabi.TagSignal:
		// What a signal interrupts says how long it took only from then on.
		e.during = uint16(r.Nums[1])
		return nil
	case cabi.TagRSS:
		e.put(&pending{ProgOp: cabi.ProgOp{Code: cabi.OpResident, A: int64(r.Nums[0])}})
	case cabi.TagExit:
		if r.Nums[0] != cabi.ExitExec {
			e.ending = true
		}
		return nil
	case cabi.TagInput:
		e.input(r)
	}
	return nil
}

// since is the thread's own time from its last event up to now, in ns; what was the recorder's is accounted for with it.
func (e *emitter) since(now uint64) int64 {
	if now <= e.end {
		return 0
	}
	t := now - e.end
	t -= min(t, e.ours)
	e.ours = 0
	return e.t.Clock.NS(t)
}

// gap takes the time up to now as demand, without an event.
func (e *emitter) gap(now uint64, usual int64) {
	if !e.began {
		e.begin(now)
		return
	}
	if now <= e.end {
		return
	}
	g := e.since(now)
	e.end = now
	e.put(&pending{ProgOp: cabi.ProgOp{Code: cabi.OpCPU}, gap: g, usual: usual, begin: now, end: now})
}

// begin is when the thread is first heard of.
func (e *emitter) begin(now uint64) {
	e.began, e.end = true, now
	if e.home != nil {
		e.put(&pending{ProgOp: cabi.ProgOp{Code: cabi.OpCPU}, begin: now, end: now})
	}
}

// put copies an operation into the window.
func (e *emitter) put(p *pending) {
	e.gaps += p.gap
	e.window = append(e.window, *p)
	w := &e.window[len(e.window)-1]
	w.was, w.prefix = p.gap, e.prefix
}

// sample settles the demand since the last reading of the thread's CPU time.
func (e *emitter) sample(cpu uint64) error {
	low, high := int64(0), int64(0)
	// Of a thread's first reading it is not known what it had used when it was first heard of; but no more than this.
	if (e.cpuSeen || int64(cpu)-e.calls < e.gaps) && e.gaps > 20_000 && cpu >= e.cpu {
		idle := e.gaps - int64(cpu-e.cpu) + e.calls
		low, high = min(max(idle+e.waitsLeast, 0), e.gaps), min(max(idle+e.waitsMost, 0), e.gaps)
	} else if !e.cpuSeen && e.th.group.main == e.th {
		// What the loader did before we were there.
		if more := int64(cpu) - e.calls - e.gaps; more > 0 && more < 1e9 {
			e.window = append([]pending{{ProgOp: cabi.ProgOp{Code: cabi.OpCPU}, gap: more}}, e.window...)
		}
	}
	e.cpu, e.cpuSeen = cpu, true
	if e.opt.Path == PathThink {
		low, high = 0, 0
	}
	return e.flush(low, high)
}

// lose takes from the gaps of the window the time in which the thread did not run: between low and high ns, as its CPU time says, of
// which calls that waited had a part that is known roughly. Who is made to wait for a processor waits long and seldom. So first
// gaps lose what makes them far longer than others at their place, and then the longest ones are cut to one length. A share
// off every gap instead would leave those several times too long, and others wait for that elsewhere.
func (e *emitter) lose(low, high int64) int64 {
	excess := int64(0)
	for i := range e.window {
		if p := &e.window[i]; p.gap > outlier(p.usual) {
			excess += p.gap - p.usual
		}
	}
	lost := min(max(excess, low), high)
	if excess > 0 {
		share := min(float64(lost)/float64(excess), 1)
		for i := range e.window {
			if p := &e.window[i]; p.gap > outlier(p.usual) {
				p.gap -= int64(float64(p.gap-p.usual) * share)
			}
		}
	}
	if level := e.level(lost - excess); level < math.MaxInt64 {
		for i := range e.window {
			e.window[i].gap = min(e.window[i].gap, level)
		}
	}
	return lost
}

// outlier is from which length on a gap is far longer than is usual at its place.
func outlier(usual int64) int64 { return 2*usual + 10_000 }

// level is how long gaps can be at most if the longest ones lose so many ns.
func (e *emitter) level(lost int64) int64 {
	if lost <= 0 {
		return math.MaxInt64
	}
	e.longest = e.longest[:0]
	sum := int64(0)
	for i := range e.window {
		e.longest = append(e.longest, e.window[i].gap)
		sum += e.window[i].gap
	}
	for {
		level := (sum - lost) / int64(len(e.longest))
		more := e.longest[:0]
		for _, g := range e.longest {
			if g > level {
				more = append(more, g)
			} else {
				sum -= g
			}
		}
		if len(more) == len(e.longest) || len(more) == 0 {
			return level
		}
		e.longest = more
	}
}

// flush writes the window, in whose gaps the thread did not run for so many ns, between low and high.
func (e *emitter) flush(low, high int64) error {
	if high > 0 {
		e.info.Loose += time.Duration(e.lose(low, high))
	}
	recorded := int64(e.opt.Record)
	for i := range e.window {
		p := &e.window[i]
		e.out.units.reach(p.upto)
		d := int64(float64(p.gap)*e.scale(p) + 0.5)
		e.info.CPU += time.Duration(p.gap)
		if p.Code != cabi.OpCPU && p.Code != cabi.OpResident && p.Code != cabi.OpMore && !p.prefix { // nobody records an issue
			d -= recorded
		}
		if p.single {
			p.Flags |= cabi.OpSingle
		}
		d += e.carry
		e.carry = 0
		if d < shortest {
			e.carry = max(d, carryMin)
			d = 0
		}
		if e.opt.Path == PathThink && d > 0 {
			if err := e.out.put(cabi.ProgOp{Code: cabi.OpThink, A: d}); err != nil {
				return err
			}
			d = 0
		}
		for d > widest {
			if err := e.out.put(cabi.ProgOp{Code: cabi.OpCPU, CPU: widest}); err != nil {
				return err
			}
			d -= widest
		}
		at := e.out.n
		none := p.Code == cabi.OpCPU && d == 0
		if e.home != nil {
			op := uint32(at)
			if none {
				op = NoOp
			}
			e.home.put(p, op, e.th.n)
		}
		if none {
			continue
		}
		p.CPU = uint32(d)
		if p.Code == cabi.OpSleep && p.Site != 0 {
			p.B = e.past.next()
		}
		if err := e.out.put(p.ProgOp); err != nil {
			return err
		}
		e.settle(p, at)
	}
	e.window = e.window[:0]
	e.gaps, e.calls, e.waitsLeast, e.waitsMost = 0, 0, 0, 0
	e.lock, e.ends, e.size = -1, -1, -1
	return nil
}

// scale is by how much demand grows: what was issued was scaled then.
func (e *emitter) scale(p *pending) float64 {
	if p.prefix && e.t.Meta.Issued.Scale > 0 {
		return e.opt.Scale / e.t.Meta.Issued.Scale
	}
	return e.opt.Scale
}

// settle notes where an operation came to lie: sections of roles get their lengths, and choices their ways on.
func (e *emitter) settle(p *pending, at uint64) {
	if p.Flags&cabi.OpRole != 0 {
		role, _ := e.loops.roles.get(p.place)
		e.body = &bodyAt{role: role, first: at}
	}
	if b := e.body; b != nil && p.place.uid != 0 && p.place.n == b.role.unlock && p.Code == cabi.OpUnlock {
		e.out.patchB(b.first, int64(at-b.first))
		if b.role.sample {
			e.bodies = append(e.bodies, bodyOf{pred: b.role.pred, last: b.role.last, first: b.first + 1, count: at - b.first})
		}
		e.body = nil
	}
	if p.wait {
		w := MapWait{Op: at, Unit: p.since, Skip: p.skip}
		if p.Code == cabi.OpWait {
			w.Pred = uint32(p.A)
		}
		e.out.units.wait(w)
	}
	if p.row > 0 {
		e.loops.rows[p.row-1].Value = at + 1
	}
	if p.Flags&cabi.OpChoice != 0 && e.opt.Path == PathFree && e.offered() {
		e.ways.add(p.Site, p.Want, e.th.n, e.owner(), at+1, e.past.hash, e.past.has(), e.past.meets(&p.ProgOp))
	}
	e.past.add(&p.ProgOp)
	if p.Code == cabi.OpSleep && p.Site != 0 && e.offered() {
		e.ways.add(p.Site, 0, e.th.n, e.owner(), at+1, e.past.slept, e.past.has(), e.past.met)
	}
}

// owner is the thread that issues what the emitter emits, plus 1; 0: nobody does.
func (e *emitter) owner() uint32 {
	if e.beside(e.th.group) {
		return 0
	}
	return e.th.n + 1
}

// offered tells whether others may go on as this thread did: of another run's, only where nobody waits for a condition, as whom one
// waits for is not to be had there.
func (e *emitter) offered() bool { return !e.beside(e.th.group) || !e.loops.within[e.th.group] }

func (e *emitter) event(stream *trace.Thread, r *trace.Record) error {
	if !e.began {
		e.begin(r.Begin)
	}
	gap := e.since(r.Begin)
	dur := int64(0)
	if r.End > r.Begin {
		dur = e.t.Clock.NS(r.End - r.Begin)
	}
	if r.End > e.end {
		e.end = r.End
	}
	e.row = r.Row
	e.seen = r.N + 1
	e.prefix = r.N < e.t.Meta.Issued.Events(stream.UID)
	here := e.earlier + r.N
	p := pending{gap: gap, usual: e.gapUsual[gapPlace(e.last, r.PC)], single: !r.Timed, place: place{stream.UID, r.N}, upto: here + 1,
		begin: r.Begin, end: max(r.Begin, r.End)}
	if e.home != nil {
		p.what, p.cut = e.home.what(stream, r), e.during != 0 && e.during == r.Call
	}
	e.during = 0
	e.last = r.PC
	e.ends, e.lock, e.size = -1, -1, -1

	for _, at := range e.loops.releases.all(p.place) {
		late := at.v
		e.put(&pending{ProgOp: cabi.ProgOp{Code: cabi.OpRelease, Obj: late.cond, B: e.key(late.at), Want: e.released(late.at)}, upto: here})
	}
	if n, _ := e.loops.skips.get(p.place); n > 0 {
		e.skip = n
		e.out.units.drop(e.th.n, here, n)
	}
	if w, ok := e.loops.at.get(p.place); ok {
		q := pending{ProgOp: cabi.ProgOp{Code: cabi.OpWait, A: int64(w.pred), B: w.timeout}, gap: p.gap, usual: p.usual, place: p.place, row: w.row,
			begin: r.Begin, end: r.Begin, what: p.what, upto: here + uint64(w.events), wait: true, skip: uint32(w.events), since: here}
		if w.choice {
			q.Flags, q.Site = cabi.OpChoice, w.site
		}
		if w.late {
			q.Want = -etimedout
		}
		e.put(&q)
		p.gap, e.skip = 0, int(w.events)
	}
	o := opOf(r.Row)
	if r.Note&cabi.NoteVforked != 0 && e.vforked != nil {
		// The child's, on this stack.
		start := len(e.window)
		e.issue(stream, r, o, &p, dur)
		child := e.vforked
		for i := start; i < len(e.window); i++ {
			e.window[i].upto = 0 // the events stay in this thread's stream
		}
		e.before[child] = append(e.before[child], e.window[start:]...)
		for _, q := range e.window[start:] {
			e.gaps -= q.gap
		}
		e.window = e.window[:start]
		return nil
	}
	e.vforked = nil
	e.issue(stream, r, o, &p, dur)
	if len(e.window) > windowMax {
		return e.flush(0, 0)
	}
	return nil
}

// key is what a signal releases, plus 1; 0: nothing of its own.
func (e *emitter) key(at place) int64 {
	if k, ok := e.loops.keys.get(at); ok {
		return k + 1
	}
	return 0
}

// released is which release a signal was at home, plus 1; 0: it does not matter.
func (e *emitter) released(at place) int64 {
	if k, ok := e.loops.order.get(at); ok {
		return k + 1
	}
	return 0
}

const windowMax = 1 << 18

// typical is what CPU time a call of that row takes when it does not wait.
func (e *emitter) typical(r *trace.Record, dur int64) int64 {
	if int(r.Call) >= len(e.usual) {
		return dur
	}
	return min(dur, 2*e.usual[r.Call].median())
}

// other issues an event as the CPU time that its call took.
func (e *emitter) other(r *trace.Record, p *pending, dur int64) {
	p.Code = cabi.OpCPU
	if e.opt.Path == PathThink {
		p.gap += dur
		e.put(p)
		return
	}
	run := dur
	if r.Row == nil || r.Row.Block {
		run = e.typical(r, dur)
		if r.Row != nil && waits[plainName(r.Row.Name)] {
			run = min(run, switched)
		}
	}
	p.single = false
	wait, end := dur-run, p.end
	if wait > outsideLeast {
		p.end = min(p.begin+e.t.Clock.Ticks(run)-e.t.Clock.Ticks0, end)
	}
	e.put(p)
	if run > 0 {
		// As measured, not a share of a gap.
		last := &e.window[len(e.window)-1]
		last.gap += run
		last.was += run
		e.gaps += run
	}
	if wait > outsideLeast {
		e.info.Outside += nsOf(float64(wait))
		e.put(&pending{ProgOp: cabi.ProgOp{Code: cabi.OpSleep, Flags: cabi.OpHome, A: wait - sleepAdd}, begin: p.end, end: end, what: p.what, as: p.as})
	}
	if r.Row != nil {
		e.info.Skipped[r.Row.Name]++
	}
}

// waits are calls that are not issued and may wait for long each time.
var waits = map[string]bool{"sigwait": true, "sigwaitinfo": true, "sigtimedwait": true, "pause": true, "sigsuspend": true, "msgrcv": true,
	"mq_receive": true, "mq_timedreceive": true, "semop": true, "semtimedop": true, "syscall": true, "getaddrinfo": true, "pthread_once": true}

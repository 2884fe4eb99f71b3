package profile

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"prophet/cabi"
	"prophet/runtime/links"
	"prophet/runtime/trace"
)

// Wait is what threads waited for one object at one stack, while one other had it.
type Wait struct {
	Object trace.Object
	Kind   string // mutex, cond, sem, …; "" when the call has no object
	Waiter *Stack
	Holder *Stack     // who let the waiter go on, see Waits; nil: nobody was seen to
	How    links.Kind // of the link between them, when Holder is not nil
	NS     int64
	N      int64
	MaxNS  int64 // the longest,
	At     int64 // when it began, ns since the start of the run,
	By     *trace.Thread
	Of     *trace.Thread // and who held it then; nil: not known
}

// Waits are all waits of a run for objects of synchronisation: locks, conditions, semaphores, barriers.
//
// Waiter is the stack taken at the wait itself where there is one, else the last one taken at that call site by the same
// process, else the call site. Holder is of the thread that let the waiter in (package links): for a lock the last stack that the
// thread took while it had it, which is what it did with it; otherwise, or without such a stack, the last one at the call
// site where it took the lock, or signalled, or posted; else that call site. A wait counts as one for the last holder: who had
// the lock before that, while the waiter waited, is not told apart.
type Waits struct {
	List    []Wait // by time, the longest first
	Events  uint64
	Damage  []error
	Damaged int
	Notes   []string

	trace *trace.Trace
}

// Bounds.
const (
	maxPairs   = 1 << 19 // different waits kept apart
	maxUnknown = 256     // waits of one thread whose link has not come
)

type waitKey struct {
	obj            trace.Object
	waiter, holder *Stack
	how            links.Kind
}

// waiting is a wait whose link has not come.
type waiting struct {
	n     uint64
	at    uint64
	ticks uint64
	stack *Stack
	row   *trace.Row
	obj   trace.Object
	site  site
}

// lane is what is remembered of a thread.
type lane struct {
	n       uint64 // of the last event
	site    site
	stack   *Stack // the last one taken, and at which event
	stackN  uint64
	pending []waiting
}

type procSite struct {
	proc *trace.Proc
	site
}

type waitFinder struct {
	b     *builder
	t     *trace.Trace
	lanes map[*trace.Thread]*lane
	sites map[procSite]*Stack
	pairs map[waitKey]*Wait
	queue []links.Link
	over  int
}

// WaitsOf reads the trace in the order of time, on one goroutine. prog, when not nil, is told how far in the run's time it is.
func WaitsOf(t *trace.Trace, prog trace.Progress) (*Waits, error) {
	b := &builder{t: t, stacks: map[stackKey]*Stack{}, samples: map[sampleKey]*Values{}}
	if err := b.survey(1); err != nil {
		return nil, err
	}
	f := &waitFinder{b: b, t: t, lanes: map[*trace.Thread]*lane{}, sites: map[procSite]*Stack{}, pairs: map[waitKey]*Wait{}}
	out := &Waits{trace: t, Damage: slices.Clone(t.Damage), Damaged: len(t.Damage)}
	tr := links.New(t)
	m := t.Merge()
	last := t.LastBase()
	for n := 0; ; n++ {
		r, err := m.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			if !trace.IsDamage(err) {
				return nil, err
			}
			if out.Damaged++; len(out.Damage) < maxDamage {
				out.Damage = append(out.Damage, err)
			}
			continue
		}
		if prog != nil && n&0xffff == 0 {
			prog(int64(r.Begin-min(r.Begin, t.Clock.Ticks0)), int64(last-min(last, t.Clock.Ticks0)))
		}
		if !r.Attached() {
			f.resolve()
		}
		f.queue = append(f.queue, tr.Add(r)...)
		f.record(r)
		if r.Tag == trace.TagEvent {
			out.Events++
		}
	}
	f.resolve()
	f.queue = append(f.queue, tr.Finish()...)
	f.resolve()
	for th, l := range f.lanes {
		for i := range l.pending {
			f.put(th, &l.pending[i], nil)
		}
	}
	for _, w := range f.pairs {
		out.List = append(out.List, *w)
	}
	slices.SortFunc(out.List, compareWaits)
	if n := tr.Forgot(); n > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d events were more than could be followed: some waits do not tell who held what they waited for", n))
	}
	if f.over > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d waits were different from all those kept, and do not tell who held what they waited for", f.over))
	}
	return out, nil
}

const maxDamage = 1000

func compareWaits(x, y Wait) int {
	return cmp.Or(cmp.Compare(y.NS, x.NS), cmp.Compare(x.Object.UID, y.Object.UID), cmp.Compare(x.Object.Num, y.Object.Num), compareStacks(x.Waiter, y.Waiter),
		compareStacks(x.Holder, y.Holder), cmp.Compare(x.How, y.How))
}

func compareStacks(x, y *Stack) int {
	if x == nil || y == nil {
		if x == y {
			return 0
		} else if x == nil {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(x.Proc.Number, y.Proc.Number), slices.Compare(x.PCs, y.PCs), cmp.Compare(x.Call, y.Call), cmp.Compare(x.Bits, y.Bits))
}

func (f *waitFinder) lane(th *trace.Thread) *lane {
	l := f.lanes[th]
	if l == nil {
		l = &lane{}
		f.lanes[th] = l
	}
	return l
}

func (f *waitFinder) record(r *trace.Record) {
	switch r.Tag {
	case trace.TagEvent:
		l := f.lane(r.Thread)
		l.n, l.site = r.N, site{r.PC, r.Call}
		if r.Row == nil || r.End == r.Begin || f.b.typeOf(r) != LockWait {
			return
		}
		if len(l.pending) >= maxUnknown {
			f.put(r.Thread, &l.pending[0], nil)
			l.pending = slices.Delete(l.pending, 0, 1)
		}
		l.pending = append(l.pending, waiting{n: r.N, at: r.Begin, ticks: r.End - r.Begin, row: r.Row, obj: r.Obj, site: l.site})
	case cabi.TagStack:
		l := f.lane(r.Thread)
		if l.site.pc == 0 {
			return
		}
		st := f.b.stack(r.Thread.Proc, l.site.call, r.Nums[1], l.site.pc, r.Stack, false)
		l.stack, l.stackN = st, l.n
		if k := (procSite{r.Thread.Proc, l.site}); f.sites[k] != nil || len(f.sites) < maxSites {
			f.sites[k] = st
		}
		if n := len(l.pending); n > 0 && l.pending[n-1].n == l.n {
			l.pending[n-1].stack = st
		}
	}
}

// resolve takes the links that became known with the record before, whose stacks have come by now.
func (f *waitFinder) resolve() {
	for i := range f.queue {
		k := &f.queue[i]
		switch k.Kind {
		case links.Lock, links.Wake, links.Post, links.Barrier, links.Once:
		default:
			continue
		}
		l := f.lanes[k.To.Thread]
		if l == nil {
			continue
		}
		at := slices.IndexFunc(l.pending, func(w waiting) bool { return w.n == k.To.N })
		if at < 0 {
			continue // another link told
		}
		w := l.pending[at]
		l.pending = slices.Delete(l.pending, at, at+1)
		f.put(k.To.Thread, &w, k)
	}
	f.queue = f.queue[:0]
}

// put adds a wait to those of its object and stacks.
func (f *waitFinder) put(th *trace.Thread, w *waiting, by *links.Link) {
	if w.stack == nil {
		w.stack = f.at(th.Proc, w.site)
	}
	k := waitKey{obj: w.obj, waiter: w.stack}
	var of *trace.Thread
	if by != nil && by.From.Thread != nil {
		of = by.From.Thread
		k.how, k.holder = by.Kind, f.holder(by)
	}
	x := f.pairs[k]
	if x == nil && len(f.pairs) >= maxPairs {
		f.over++
		k = waitKey{waiter: f.b.stack(th.Proc, w.site.call, 0, w.site.pc, nil, true)}
		x = f.pairs[k]
	}
	if x == nil {
		x = &Wait{Object: k.obj, Kind: w.row.Obj, Waiter: k.waiter, Holder: k.holder, How: k.how}
		f.pairs[k] = x
	}
	ns := f.t.Clock.NS(w.ticks)
	x.NS += ns
	x.N++
	if ns > x.MaxNS || x.By == nil {
		x.MaxNS, x.At, x.By, x.Of = ns, f.t.Clock.Since(w.at), th, of
	}
}

// at is the last stack at a call site of a process, or the call site.
func (f *waitFinder) at(p *trace.Proc, s site) *Stack {
	if st := f.sites[procSite{p, s}]; st != nil {
		return st
	}
	return f.b.stack(p, s.call, 0, s.pc, nil, true)
}

func (f *waitFinder) holder(k *links.Link) *Stack {
	from, th := &k.From, k.From.Thread
	held := k.Kind == links.Lock && k.Held.Thread == th
	if l := f.lanes[th]; l != nil && l.stack != nil && l.stackN <= from.N && (l.stackN == from.N || held && l.stackN >= k.Held.N) {
		return l.stack
	}
	if held {
		return f.at(th.Proc, site{k.Held.PC, k.Held.Call})
	}
	return f.at(th.Proc, site{from.PC, from.Call})
}

// Names reads the files of the modules that the stacks lie in, as Profile.Names does.
func (w *Waits) Names(prog trace.Progress) *Names {
	var all []*Stack
	for i := range w.List {
		all = append(all, w.List[i].Waiter, w.List[i].Holder)
	}
	return namesOf(all, prog)
}

// ObjectName is the object as people see it: what it is, who saw it first, and which of that thread's it was.
func (w *Wait) ObjectName(t *trace.Trace) string {
	kind := cmp.Or(w.Kind, "object")
	if w.Object.None() {
		return kind
	}
	by := "?"
	if th := t.ThreadByUID(w.Object.UID); th != nil {
		by = th.Name
	}
	return fmt.Sprintf("%s:%s#%d", kind, by, w.Object.Num)
}

// Folded writes the chains of waits as flamegraph.pl reads them, in ns: the waiter's stack with the call in which it waits, what
// it waits for, and the stack of who held that.
func (w *Waits) Folded(out io.Writer, n *Names) error {
	lines := map[string]int64{}
	for i := range w.List {
		x := &w.List[i]
		frames := append([]string{clean(x.Waiter.Proc.Name)}, n.frameText(x.Waiter)...)
		frames = append(frames, trace.CallName(uint64(x.Waiter.Call)), "[waits for] "+clean(x.ObjectName(w.trace)))
		if x.Holder == nil {
			frames = append(frames, "[nobody was seen to let go]")
		} else {
			frames = append(frames, n.frameText(x.Holder)...)
			frames = append(frames, trace.CallName(uint64(x.Holder.Call)))
		}
		lines[strings.Join(frames, ";")] += x.NS
	}
	return writeFolded(out, lines)
}

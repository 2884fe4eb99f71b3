package breakdown

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"prophet/cabi"
	"prophet/runtime/demand"
	"prophet/runtime/issued"
)

// entry is when a thread was in an operation.
type entry struct {
	begin, end uint64 // ns
	op         uint32
	what       uint32
	code       uint16
	share      uint16 // of 65535: how much of the time before it the thread ran
	class      Class
	result     int8   // its sign
	on         uint32 // the file or the end of a stream that it is about, see streams.go; 0: none
}

// moment is an entry, by its thread and its place there, and when it began.
type moment struct {
	at            uint64
	thread, index uint32
}

// run is one run while it is looked at.
type run struct {
	p       *Program
	threads [][]entry
	end     uint64
	who     moment // who ended it
	lets    map[key][]moment
	runs    func(before, e *entry, gap uint64) uint64
}

// ErrTooLong is returned for a run of more operations than are broken down.
var ErrTooLong = fmt.Errorf("the run has more than %d operations: where its time goes is not worked out", entriesMax)

// Home splits the recorded run: at is what demand.Options.Home was given.
func (p *Program) Home(at io.Reader) (*Split, error) {
	r := &run{p: p, threads: make([][]entry, len(p.threads))}
	p.whats = make([]uint32, len(p.ops))
	b := bufio.NewReaderSize(at, 1<<20)
	var buf [demand.AtSize]byte
	for n := 0; ; n++ {
		if _, err := io.ReadFull(b, buf[:]); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		if n == entriesMax {
			return nil, ErrTooLong
		}
		x := demand.ReadAt(buf[:])
		if x.Thread >= uint32(len(p.threads)) || x.Op != demand.NoOp && x.Op >= uint32(len(p.ops)) || x.End < x.Begin {
			return nil, errors.New("what is known of the run at home does not fit its compiled trace")
		}
		list := r.threads[x.Thread]
		if list == nil {
			list = make([]entry, 0, p.room(int(x.Thread), p.threads[x.Thread].Count+p.threads[x.Thread].Count/8+16))
		}
		e := entry{begin: x.Begin, end: x.End, op: x.Op, what: x.What, code: x.Code, share: x.Share}
		if n := len(list); n > 0 && e.begin < list[n-1].end {
			// What another's stack did before it became a process of its own, or stamps of two cores.
			e.begin = list[n-1].end
			e.end = max(e.end, e.begin)
		}
		if x.Op != demand.NoOp {
			e.result = p.ops[x.Op].want
			if p.whats[x.Op] == 0 {
				p.whats[x.Op] = x.What
			}
		}
		r.threads[x.Thread] = append(list, e)
	}
	s := r.split(func(_, e *entry, gap uint64) uint64 { return gap * uint64(e.share) / 65535 })
	p.files = make([]bool, len(p.ops))
	for _, list := range r.threads {
		for i := range list {
			if e := &list[i]; e.op != demand.NoOp && e.class == Disk && moves(e.code) {
				p.files[e.op] = true
			}
		}
	}
	return s, nil
}

// Issue splits an issue by its log. Scale is what CPU demand was multiplied with; 0: 1.
func (p *Program) Issue(log *issued.Log, scale float64) (*Split, error) {
	if scale == 0 {
		scale = 1
	}
	if log.Program != p.Sum || len(log.Threads) != len(p.threads) || log.Hz == 0 {
		return nil, errors.New("the log of the issue is of another program")
	}
	r := &run{p: p, threads: make([][]entry, len(p.threads))}
	var cut, all uint64
	for n := range log.Threads {
		cut += log.Threads[n].Cut
		if all += log.Threads[n].Logged; all > entriesMax {
			return nil, ErrTooLong
		}
	}
	ns := func(ticks uint64) uint64 {
		if ticks <= log.Begin {
			return 0
		}
		return uint64(float64(ticks-log.Begin) * 1e9 / float64(log.Hz))
	}
	for n := range log.Threads {
		list := make([]entry, 0, p.room(n, log.Threads[n].Logged))
		it, last := log.Iter(n), uint64(0)
		for {
			var l cabi.ProgLog
			err := it.Next(&l)
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, err
			}
			if l.Op >= uint64(len(p.ops)) || l.End < l.Begin {
				return nil, fmt.Errorf("the log of the issue: thread %d was in an operation that there is not", n)
			}
			o := &p.ops[l.Op]
			e := entry{begin: max(ns(l.Begin), last), op: uint32(l.Op), code: o.code, result: sign(l.Result)}
			e.end = max(ns(l.End), e.begin)
			last = e.end
			if len(list) == 0 {
				e.code, e.op = cabi.OpNop, uint32(l.Op) // the moment at which it began
			}
			if p.whats != nil {
				e.what = p.whats[l.Op]
			}
			list = append(list, e)
		}
		r.threads[n] = list
	}
	r.end = ns(log.End)
	s := r.split(func(before, e *entry, gap uint64) uint64 {
		want := uint64(float64(p.demanded(e.op, before.op)) * scale)
		if gap > want && gap-want > max(want/offShare, offLeast) {
			return want
		}
		return gap
	})
	s.Cut = cut
	return s, nil
}

// split is what both have in common. runs tells how much of the time between two entries of a thread it ran.
func (r *run) split(runs func(before, e *entry, gap uint64) uint64) *Split {
	r.runs = runs
	r.connect()
	r.ending()
	s := &Split{NS: r.end, Threads: make([]Times, len(r.threads)), On: make([]Times, len(r.threads)), waited: map[uint32]uint64{}}
	for th, list := range r.threads {
		for i := range list {
			e := &list[i]
			if i > 0 {
				cpu, ready := r.gap(th, i)
				s.Threads[th][CPU] += cpu
				s.Threads[th][Ready] += ready
			}
			n := e.end - e.begin
			if n > wakeMax {
				if c, ok := r.cause(uint32(th), uint32(i)); ok && e.end-c.at > wakeMax {
					s.Threads[th][Ready] += e.end - c.at - wakeMax
					n -= e.end - c.at - wakeMax
				}
			}
			if e.class == Locks && n > freeMax && lockable(e.code) {
				s.waited[e.obj(r.p)] += n
			}
			own, ready := e.own(n)
			s.Threads[th][e.classOf(n)] += own
			s.Threads[th][Ready] += ready
		}
	}
	r.walk(s)
	return s
}

// gap is the time between an entry and the one before it: how much of it the thread ran, and how much it could have.
func (r *run) gap(th, i int) (cpu, ready uint64) {
	before, e := &r.threads[th][i-1], &r.threads[th][i]
	if e.begin <= before.end {
		return 0, 0
	}
	gap := e.begin - before.end
	cpu = min(r.runs(before, e, gap), gap)
	return cpu, gap - cpu
}

// own is how much of an entry's time is its own. What cannot wait, but lets others go on, loses its core to them.
func (e *entry) own(ns uint64) (own, ready uint64) {
	switch e.code {
	case cabi.OpUnlock, cabi.OpRwunlock, cabi.OpSpinunlock, cabi.OpSignal, cabi.OpBroadcast, cabi.OpRelease, cabi.OpSempost:
		own = min(ns, tellMax)
		return own, ns - own
	case cabi.OpCreate:
		own = min(ns, wakeMax)
		return own, ns - own
	}
	return ns, 0
}

// classOf is the class of that much of an entry's time.
func (e *entry) classOf(ns uint64) Class {
	if ns <= freeMax && (e.class == Locks || e.class == Waits) {
		return CPU
	}
	return e.class
}

// whatAt is what an entry is, or the next one that is something.
func (r *run) whatAt(th, i uint32) uint32 {
	const ahead = 64
	list := r.threads[th]
	for n := i; n < uint32(len(list)) && n < i+ahead; n++ {
		if list[n].what != 0 {
			return list[n].what
		}
	}
	return 0
}

// ending finds who ended the first process.
func (r *run) ending() {
	root := r.p.procs[0].Main
	found := false
	for th, list := range r.threads {
		for i := len(list) - 1; i >= 0 && i >= len(list)-2; i-- {
			e := &list[i]
			if !(e.code == cabi.OpExit && r.p.threads[th].Proc == 0 || e.code == cabi.OpEnd && e.obj(r.p) == root) || r.end > 0 && e.begin > r.end+wakeMax {
				continue
			}
			if !found || e.begin < r.who.at {
				r.who, found = moment{e.begin, uint32(th), uint32(i)}, true
			}
		}
	}
	if !found && root < uint32(len(r.threads)) && len(r.threads[root]) > 0 {
		i := len(r.threads[root]) - 1
		r.who, found = moment{r.threads[root][i].begin, root, uint32(i)}, true
	}
	if found {
		e := r.threads[r.who.thread][r.who.index]
		r.end = max(r.end, e.end)
	}
}

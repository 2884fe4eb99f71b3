package breakdown

import (
	"sort"

	"prophet/cabi"
	"prophet/runtime/demand"
)

// latest is the last moment up to `to` at which another thread let go what is waited for, if that is after `from`.
func (r *run) latest(th uint32, k key, from, to uint64) (moment, bool) {
	list := r.lets[k]
	for i := sort.Search(len(list), func(i int) bool { return list[i].at > to }) - 1; i >= 0 && list[i].at > from; i-- {
		if list[i].thread != th {
			return list[i], true
		}
	}
	return moment{}, false
}

// cause is who let an entry come to its end, if that was while it waited.
func (r *run) cause(th, i uint32) (moment, bool) {
	e := &r.threads[th][i]
	o := e.at(r.p)
	if e.code == demand.AtPoll || e.code == demand.AtSignal {
		return r.told(th, i)
	}
	if o == nil || e.result < 0 || e.end == e.begin {
		return moment{}, false
	}
	last := func(k key) (moment, bool) { return r.latest(th, k, e.begin, e.end) }
	switch e.code {
	case cabi.OpLock, cabi.OpTimedlock, cabi.OpRdlock, cabi.OpWrlock, cabi.OpSpinlock, cabi.OpSemwait, cabi.OpSemtimed:
		return last(r.object(th, o.obj))
	case cabi.OpBarrier:
		return r.arrival(th, e, o)
	case cabi.OpWait, demand.AtWait:
		return r.woken(th, e, o)
	case cabi.OpJoin:
		return last(keyOf(kEnded, o.obj))
	case cabi.OpWaitpid:
		return last(keyOf(kGone, o.obj))
	case cabi.OpFlock, cabi.OpFcntlLock:
		return last(keyOf(kFile, e.on))
	default:
		return r.streamed(th, e, o, e.begin, e.end)
	}
}

// streamed is who wrote what was read, made room for what was written, closed the other end, or connected.
func (r *run) streamed(th uint32, e *entry, o *op, from, to uint64) (moment, bool) {
	switch e.code {
	case cabi.OpRead, cabi.OpTake:
		if e.on&onStream == 0 {
			break
		}
		a, ok := r.latest(th, keyOf(kData, e.on), from, to)
		if b, over := r.latest(th, keyOf(kOver, e.on), from, to); over && (!ok || b.at > a.at && e.result == 0) {
			return b, true
		}
		return a, ok
	case cabi.OpWrite, cabi.OpGive:
		if e.on&onStream != 0 {
			return r.latest(th, keyOf(kRoom, e.on), from, to)
		}
	case cabi.OpTakeGram:
		return r.latest(th, keyOf(kGram, o.obj), from, to)
	case cabi.OpAccept:
		return r.latest(th, keyOf(kCall, o.obj), from, to)
	}
	return moment{}, false
}

// told is who let a wait for descriptors or for a signal end: who wrote what was read next, or the child that was waited for next.
func (r *run) told(th, i uint32) (moment, bool) {
	const ahead = 6
	list := r.threads[th]
	from, to := list[i].begin, list[i].end
	for n := i + 1; n < uint32(len(list)) && n <= i+ahead; n++ {
		o := list[n].at(r.p)
		if o == nil {
			continue
		}
		m, ok := r.streamed(th, &list[n], o, from, to)
		if list[n].code == cabi.OpWaitpid {
			m, ok = r.latest(th, keyOf(kGone, o.obj), from, to)
		}
		if ok {
			return m, true
		}
	}
	return moment{}, false
}

// arrival is the last of a barrier's generation to come.
func (r *run) arrival(th uint32, e *entry, o *op) (moment, bool) {
	if int(o.obj) >= len(r.p.objects) || r.p.objects[o.obj].Value == 0 {
		return moment{}, false
	}
	list, unit := r.lets[r.object(th, o.obj)], int(r.p.objects[o.obj].Value)
	for n := sort.Search(len(list), func(i int) bool { return list[i].at >= e.begin }); n < len(list) && list[n].at == e.begin; n++ {
		if list[n].thread != th {
			continue
		}
		if n = n/unit*unit + unit - 1; n < len(list) && list[n].thread != th && list[n].at > e.begin && list[n].at <= e.end {
			return list[n], true
		}
		break
	}
	return moment{}, false
}

// woken is who let a wait for a condition end: where the section ended that signalled, or else who had its mutex last.
func (r *run) woken(th uint32, e *entry, o *op) (moment, bool) {
	p := r.pred(o)
	if p == nil {
		return moment{}, false
	}
	m, ok := r.latest(th, r.object(th, p.Cond), e.begin, e.end)
	if !ok {
		return r.latest(th, r.object(th, p.Mutex), e.begin, e.end)
	}
	list := r.threads[m.thread]
	for n := m.index + 1; n < uint32(len(list)) && n < m.index+forwardMax && list[n].begin <= e.end; n++ {
		if x := &list[n]; x.code == cabi.OpUnlock && x.obj(r.p) == p.Mutex {
			return moment{x.begin, m.thread, n}, true
		} else if x.code == cabi.OpLock && x.obj(r.p) == p.Mutex {
			break // it was signalled after the section
		}
	}
	return m, true
}

// birth is who made a thread.
func (r *run) birth(th uint32) (moment, bool) {
	list := r.lets[keyOf(kBirth, th)]
	if len(r.threads[th]) == 0 {
		return moment{}, false
	}
	n := sort.Search(len(list), func(i int) bool { return list[i].at > r.threads[th][0].begin })
	if n == 0 || list[n-1].thread == th {
		return moment{}, false
	}
	return list[n-1], true
}

// walk goes the critical path from the end to the beginning.
func (r *run) walk(s *Split) {
	p := &trail{split: s, parts: map[stretchKey]*Stretch{}}
	defer p.end()
	if r.who.at == 0 && len(r.threads[r.who.thread]) == 0 {
		s.Partial = true
		return
	}
	th, i, t := r.who.thread, r.who.index, r.end
	// over is time after a cause: up to a wake-up it is the entry's own.
	over := func(class Class, what, file uint32, ns uint64) {
		own := min(ns, wakeMax)
		p.add(th, class, what, file, own)
		p.add(th, Ready, what, file, ns-own)
	}
	if e := &r.threads[th][i]; t > e.end {
		p.add(th, CPU, e.what, 0, t-e.end)
		t = e.end
	}
	chain := 0
	for {
		e := &r.threads[th][i]
		if c, ok := r.cause(th, i); ok && c.at <= t && chain < chainMax {
			if chain++; c.at < t {
				chain = 0
			}
			over(e.classOf(t-c.at), e.what, r.fileOf(e), t-c.at)
			th, i, t = c.thread, c.index, c.at
		} else if t > e.begin {
			own, ready := e.own(t - e.begin)
			p.add(th, e.classOf(t-e.begin), e.what, r.fileOf(e), own)
			p.add(th, Ready, e.what, r.fileOf(e), ready)
			if syncs(e.code) {
				s.Syncs += own
			}
			t, chain = e.begin, 0
		}
		// In front of an entry, at its beginning.
		for i == 0 {
			c, ok := r.birth(th)
			if !ok || c.at > t {
				if th == r.p.procs[0].Main {
					p.add(th, CPU, r.whatAt(th, 0), 0, t)
				} else {
					s.Partial = true
				}
				return
			}
			// As long as it was being made it is the maker's time.
			maker := &r.threads[c.thread][c.index]
			made := min(max(maker.end, c.at), t)
			over(CPU, maker.what, 0, t-made)
			own, ready := maker.own(made - c.at)
			th, i, t = c.thread, c.index, c.at
			p.add(th, CPU, maker.what, 0, own)
			p.add(th, Ready, maker.what, 0, ready)
		}
		cpu, ready := r.gap(int(th), int(i))
		what := r.whatAt(th, i)
		p.add(th, CPU, what, 0, cpu)
		p.add(th, Ready, what, 0, ready)
		t -= min(t, cpu+ready)
		i--
	}
}

// fileOf is the file that an entry is on, plus 1.
func (r *run) fileOf(e *entry) uint32 {
	if e.on&onStream != 0 {
		return 0
	}
	return e.on
}

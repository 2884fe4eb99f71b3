package demand

import (
	"cmp"
	"slices"

	"prophet/cabi"
)

// loop is what is waited for at one place of the program with one condition.
type loop struct {
	cond     *condition
	m        *guarded
	arrivals []*arrival
	places   []uint64          // of the releases, sorted
	free     map[*arrival]bool // that passed for another reason
	all      []*arrival        // by the widest notion
	every    []uint64          // releases, by the widest notion
	n        uint32            // its predicate
	site     uint32            // of the wait
}

// arrival is one thread's coming to a loop.
type arrival struct {
	x      *section
	at     uint64 // the event before which it waits
	events int
	came   uint64 // places in the order of the mutex: when it came,
	slept  uint64 // when it last found that it had to wait,
	passed uint64 // and when it went on
	late   bool   // it went on as its time was over
	ns     int64
	rank   int64 // its turn among those that passed, from 1
	before int64 // how many had passed when it last had to wait
	turn   int64 // its turn among those that passed and are issued, from 1
}

type loopKey struct{ before, after uint32 }

type waitKey struct {
	cond *condition
	site uint32
}

// learn makes predicates of the loops.
func (c *compiler) learn() {
	l := c.loops
	var all []*guarded
	for _, m := range l.under {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *guarded) int {
		return cmp.Or(cmp.Compare(a.key.group, b.key.group), cmp.Compare(a.obj.UID, b.obj.UID), cmp.Compare(a.obj.Num, b.obj.Num))
	})
	var open []*loop
	for _, m := range all {
		slices.SortFunc(m.sections, func(a, b *section) int { return cmp.Compare(a.first, b.first) })
		for _, p := range l.find(m) {
			if !l.exact(p) {
				open = append(open, p)
			}
		}
		for _, x := range m.sections {
			x.steps = nil
		}
		m.sections = nil
	}
	open = slices.DeleteFunc(open, l.near)
	for _, p := range open {
		if !l.keyed(p) {
			l.table(p)
		}
	}
	l.queues = nil
	for _, cond := range l.conds {
		for _, r := range cond.releases {
			if r.after.n != 0 || r.after.uid != 0 {
				l.releases.add(r.after, lateRelease{cond.n, r.at})
				l.told.add(r.at, true)
			}
		}
	}
	l.under, l.spare = nil, nil
}

// find collects the loops of a mutex, and who came to each: those that waited, and those that did the same before and
// after without having to wait.
func (l *loops) find(m *guarded) []*loop {
	known := map[loopKey]*loop{}
	byWait := map[waitKey]*loop{}
	var list []*loop
	runs := func(visit func(x *section, i, j int)) {
		for _, x := range m.sections {
			for i := 1; i < len(x.steps); i++ {
				if !x.steps[i].wait {
					continue
				}
				j := i
				for j+1 < len(x.steps) && x.steps[j+1].wait && x.steps[j+1].cond == x.steps[i].cond {
					j++
				}
				visit(x, i, j)
				i = j
			}
		}
	}
	after := func(x *section, j int) uint32 {
		if j+1 < len(x.steps) {
			return x.steps[j+1].site
		}
		return 0
	}
	runs(func(x *section, i, j int) {
		w := waitKey{x.steps[i].cond, x.steps[i].site}
		p := byWait[w]
		if p == nil {
			p = &loop{cond: w.cond, m: m, site: w.site}
			byWait[w] = p
			list = append(list, p)
		}
		known[loopKey{x.steps[i-1].site, after(x, j)}] = p
		s := x.steps
		p.arrivals = append(p.arrivals, &arrival{x: x, at: s[i].n, events: j - i + 1, came: s[i].seq, slept: s[j].seq, passed: s[j].back, late: s[j].late, ns: s[j].ns})
	})
	if len(list) == 0 {
		return nil
	}
	for _, x := range m.sections {
		for i := 0; i+1 < len(x.steps); i++ {
			if x.steps[i].wait || x.steps[i+1].wait {
				continue
			}
			if x.unlock != 0 && x.steps[i].n == x.unlock {
				break
			}
			if p := known[loopKey{x.steps[i].site, x.steps[i+1].site}]; p != nil {
				q := x.steps[i+1].seq
				p.arrivals = append(p.arrivals, &arrival{x: x, at: x.steps[i+1].n, came: q, passed: q})
			}
		}
	}
	return list
}

// Whose coming counts: who did the same as one that waited, here as there, may mean another thing, as call sites are those
// of a library that all of the program waits through. So narrower notions are tried until one explains who waited.
const (
	anyone   = iota
	before   // only after the same event as one that waited
	threads  // only threads that ever waited
	both     // both
	waiters  // only who waited
	narrower // how many
)

// exact looks for a predicate that explains without an exception who had to wait at home and who had not.
func (l *loops) exact(p *loop) bool {
	p.all = p.arrivals
	for _, r := range p.cond.releases {
		p.every = append(p.every, r.pos)
	}
	slices.Sort(p.every)
	p.places = p.every
	if unit, order := p.barrier(); unit > 0 {
		l.add(p, cabi.ProgPred{Kind: cabi.PredBarrier, Unit: uint32(unit)}, order)
		return true
	}
	return l.queue(p, 0)
}

// near does with few exceptions.
func (l *loops) near(p *loop) bool {
	for let := 1; let <= 1+len(p.all)/50; let *= 2 {
		if l.queue(p, let) {
			return true
		}
	}
	return false
}

// queue tries each notion of who comes and who releases.
func (l *loops) queue(p *loop, let int) bool {
	for notion := range narrower {
		p.arrivals = narrow(p.all, notion)
		p.rankAll()
		for _, own := range []uint32{cabi.OwnThread, 0, cabi.OwnSection} {
			if !p.choose(own) {
				continue
			}
			if unit, start, ok := p.queue(let); ok {
				l.queues = append(l.queues, p)
				p.n = uint32(len(l.preds))
				l.add(p, cabi.ProgPred{Kind: cabi.PredQueue, Unit: uint32(unit), Start: start, Own: own, Lone: p.arrivals[0].x.th.n}, nil)
				return true
			}
		}
	}
	return false
}

// choose leaves out releases that do not count; it says no where that leaves nothing to go by.
func (p *loop) choose(own uint32) bool {
	p.places = p.every
	if len(p.arrivals) == 0 {
		return false
	}
	switch own {
	case cabi.OwnThread:
		// What the only one to wait signals is for nobody here.
		lone := p.arrivals[0].x.th
		for _, a := range p.arrivals {
			if a.x.th != lone {
				return false
			}
		}
		p.places = nil
		for _, r := range p.cond.releases {
			if r.th != lone {
				p.places = append(p.places, r.pos)
			}
		}
		slices.Sort(p.places)
		return len(p.places) > 0
	case cabi.OwnSection:
		p.places = p.others(p.every)
	default:
		// Where who comes is who releases, own releases say nothing.
		return len(p.others(p.every)) >= len(p.every)/2
	}
	return true
}

// table keeps home's own order, as nothing simpler explains it.
func (l *loops) table(p *loop) {
	p.arrivals, p.places, p.free = narrow(p.all, waiters), p.every, nil
	pred := cabi.ProgPred{Kind: cabi.PredRows, First: uint64(len(l.rows))}
	if p.choose(cabi.OwnThread) {
		pred.Own, pred.Lone = cabi.OwnThread, p.arrivals[0].x.th.n
	} else {
		p.places = p.every
	}
	p.rankAll()
	for _, need := range p.needs() {
		l.rows = append(l.rows, cabi.ProgRow{Value: need})
	}
	pred.Rows = uint32(uint64(len(l.rows)) - pred.First)
	l.c.info.Unlearnt++
	l.add(p, pred, nil)
}

// keyed tries whether the nth to come waits for what was taken from another queue as its nth: work that is handed out in
// order, is done in any, and is put in order again.
func (l *loops) keyed(p *loop) bool {
	for _, q := range l.queues {
		if q.cond.group != p.cond.group || q.m == p.m {
			continue
		}
		done, keyOf := p.keys(q)
		if len(done) < 2 {
			continue
		}
		for _, notion := range []int{threads, both, waiters} {
			p.arrivals = narrow(p.all, notion)
			p.rankAll()
			for _, shift := range []int64{0, 1, -1} {
				if !p.ordered(done, shift) {
					continue
				}
				most := int64(0)
				for k := range done {
					most = max(most, k)
				}
				most = max(most, int64(len(p.arrivals))) + 2
				l.add(p, cabi.ProgPred{Kind: cabi.PredKeyed, Unit: 1, Start: shift, First: uint64(l.keyCount), Rows: uint32(most)}, nil)
				l.keyCount += uint32(most)
				for at, k := range keyOf {
					l.keys.add(at, k)
				}
				return true
			}
		}
	}
	return false
}

// keys finds for each thing that was taken from q when whoever took it released here.
func (p *loop) keys(q *loop) (map[int64]uint64, map[place]int64) {
	taken := map[uint32][]*arrival{}
	for _, a := range q.arrivals {
		if !a.late && !q.free[a] {
			taken[a.x.stream] = append(taken[a.x.stream], a)
		}
	}
	for _, list := range taken {
		slices.SortFunc(list, func(a, b *arrival) int { return cmp.Compare(a.at, b.at) })
	}
	done, keyOf := map[int64]uint64{}, map[place]int64{}
	for _, r := range p.cond.releases {
		list := taken[r.at.uid]
		i, _ := slices.BinarySearchFunc(list, r.at.n, func(a *arrival, n uint64) int { return cmp.Compare(a.at, n) })
		if i > 0 {
			k := list[i-1].rank - 1
			done[k] = max(done[k], r.pos)
			keyOf[r.at] = k
		}
	}
	return done, keyOf
}

// ordered reports whether each arrival passed after the thing of its number was released, and waited before.
func (p *loop) ordered(done map[int64]uint64, shift int64) bool {
	bad, waits, n := 0, 0, int64(0)
	p.free = map[*arrival]bool{}
	for _, a := range p.arrivals {
		if a.late {
			continue
		}
		pos, ok := done[n+shift]
		if !ok || pos > a.passed || a.events > 0 && pos < a.slept {
			if bad++; bad > 1+len(p.arrivals)/50 {
				return false
			}
			if !ok || pos > a.passed {
				p.free[a] = true
				continue
			}
		}
		n++
		waits += a.events
	}
	return waits > 0
}

func b2u(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// narrow keeps the arrivals that count by a notion.
func narrow(all []*arrival, notion int) []*arrival {
	after, by := map[eventKey]bool{}, map[*thread]bool{}
	for _, a := range all {
		if a.events > 0 {
			after[a.x.before], by[a.x.th] = true, true
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(a *arrival) bool {
		switch notion {
		case before:
			return !after[a.x.before]
		case threads:
			return !by[a.x.th]
		case both:
			return !after[a.x.before] || !by[a.x.th]
		case waiters:
			return a.events == 0
		}
		return false
	})
}

// others are the releases that did not come from a section that had come here itself: who takes something and says so
// lets nobody pass.
func (p *loop) others(places []uint64) []uint64 {
	came := map[uint64]bool{}
	for _, a := range p.arrivals {
		came[a.passed] = true
	}
	return slices.DeleteFunc(slices.Clone(places), func(at uint64) bool { return came[at] })
}

// add keeps a predicate, and where it is waited for.
func (l *loops) add(p *loop, pred cabi.ProgPred, order []*section) {
	n := uint32(len(l.preds))
	pred.Cond, pred.Mutex = p.cond.n, l.c.object(p.cond.group, p.m.obj, cabi.ObjMutex)
	unit := int(pred.Unit)
	var samples [2]int
	for i, x := range order {
		last := i%unit == unit-1
		role := b2u(last)
		if x.unlock == 0 {
			continue
		}
		l.roles.add(place{x.stream, x.lock}, roleAt{pred: n, unlock: x.unlock, last: last, sample: samples[role] < samplesMax && i >= unit})
		if i >= unit {
			samples[role]++
		}
	}
	if pred.Kind == cabi.PredQueue {
		// What is taken decides what is done with it: whoever takes the nth goes on as who took it at home.
		if n := p.turns(); n > 0 {
			if p.ends() {
				pred.Kind = cabi.PredEnds
				for _, r := range p.cond.releases {
					if i, ok := slices.BinarySearch(p.places, r.pos); ok && int64(i)+pred.Start >= 0 && int64(i)+pred.Start < n {
						l.order.add(r.at, int64(i)+pred.Start)
					}
				}
				pred.Start = 0
			}
			pred.First, pred.Rows = uint64(len(l.rows)), uint32(n)
			l.rows = append(l.rows, make([]cabi.ProgRow, n)...)
		}
	}
	// How long others than those that waited in vain would have waited is not recorded: as long as those.
	var lates []int64
	for _, a := range p.arrivals {
		if a.late {
			lates = append(lates, a.ns)
		}
	}
	limit := int64(0)
	if len(lates) > 0 {
		slices.Sort(lates)
		limit = max(lates[len(lates)/2], 1)
	}
	count := map[uint32]int{}
	for _, a := range p.arrivals {
		count[a.x.stream]++
	}
	for uid, n := range count {
		l.at.grow(uid, n)
	}
	for _, a := range p.arrivals {
		if p.free[a] {
			l.skips.add(place{a.x.stream, a.at}, a.events)
			continue
		}
		w := waitAt{pred: n, events: a.events, timeout: limit, site: p.site, choice: limit > 0, late: a.late}
		if a.late {
			w.timeout = max(a.ns, 1)
		} else if pred.Kind != cabi.PredRows && pred.Kind != cabi.PredKeyed && pred.Rows > 0 {
			w.row = int64(pred.First) + a.turn
		}
		l.at.add(place{a.x.stream, a.at}, w)
	}
	l.preds = append(l.preds, pred)
	l.waits = append(l.waits, waitsOf(p))
	l.c.info.Preds++
}

// samplesMax is how many sections of a role are kept to be done by others.
const samplesMax = 16

// below is how many releases there were before a place.
func (p *loop) below(place uint64) int64 {
	n, _ := slices.BinarySearch(p.places, place)
	return int64(n)
}

// rankAll finds in which order the arrivals passed.
func (p *loop) rankAll() {
	slices.SortFunc(p.arrivals, func(a, b *arrival) int { return cmp.Compare(a.came, b.came) })
	byPass := slices.Clone(p.arrivals)
	byPass = slices.DeleteFunc(byPass, func(a *arrival) bool { return a.late })
	slices.SortFunc(byPass, func(a, b *arrival) int { return cmp.Compare(a.passed, b.passed) })
	for i, a := range byPass {
		a.rank = int64(i) + 1
	}
	for _, a := range p.arrivals {
		if a.events > 0 {
			n, _ := slices.BinarySearchFunc(byPass, a.slept, func(b *arrival, at uint64) int { return cmp.Compare(b.passed, at+1) })
			a.before = int64(n)
		}
	}
}

// queue tries the predicate that each release lets `unit` more pass, and `start` at the beginning.
func (p *loop) queue(let int) (unit, start int64, ok bool) {
	passes := int64(0)
	for _, a := range p.arrivals {
		if !a.late {
			passes++
		}
	}
	tries := []int64{1}
	if n := int64(len(p.places)); n > 0 {
		for d := passes/n - 1; d <= passes/n+1; d++ {
			if d > 1 {
				tries = append(tries, d)
			}
		}
	}
	for _, k := range tries {
		if start, ok := p.fit(k, let); ok {
			return k, start, true
		}
	}
	return 0, 0, false
}

// fit tries how many may pass at the beginning when each release lets k more pass. Who had to wait tells it: as many had passed
// then as could. A few that do not agree are let off: the last ones of a run often pass for another reason.
func (p *loop) fit(k int64, let int) (start int64, ok bool) {
	count, waits := map[int64]int{}, 0
	for _, a := range p.arrivals {
		if a.events > 0 {
			count[a.before-k*p.below(a.slept)]++
			waits++
		}
	}
	most := 0
	for b, n := range count {
		if n > most || n == most && b > start {
			start, most = b, n
		}
	}
	if waits == 0 || waits-most > let {
		return 0, false
	}
	// In order of passing: each is let pass by the releases before it, or has to be let off.
	free := map[*arrival]bool{}
	byPass := slices.Clone(p.arrivals)
	slices.SortFunc(byPass, func(a, b *arrival) int { return cmp.Compare(a.passed, b.passed) })
	passed := int64(0)
	for _, a := range byPass {
		if a.late {
			continue
		}
		if passed+1 > start+k*p.below(a.passed) {
			if free[a] = true; len(free) > let {
				return 0, false
			}
			continue
		}
		passed++
	}
	p.free = free
	return start, true
}

// turns numbers those that passed, from 1, and says how many there are; 0 where it does not matter who takes what: one thread
// alone takes things of which each is as good as the other.
func (p *loop) turns() int64 {
	byPass := slices.DeleteFunc(slices.Clone(p.arrivals), func(a *arrival) bool { return a.late || p.free[a] })
	slices.SortFunc(byPass, func(a, b *arrival) int { return cmp.Compare(a.passed, b.passed) })
	by := map[*thread]int{}
	for i, a := range byPass {
		a.turn = int64(i) + 1
		by[a.x.th]++
	}
	if !p.ends() && (len(by) < 2 || p.each()) {
		return 0
	}
	return int64(len(byPass))
}

// each reports whether all threads pass the same number of times, and not just once or twice: then a thread's own count says how
// often, and not how much work there is for all.
func (p *loop) each() bool {
	by := map[*thread]int{}
	for _, a := range p.arrivals {
		if !a.late {
			by[a.x.th]++
		}
	}
	n := 0
	for _, k := range by {
		if k < 3 || n != 0 && k != n {
			return false
		}
		n = k
	}
	return true
}

// ends reports whether several threads release here, and each but once: as threads do that end, and are then joined.
func (p *loop) ends() bool {
	makers := map[*thread]int{}
	for _, r := range p.cond.releases {
		if _, ok := slices.BinarySearch(p.places, r.pos); ok {
			makers[r.th]++
		}
	}
	for _, n := range makers {
		if n > 1 {
			return false
		}
	}
	return len(makers) > 1
}

// needs is for each arrival, in the order in which they came, how many releases it is known to have needed.
func (p *loop) needs() []uint64 {
	var rows []uint64
	most := int64(0)
	for _, a := range p.arrivals {
		if a.events > 0 && !a.late {
			most = max(most, min(p.below(a.slept)+1, p.below(a.passed)))
		}
		rows = append(rows, uint64(min(most, p.below(a.passed))))
	}
	return rows
}

// releases tells whether a condition is signalled in the section.
func (x *section) releases(c *condition) bool {
	return slices.ContainsFunc(x.steps, func(s step) bool { return s.cond == c && !s.wait })
}

// barrier tries whether of each `unit` threads that take the mutex at one place the last one releases the others.
func (p *loop) barrier() (unit int, order []*section) {
	if len(p.arrivals) < 2 || len(p.places) < 2 {
		return 0, nil
	}
	site := p.arrivals[0].x.steps[0].site
	if !slices.ContainsFunc(p.m.sections, func(x *section) bool { return x.steps[0].site == site && x.releases(p.cond) }) {
		return 0, nil
	}
	waits := map[*section]bool{}
	for _, a := range p.arrivals {
		waits[a.x] = true
		if a.x.steps[0].site != site || a.at != a.x.steps[1].n {
			return 0, nil
		}
	}
	releases := map[*section]bool{}
	for _, x := range p.m.sections {
		if x.steps[0].site != site {
			continue
		}
		if x.releases(p.cond) {
			releases[x] = true
		}
		if releases[x] == waits[x] {
			return 0, nil
		}
		order = append(order, x)
	}
	if len(releases) == 0 || len(order)%len(releases) != 0 || len(releases) != len(p.places) {
		return 0, nil
	}
	unit = len(order) / len(releases)
	if unit < 2 {
		return 0, nil
	}
	for i, x := range order {
		if releases[x] != (i%unit == unit-1) {
			return 0, nil
		}
	}
	return unit, order
}

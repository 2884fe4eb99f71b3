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
	arrivals []*arrival // in the order in which they came,
	byPass   []*arrival // and in which they passed
	places   []uint64   // of the releases, sorted
	all      []*arrival // by the widest notion
	allPass  []*arrival
	every    []uint64 // releases, by the widest notion
	n        uint32   // its predicate
	site     uint32   // of the wait
}

// of is the section of an arrival.
func (p *loop) of(a *arrival) *section { return &p.m.sections[a.x] }

// arrival is one thread's coming to a loop. There may be millions.
type arrival struct {
	at     uint64 // the event before which it waits
	came   uint64 // places in the order of the mutex: when it came,
	slept  uint64 // when it last found that it had to wait,
	passed uint64 // and when it went on
	ns     int64
	x      uint32 // section
	events int32
	rank   uint32 // its turn among those that passed, from 1
	before uint32 // how many had passed when it last had to wait
	turn   uint32 // its turn among those that passed and are issued, from 1
	late   bool   // it went on as its time was over
	free   bool   // it passed for another reason
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
		slices.SortFunc(m.sections, func(a, b section) int { return cmp.Compare(a.first, b.first) })
		for _, p := range l.find(m) {
			if !l.exact(p) {
				open = append(open, p)
			}
		}
	}
	open = slices.DeleteFunc(open, l.near)
	for _, p := range open {
		if !l.keyed(p) {
			l.table(p)
		}
	}
	for _, cond := range l.conds {
		for _, x := range cond.afters {
			at := cond.releases[x.release].at()
			l.releases.add(x.unlock, lateRelease{cond.n, at})
			l.told.add(at, true)
		}
	}
	l.queues, l.under, l.conds, l.list, l.shapes, l.byShape, l.befores, l.here = nil, nil, nil, nil, nil, nil, nil, nil
	clear(l.recent[:])
	clear(l.signalled[:])
	clear(l.sites[:])
}

// find collects the loops of a mutex, and who came to each: those that waited, and those that did the same before and
// after without having to wait.
func (l *loops) find(m *guarded) []*loop {
	known := map[loopKey]*loop{}
	byWait := map[waitKey]*loop{}
	var list []*loop
	var room []arrival
	arrive := func(p *loop, a arrival) {
		if len(room) == 0 {
			room = make([]arrival, 4096)
		}
		room[0] = a
		p.all, room = append(p.all, &room[0]), room[1:]
	}
	var s []step
	for n := range m.sections {
		x := &m.sections[n]
		if !slices.ContainsFunc(l.shapes[x.shape], func(s shapeStep) bool { return s.wait }) {
			continue
		}
		s = l.steps(m, x, s)
		for i := 1; i < len(s); i++ {
			if !s[i].wait {
				continue
			}
			j := i
			for j+1 < len(s) && s[j+1].wait && s[j+1].cond == s[i].cond {
				j++
			}
			w := waitKey{s[i].cond, s[i].site}
			p := byWait[w]
			if p == nil {
				p = &loop{cond: w.cond, m: m, site: w.site}
				byWait[w] = p
				list = append(list, p)
			}
			after := uint32(0)
			if j+1 < len(s) {
				after = s[j+1].site
			}
			known[loopKey{s[i-1].site, after}] = p
			arrive(p, arrival{x: uint32(n), at: s[i].n, events: int32(j - i + 1), came: s[i].seq, slept: s[j].seq, passed: s[j].back, late: s[j].late, ns: s[j].ns})
			i = j
		}
	}
	if len(list) == 0 {
		return nil
	}
	// Where in sections of a shape somebody comes to a loop and goes on at once.
	type hit struct {
		step int
		p    *loop
	}
	through := map[uint32][]hit{}
	for n := range m.sections {
		x := &m.sections[n]
		hits, ok := through[x.shape]
		if !ok {
			of := l.shapes[x.shape]
			for i := 0; i+1 < len(of); i++ {
				if p := known[loopKey{of[i].site, of[i+1].site}]; p != nil && !of[i].wait && !of[i+1].wait {
					hits = append(hits, hit{i, p})
				}
			}
			through[x.shape] = hits
		}
		if len(hits) == 0 {
			continue
		}
		s = l.steps(m, x, s)
		end, unlocked := x.unlocked()
		for _, h := range hits {
			if unlocked && s[h.step].n >= end {
				break
			}
			q := s[h.step+1].seq
			arrive(h.p, arrival{x: uint32(n), at: s[h.step+1].n, came: q, passed: q})
		}
	}
	for _, p := range list {
		p.all = arrivalsBy(p.all, func(a *arrival) uint64 { return a.came })
		p.allPass = arrivalsBy(p.all, func(a *arrival) uint64 { return a.passed })
	}
	return list
}

// arrivalsBy are arrivals by a number of theirs, which is read once of each: they lie all over the memory.
func arrivalsBy(list []*arrival, of func(*arrival) uint64) []*arrival {
	type keyed struct {
		key uint64
		a   *arrival
	}
	all := make([]keyed, len(list))
	for i, a := range list {
		all[i] = keyed{of(a), a}
	}
	slices.SortFunc(all, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
	sorted := make([]*arrival, len(list))
	for i, k := range all {
		sorted[i] = k.a
	}
	return sorted
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
	p.arrivals, p.byPass = p.all, p.allPass
	for _, r := range p.cond.releases {
		p.every = append(p.every, r.pos)
	}
	slices.Sort(p.every)
	p.places = p.every
	if unit, order := l.barrier(p); unit > 0 {
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
		p.narrow(notion)
		p.rankAll()
		for _, own := range []uint32{cabi.OwnThread, 0, cabi.OwnSection} {
			if !p.choose(own) {
				continue
			}
			if unit, start, ok := p.queue(let); ok {
				l.queues = append(l.queues, p)
				p.n = uint32(len(l.preds))
				l.add(p, cabi.ProgPred{Kind: cabi.PredQueue, Unit: uint32(unit), Start: start, Own: own, Lone: p.of(p.arrivals[0]).thread}, nil)
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
		lone := p.of(p.arrivals[0]).thread
		for _, a := range p.arrivals {
			if p.of(a).thread != lone {
				return false
			}
		}
		p.places = nil
		for _, r := range p.cond.releases {
			if r.thread != lone {
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
	p.narrow(waiters)
	p.places = p.every
	for _, a := range p.arrivals {
		a.free = false
	}
	pred := cabi.ProgPred{Kind: cabi.PredRows, First: uint64(len(l.rows))}
	if p.choose(cabi.OwnThread) {
		pred.Own, pred.Lone = cabi.OwnThread, p.of(p.arrivals[0]).thread
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
			p.narrow(notion)
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
		if !a.late && !a.free {
			x := q.of(a)
			taken[x.stream] = append(taken[x.stream], a)
		}
	}
	for _, list := range taken {
		slices.SortFunc(list, func(a, b *arrival) int { return cmp.Compare(a.at, b.at) })
	}
	done, keyOf := map[int64]uint64{}, map[place]int64{}
	for _, r := range p.cond.releases {
		list := taken[r.uid]
		i, _ := slices.BinarySearchFunc(list, r.n, func(a *arrival, n uint64) int { return cmp.Compare(a.at, n) })
		if i > 0 {
			k := int64(list[i-1].rank) - 1
			done[k] = max(done[k], r.pos)
			keyOf[r.at()] = k
		}
	}
	return done, keyOf
}

// ordered reports whether each arrival passed after the thing of its number was released, and waited before.
func (p *loop) ordered(done map[int64]uint64, shift int64) bool {
	bad, waits, n := 0, int32(0), int64(0)
	for _, a := range p.arrivals {
		a.free = false
	}
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
				a.free = true
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
func (p *loop) narrow(notion int) {
	after, by := map[uint32]bool{}, map[uint32]bool{}
	for _, a := range p.all {
		if x := p.of(a); a.events > 0 {
			after[x.before], by[x.thread] = true, true
		}
	}
	keep := func(list []*arrival) []*arrival {
		if notion == anyone {
			return list
		}
		return slices.DeleteFunc(slices.Clone(list), func(a *arrival) bool {
			switch x := p.of(a); notion {
			case before:
				return !after[x.before]
			case threads:
				return !by[x.thread]
			case both:
				return !after[x.before] || !by[x.thread]
			}
			return a.events == 0
		})
	}
	p.arrivals, p.byPass = keep(p.all), keep(p.allPass)
}

// others are the releases that did not come from a section that had come here itself: who takes something and says so
// lets nobody pass.
func (p *loop) others(places []uint64) []uint64 {
	i := 0
	return slices.DeleteFunc(slices.Clone(places), func(at uint64) bool {
		for i < len(p.byPass) && p.byPass[i].passed < at {
			i++
		}
		return i < len(p.byPass) && p.byPass[i].passed == at
	})
}

// add keeps a predicate, and where it is waited for.
func (l *loops) add(p *loop, pred cabi.ProgPred, order []uint32) {
	n := uint32(len(l.preds))
	pred.Cond, pred.Mutex = p.cond.n, l.c.object(p.cond.group, p.m.obj, cabi.ObjMutex)
	unit := int(pred.Unit)
	var samples [2]int
	for i, at := range order {
		x := &p.m.sections[at]
		last := i%unit == unit-1
		role := b2u(last)
		unlock, ok := x.unlocked()
		if !ok {
			continue
		}
		l.roles.add(place{x.stream, x.lock}, roleAt{pred: n, unlock: unlock, last: last, sample: samples[role] < samplesMax && i >= unit})
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
						l.order.add(r.at(), int64(i)+pred.Start)
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
		count[p.of(a).stream]++
	}
	for uid, n := range count {
		l.at.grow(uid, n)
	}
	for _, a := range p.arrivals {
		at := place{p.of(a).stream, a.at}
		if a.free {
			l.skips.add(at, int(a.events))
			continue
		}
		w := waitAt{pred: n, events: a.events, timeout: limit, site: p.site, choice: limit > 0, late: a.late}
		if a.late {
			w.timeout = max(a.ns, 1)
		} else if pred.Kind != cabi.PredRows && pred.Kind != cabi.PredKeyed && pred.Rows > 0 {
			w.row = int64(pred.First) + int64(a.turn)
		}
		l.at.add(at, w)
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
	var passed []uint64
	for _, a := range p.byPass {
		if !a.late {
			passed = append(passed, a.passed)
			a.rank = uint32(len(passed))
		}
	}
	for _, a := range p.arrivals {
		if a.events > 0 {
			a.before = uint32(upTo(passed, a.slept))
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
			count[int64(a.before)-k*p.below(a.slept)]++
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
	for _, a := range p.arrivals {
		a.free = false
	}
	passed, released, free := int64(0), 0, 0
	for _, a := range p.byPass {
		if a.late {
			continue
		}
		for released < len(p.places) && p.places[released] < a.passed {
			released++
		}
		if passed+1 > start+k*int64(released) {
			a.free = true
			if free++; free > let {
				return 0, false
			}
			continue
		}
		passed++
	}
	return start, true
}

// turns numbers those that passed, from 1, and says how many there are; 0 where it does not matter who takes what: one thread
// alone takes things of which each is as good as the other.
func (p *loop) turns() int64 {
	n, by := uint32(0), map[uint32]int{}
	for _, a := range p.byPass {
		if !a.late && !a.free {
			n++
			a.turn = n
			by[p.of(a).thread]++
		}
	}
	if !p.ends() && (len(by) < 2 || p.each()) {
		return 0
	}
	return int64(n)
}

// each reports whether all threads pass the same number of times, and not just once or twice: then a thread's own count says how
// often, and not how much work there is for all.
func (p *loop) each() bool {
	by := map[uint32]int{}
	for _, a := range p.arrivals {
		if !a.late {
			by[p.of(a).thread]++
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
	makers := map[uint32]int{}
	for _, r := range p.cond.releases {
		if _, ok := slices.BinarySearch(p.places, r.pos); ok {
			makers[r.thread]++
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

// barrier tries whether of each `unit` threads that take the mutex at one place the last one releases the others.
func (l *loops) barrier(p *loop) (unit int, order []uint32) {
	if len(p.arrivals) < 2 || len(p.places) < 2 {
		return 0, nil
	}
	sections := p.m.sections
	site := p.of(p.arrivals[0]).site(l)
	number := p.cond.number + 1
	signals := func(of *section) bool {
		return slices.ContainsFunc(l.shapes[of.shape], func(s shapeStep) bool { return s.cond == number && !s.wait })
	}
	waits := make([]bool, len(sections))
	for _, a := range p.arrivals {
		waits[a.x] = true
		if x := p.of(a); x.site(l) != site || len(l.shapes[x.shape]) < 2 || a.at != x.lock+uint64(l.shapes[x.shape][1].after) {
			return 0, nil
		}
	}
	releases, last := 0, []bool{}
	for i := range sections {
		x := &sections[i]
		if x.site(l) != site {
			continue
		}
		s := signals(x)
		if s == waits[i] {
			return 0, nil
		}
		if s {
			releases++
		}
		order, last = append(order, uint32(i)), append(last, s)
	}
	if releases == 0 || len(order)%releases != 0 || releases != len(p.places) {
		return 0, nil
	}
	unit = len(order) / releases
	if unit < 2 {
		return 0, nil
	}
	for i, s := range last {
		if s != (i%unit == unit-1) {
			return 0, nil
		}
	}
	return unit, order
}

package demand

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"prophet/cabi"
)

// loop is what is waited for at one place of the program with one condition.
type loop struct {
	cond    *condition
	m       *guarded
	came    []uint32  // those of all that count, in the order in which they came,
	pass    []uint32  // and in which they passed
	places  []uint64  // of the releases, sorted
	all     []arrival // by the widest notion, as they came
	allCame []uint32
	allPass []uint32
	every   []uint64 // releases, by the widest notion
	site    uint32   // of the wait
}

// of is the section of an arrival.
func (p *loop) of(a *arrival) *section { return p.m.sections.at(int(a.x)) }

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
	cond uint32 // its number, plus 1
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
		m.order = inOrder(m.sections.n, func(i int) uint64 { return m.sections.at(i).first })
		found := l.find(m)
		explained := l.explain(found)
		for i, p := range found {
			if x := explained[i]; x != nil {
				l.add(p, *x)
				p.places, p.every, p.pass, p.allPass = nil, nil, nil, nil // there may be millions of each
			} else {
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
	for _, cond := range l.list {
		for _, x := range cond.afters {
			at := cond.releases.at(x.release).at()
			l.releases.add(x.unlock, lateRelease{cond.n, at})
			l.told.add(at, true)
		}
	}
	l.queues, l.under, l.conds, l.list, l.shapes, l.uses, l.byShape, l.befores, l.here = nil, nil, nil, nil, nil, nil, nil, nil, nil
	clear(l.recent[:])
	clear(l.signalled[:])
	clear(l.sites[:])
}

// shapeUse is what sections of a shape do at the loops of a mutex.
type shapeUse struct {
	of     *guarded
	shape  uint32
	last   uint32 // place of the last such section
	count  int
	waits  []waitUse
	passes []passUse
}

// waitUse is a loop that is waited in, by the steps from one to another.
type waitUse struct {
	p        *loop
	from, to int
}

// passUse is where somebody comes to a loop and goes on at once, after a step.
type passUse struct {
	p    *loop
	step int
}

// use finds the loops that sections of a shape wait in; make is called for those that nobody has waited in before.
func (l *loops) use(u *shapeUse, loop func(w waitKey) *loop) {
	s := l.shapes[u.shape]
	for i := 1; i < len(s); i++ {
		if !s[i].wait {
			continue
		}
		j := i
		for j+1 < len(s) && s[j+1].wait && s[j+1].cond == s[i].cond {
			j++
		}
		u.waits = append(u.waits, waitUse{loop(waitKey{s[i].cond, s[i].site}), i, j})
		i = j
	}
}

// find collects the loops of a mutex, and who came to each: those that waited, and those that did the same before and
// after without having to wait.
func (l *loops) find(m *guarded) []*loop {
	byWait := map[waitKey]*loop{}
	var list []*loop
	var used []uint32
	if l.uses == nil {
		l.uses = make([]shapeUse, len(l.shapes))
	}
	for i, n := range m.order {
		shape := m.sections.at(int(n)).shape
		u := &l.uses[shape]
		if u.of != m {
			*u = shapeUse{of: m, shape: shape}
			used = append(used, shape)
			l.use(u, func(w waitKey) *loop {
				p := byWait[w]
				if p == nil {
					p = &loop{cond: l.list[w.cond-1], m: m, site: w.site}
					byWait[w] = p
					list = append(list, p)
				}
				return p
			})
		}
		u.last = uint32(i)
		u.count++
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(used, func(a, b uint32) int { return cmp.Compare(l.uses[a].last, l.uses[b].last) })
	// What comes before a loop and after it, as the last one that waited has it.
	known := map[loopKey]*loop{}
	for _, shape := range used {
		s := l.shapes[shape]
		for _, w := range l.uses[shape].waits {
			after := uint32(0)
			if w.to+1 < len(s) {
				after = s[w.to+1].site
			}
			known[loopKey{s[w.from-1].site, after}] = w.p
		}
	}
	room := map[*loop]int{}
	for _, shape := range used {
		s, u := l.shapes[shape], &l.uses[shape]
		for _, w := range u.waits {
			room[w.p] += u.count
		}
		for i := 0; i+1 < len(s); i++ {
			if p := known[loopKey{s[i].site, s[i+1].site}]; p != nil && !s[i].wait && !s[i+1].wait {
				u.passes = append(u.passes, passUse{p, i})
				room[p] += u.count
			}
		}
	}
	for _, p := range list {
		p.all = make([]arrival, 0, room[p])
	}
	var s []step
	for _, n := range m.order {
		x := m.sections.at(int(n))
		u := &l.uses[x.shape]
		if len(u.waits)+len(u.passes) == 0 {
			continue
		}
		if len(u.waits) == 0 { // nothing moves its place
			of := l.shapes[x.shape]
			for _, h := range u.passes {
				if x.unlock != 0 && of[h.step].after >= x.unlock {
					break
				}
				h.p.all = append(h.p.all, arrival{x: n, at: x.lock + uint64(of[h.step+1].after), came: x.first, passed: x.first})
			}
			continue
		}
		s = l.steps(m, x, s)
		for _, w := range u.waits {
			first, last := &s[w.from], &s[w.to]
			w.p.all = append(w.p.all, arrival{x: n, at: first.n, events: int32(w.to - w.from + 1), came: first.seq, slept: last.seq, passed: last.back, late: last.late, ns: last.ns})
		}
		end, unlocked := x.unlocked()
		for _, h := range u.passes {
			if unlocked && s[h.step].n >= end {
				break
			}
			q := s[h.step+1].seq
			h.p.all = append(h.p.all, arrival{x: n, at: s[h.step+1].n, came: q, passed: q})
		}
	}
	for _, p := range list {
		p.allCame = inOrder(len(p.all), func(i int) uint64 { return p.all[i].came })
		p.allPass = inOrder(len(p.all), func(i int) uint64 { return p.all[i].passed })
	}
	return list
}

// arrivals are those that count, in the order in which they came.
func (p *loop) arrivals(yield func(a *arrival) bool) {
	for _, n := range p.came {
		if !yield(&p.all[n]) {
			return
		}
	}
}

// passings are the same in the order in which they passed.
func (p *loop) passings(yield func(a *arrival) bool) {
	for _, n := range p.pass {
		if !yield(&p.all[n]) {
			return
		}
	}
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

// explanation is a predicate that explains who had to wait at home.
type explanation struct {
	pred  cabi.ProgPred
	order []uint32 // of a barrier, its sections
	turns int64    // of a queue: how many turns there are, if it matters whose each is
	ends  bool
}

// explain looks for predicates of loops that explain without an exception who had to wait at home and who had not; nil: there is none.
func (l *loops) explain(list []*loop) []*explanation {
	for _, p := range list {
		if c := p.cond; len(c.order) != c.releases.n {
			c.order = inOrder(c.releases.n, func(i int) uint64 { return c.releases.at(i).pos })
		}
	}
	found := make([]*explanation, len(list))
	var all sync.WaitGroup
	var next atomic.Int64
	for range min(len(list), runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(list)); i = next.Add(1) - 1 {
				found[i] = l.exact(list[i])
			}
		})
	}
	all.Wait()
	return found
}

// exact looks for a predicate of one loop. Others are looked at meanwhile.
func (l *loops) exact(p *loop) *explanation {
	p.came, p.pass = p.allCame, p.allPass
	c := p.cond
	p.every = make([]uint64, c.releases.n)
	for i, n := range c.order {
		p.every[i] = c.releases.at(int(n)).pos
	}
	p.places = p.every
	if unit, order := l.barrier(p); unit > 0 {
		return &explanation{pred: cabi.ProgPred{Kind: cabi.PredBarrier, Unit: uint32(unit)}, order: order}
	}
	// They are woken first: of the last one of a run nothing that comes after it tells.
	missed := p.missed()
	x := p.queue(0)
	if x == nil && len(missed) > 0 {
		setLate(missed, true)
		if x = p.queue(0); x == nil {
			setLate(missed, false)
		}
	}
	return x
}

// missed takes who was told, and was held up until its time was over, for woken, as whoever looks again finds it so; where one thread
// alone waits: of several another one may have been told.
func (p *loop) missed() (list []*arrival) {
	if !slices.ContainsFunc(p.all, func(a arrival) bool { return a.late }) {
		return nil
	}
	p.narrow(waiters)
	if !p.choose(cabi.OwnThread) {
		return nil
	}
	for a := range p.arrivals {
		if a.late && p.below(a.passed) > p.below(a.slept) {
			list = append(list, a)
		}
	}
	setLate(list, false)
	return list
}

func setLate(list []*arrival, late bool) {
	for _, a := range list {
		a.late = late
	}
}

// near does with few exceptions.
func (l *loops) near(p *loop) bool {
	for let := 1; let <= 1+len(p.all)/50; let *= 2 {
		if x := p.queue(let); x != nil {
			l.add(p, *x)
			return true
		}
	}
	return false
}

// queue tries each notion of who comes and who releases.
func (p *loop) queue(let int) *explanation {
	for notion := range narrower {
		p.narrow(notion)
		p.rankAll()
		for _, own := range []uint32{cabi.OwnThread, 0, cabi.OwnSection} {
			if !p.choose(own) {
				continue
			}
			if unit, start, ok := p.units(let); ok {
				x := &explanation{pred: cabi.ProgPred{Kind: cabi.PredQueue, Unit: uint32(unit), Start: start, Own: own, Lone: p.first().thread}}
				// What is taken decides what is done with it: whoever takes the nth goes on as who took it at home.
				x.turns, x.ends = p.turns()
				return x
			}
		}
	}
	return nil
}

// choose leaves out releases that do not count; it says no where that leaves nothing to go by.
func (p *loop) choose(own uint32) bool {
	p.places = p.every
	if len(p.came) == 0 {
		return false
	}
	switch own {
	case cabi.OwnThread:
		// What the only one to wait signals is for nobody here.
		lone := p.first().thread
		for a := range p.arrivals {
			if p.of(a).thread != lone {
				return false
			}
		}
		p.places = make([]uint64, 0, p.cond.releases.n)
		for _, n := range p.cond.order {
			if r := p.cond.releases.at(int(n)); r.thread != lone {
				p.places = append(p.places, r.pos)
			}
		}
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
	for a := range p.arrivals {
		a.free = false
	}
	pred := cabi.ProgPred{Kind: cabi.PredRows, First: uint64(len(l.rows))}
	if p.choose(cabi.OwnThread) {
		pred.Own, pred.Lone = cabi.OwnThread, p.first().thread
	} else {
		p.places = p.every
	}
	p.rankAll()
	for _, need := range p.needs() {
		l.rows = append(l.rows, cabi.ProgRow{Value: need})
	}
	pred.Rows = uint32(uint64(len(l.rows)) - pred.First)
	l.c.info.Unlearnt++
	l.add(p, explanation{pred: pred})
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
				most = max(most, int64(len(p.came))) + 2
				l.add(p, explanation{pred: cabi.ProgPred{Kind: cabi.PredKeyed, Unit: 1, Start: shift, First: uint64(l.keyCount), Rows: uint32(most)}})
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
	for a := range q.arrivals {
		if !a.late && !a.free {
			x := q.of(a)
			taken[x.stream] = append(taken[x.stream], a)
		}
	}
	for _, list := range taken {
		slices.SortFunc(list, func(a, b *arrival) int { return cmp.Compare(a.at, b.at) })
	}
	done, keyOf := map[int64]uint64{}, map[place]int64{}
	for i := range p.cond.releases.n {
		r := p.cond.releases.at(i)
		list := taken[r.uid]
		k, _ := slices.BinarySearchFunc(list, r.n, func(a *arrival, n uint64) int { return cmp.Compare(a.at, n) })
		if k > 0 {
			key := int64(list[k-1].rank) - 1
			done[key] = max(done[key], r.pos)
			keyOf[r.at()] = key
		}
	}
	return done, keyOf
}

// ordered reports whether each arrival passed after the thing of its number was released, and waited before.
func (p *loop) ordered(done map[int64]uint64, shift int64) bool {
	bad, waits, n := 0, int32(0), int64(0)
	for a := range p.arrivals {
		a.free = false
	}
	for a := range p.arrivals {
		if a.late {
			continue
		}
		pos, ok := done[n+shift]
		if !ok || pos > a.passed || a.events > 0 && pos < a.slept {
			if bad++; bad > 1+len(p.came)/50 {
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
	p.came, p.pass = p.allCame, p.allPass
	if notion == anyone {
		return
	}
	after, by := map[uint32]bool{}, map[uint32]bool{}
	for i := range p.all {
		if a := &p.all[i]; a.events > 0 {
			x := p.of(a)
			after[x.before], by[x.thread] = true, true
		}
	}
	keep := func(list []uint32) []uint32 {
		return slices.DeleteFunc(slices.Clone(list), func(n uint32) bool {
			a := &p.all[n]
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
	p.came, p.pass = keep(p.allCame), keep(p.allPass)
}

// first is the section of the first one to come.
func (p *loop) first() *section { return p.of(&p.all[p.came[0]]) }

// others are the releases that did not come from a section that had come here itself: who takes something and says so
// lets nobody pass.
func (p *loop) others(places []uint64) []uint64 {
	i := 0
	return slices.DeleteFunc(slices.Clone(places), func(at uint64) bool {
		for i < len(p.pass) && p.all[p.pass[i]].passed < at {
			i++
		}
		return i < len(p.pass) && p.all[p.pass[i]].passed == at
	})
}

// add keeps a predicate, and where it is waited for.
func (l *loops) add(p *loop, x explanation) {
	n, pred := uint32(len(l.preds)), x.pred
	pred.Cond, pred.Mutex = p.cond.n, l.c.object(p.cond.group, p.m.obj, cabi.ObjMutex)
	unit := int(pred.Unit)
	var samples [2]int
	for i, at := range x.order {
		x := p.m.sections.at(int(at))
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
		l.queues = append(l.queues, p)
		if n := x.turns; n > 0 {
			if x.ends {
				pred.Kind = cabi.PredEnds
				for i := range p.cond.releases.n {
					r := p.cond.releases.at(i)
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
	for a := range p.arrivals {
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
	for a := range p.arrivals {
		count[p.of(a).stream]++
	}
	for uid, n := range count {
		l.at.grow(uid, n)
	}
	for a := range p.arrivals {
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
	passed := make([]uint64, 0, len(p.pass))
	for a := range p.passings {
		if !a.late {
			passed = append(passed, a.passed)
			a.rank = uint32(len(passed))
		}
	}
	for a := range p.arrivals {
		if a.events > 0 {
			a.before = uint32(upTo(passed, a.slept))
		}
	}
}

// units tries the predicate that each release lets `unit` more pass, and `start` at the beginning.
func (p *loop) units(let int) (unit, start int64, ok bool) {
	passes := int64(0)
	for a := range p.arrivals {
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
	for a := range p.arrivals {
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
	for a := range p.arrivals {
		a.free = false
	}
	passed, released, free := int64(0), 0, 0
	for a := range p.passings {
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
// alone takes things of which each is as good as the other. ends: see there.
func (p *loop) turns() (count int64, ends bool) {
	n, several := uint32(0), false
	var one uint32
	for a := range p.passings {
		if !a.late && !a.free {
			thread := p.of(a).thread
			if n == 0 {
				one = thread
			}
			several = several || thread != one
			n++
			a.turn = n
		}
	}
	if ends = p.ends(); !ends && (!several || p.each()) {
		return 0, false
	}
	return int64(n), ends
}

// each reports whether all threads pass the same number of times, and not just once or twice: then a thread's own count says how
// often, and not how much work there is for all.
func (p *loop) each() bool {
	var by []int
	for a := range p.arrivals {
		if !a.late {
			t := int(p.of(a).thread)
			if t >= len(by) {
				by = append(by, make([]int, t+1-len(by))...)
			}
			by[t]++
		}
	}
	n := 0
	for _, k := range by {
		if k != 0 && (k < 3 || n != 0 && k != n) {
			return false
		}
		n = max(n, k)
	}
	return true
}

// ends reports whether several threads release here, and each but once: as threads do that end, and are then joined.
func (p *loop) ends() bool {
	makers := map[uint32]bool{}
	for i := range p.cond.releases.n {
		r := p.cond.releases.at(i)
		if _, ok := slices.BinarySearch(p.places, r.pos); ok {
			if makers[r.thread] {
				return false
			}
			makers[r.thread] = true
		}
	}
	return len(makers) > 1
}

// needs is for each arrival, in the order in which they came, how many releases it is known to have needed; of one that waited in vain,
// as many as would have woken it.
func (p *loop) needs() []uint64 {
	var rows []uint64
	most := int64(0)
	for a := range p.arrivals {
		if a.events > 0 && !a.late {
			most = max(most, min(p.below(a.slept)+1, p.below(a.passed)))
		}
		if a.late {
			rows = append(rows, uint64(p.below(a.slept)+1))
		} else {
			rows = append(rows, uint64(min(most, p.below(a.passed))))
		}
	}
	return rows
}

// barrier tries whether of each `unit` threads that take the mutex at one place the last one releases the others.
func (l *loops) barrier(p *loop) (unit int, order []uint32) {
	if len(p.came) < 2 || len(p.places) < 2 {
		return 0, nil
	}
	sections := &p.m.sections
	site := p.first().site(l)
	number := p.cond.number + 1
	signals := func(of *section) bool {
		return slices.ContainsFunc(l.shapes[of.shape], func(s shapeStep) bool { return s.cond == number && !s.wait })
	}
	waits := make([]bool, sections.n)
	for a := range p.arrivals {
		waits[a.x] = true
		if x := p.of(a); x.site(l) != site || len(l.shapes[x.shape]) < 2 || a.at != x.lock+uint64(l.shapes[x.shape][1].after) {
			return 0, nil
		}
	}
	releases, last := 0, []bool{}
	for _, i := range p.m.order {
		x := sections.at(int(i))
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
		order, last = append(order, i), append(last, s)
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

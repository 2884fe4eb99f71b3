package links

import (
	"slices"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// objectKey names an object of synchronisation: a private one by its process as well, as a forked child goes on with its
// parent's names.
type objectKey struct {
	proc uint32 // and one; 0: shared
	obj  trace.Object
}

// object is what is known of an object of synchronisation.
type object struct {
	takers []taker // who have taken it, or will, and have not let go
	rel    release // the last one
	relSeq uint64
	epoch  uint64 // rwlock: the writer whose readers have let go so far
	left   uint64 // how many of them
	rank   uint64 // barrier: its generation; once: the run that is over
	count  int64  // barrier: of how many; 0: not known
}

// taker is an event that takes an object, by its place in the order.
type taker struct {
	p      Point
	seq    uint64 // readers: that of the writer before
	mutex  objectKey
	depth  uint32
	reads  int64 // writers: how many readers it waited for
	waited bool
	reader bool
}

// release is an event that lets go.
type release struct {
	p, held Point
	obj     trace.Object
	at      uint64
	set     bool
}

type recent struct {
	key objectKey
	o   *object
}

func (k *Tracker) key(s *thread, o trace.Object) objectKey {
	if len(k.shared) > 0 && k.shared[o] {
		return objectKey{0, o}
	}
	return objectKey{s.th.Proc.Number + 1, o}
}

// object finds what is known of it, or makes it known.
func (k *Tracker) object(key objectKey) *object {
	c := &k.recent[(key.obj.Num^uint64(key.obj.UID)<<3^uint64(key.proc)<<5)%uint64(len(k.recent))]
	if c.o != nil && c.key == key {
		return c.o
	}
	o := k.objects[key]
	if o == nil {
		if len(k.objects) >= maxObjects {
			k.forgot += uint64(len(k.objects))
			clear(k.objects)
			clear(k.recent[:])
		}
		o = &object{}
		k.objects[key] = o
	}
	*c = recent{key, o}
	return o
}

// anew begins an object's life, or ends it.
func (k *Tracker) anew(s *thread, r *trace.Record) {
	if r.Obj.None() || r.Ret != 0 {
		return
	}
	o := k.object(k.key(s, r.Obj))
	*o = object{takers: o.takers[:0]}
	if r.Row.Obj == "barrier" && r.Row.F[1] == "count" {
		o.count = r.F[1]
	}
}

// mine is the thread's own entry, the one that it let go of last first; -1: none.
func (o *object) mine(th *trace.Thread) int {
	for i := len(o.takers) - 1; i >= 0; i-- {
		if o.takers[i].p.Thread == th {
			return i
		}
	}
	return -1
}

// take adds who takes the object, when it waited and for whom is known: with its link.
func (k *Tracker) take(o *object, t taker) {
	if t.waited && o.rel.set && o.relSeq+1 == t.seq && !t.reader && o.rel.at <= t.p.End+k.slack && o.rel.at+k.slack >= t.p.Begin {
		if t.reads == 0 || o.epoch == o.relSeq && o.left == uint64(t.reads) {
			k.lets(&o.rel, t.p)
			t.waited = false
		}
	}
	if t.waited && t.reader && o.rel.set && o.relSeq == t.seq && o.left == 0 && o.rel.at+k.slack >= t.p.Begin && o.rel.at <= t.p.End+k.slack {
		k.lets(&o.rel, t.p)
		t.waited = false
	}
	if len(o.takers) >= maxEntries {
		k.forgot++
		o.takers = slices.Delete(o.takers, 0, 1)
	}
	o.takers = append(o.takers, t)
}

func (k *Tracker) lets(rel *release, to Point) {
	k.link(Lock, rel.p, rel.at, to, to.End, rel.obj).Held = rel.held
}

func waited(r *trace.Record) bool { return r.Note&cabi.NoteWaited != 0 && r.Timed }

func (k *Tracker) lock(s *thread, r *trace.Record) {
	if r.Seq == 0 || r.Obj.None() {
		return // it did not get it
	}
	o := k.object(k.key(s, r.Obj))
	p := pointOf(r)
	// A thread that had it and has it again with nobody in between took it twice.
	if i := o.mine(s.th); i >= 0 {
		if t := &o.takers[i]; t.seq+1 == r.Seq && !t.reader && !waited(r) {
			t.seq = r.Seq
			t.depth++
			return
		}
		o.takers = slices.Delete(o.takers, i, i+1)
	}
	t := taker{p: p, seq: r.Seq, waited: waited(r)}
	if r.Row.Obj == "rwlock" {
		t.reads = r.F[1]
	}
	k.take(o, t)
}

func (k *Tracker) readLock(s *thread, r *trace.Record) {
	if r.Ret != 0 || r.Obj.None() {
		return
	}
	o := k.object(k.key(s, r.Obj))
	if i := o.mine(s.th); i >= 0 && o.takers[i].reader && o.takers[i].seq == uint64(r.F[1]) {
		o.takers[i].depth++
		return
	}
	k.take(o, taker{p: pointOf(r), seq: uint64(r.F[1]), waited: waited(r), reader: true})
}

func (k *Tracker) unlock(s *thread, r *trace.Record) {
	if r.Obj.None() || r.Ret != 0 && r.Row.Ret != trace.RetVoid {
		return
	}
	k.letGo(k.object(k.key(s, r.Obj)), r.Obj, s, pointOf(r), r.Begin)
}

// letGo is what a release does: who had waited for it goes on.
func (k *Tracker) letGo(o *object, obj trace.Object, s *thread, by Point, at uint64) {
	i := o.mine(s.th)
	if i < 0 {
		return // taken before the recording began
	}
	t := &o.takers[i]
	if t.reader {
		if o.epoch != t.seq {
			o.epoch, o.left = t.seq, 0
		}
		o.left++ // a lock for reading taken twice counts twice
	}
	if t.depth > 0 {
		t.depth--
		return
	}
	rel := release{p: by, held: t.p, obj: obj, at: at, set: true}
	seq, reader := t.seq, t.reader
	o.takers = slices.Delete(o.takers, i, i+1)
	k.released(o, rel, seq, reader)
}

// released links a release at a place in the order with those who waited for it.
func (k *Tracker) released(o *object, rel release, seq uint64, reader bool) {
	if !reader && seq >= o.epoch {
		o.epoch, o.left = seq, 0
	}
	if !o.rel.set || seq >= o.relSeq {
		o.rel, o.relSeq = rel, seq
	}
	for i := range o.takers {
		t := &o.takers[i]
		if !t.waited || t.p.End+k.slack < rel.at {
			continue
		}
		switch {
		case t.reader:
			if reader || t.seq != seq {
				continue
			}
		case t.seq != seq+1 || uint64(t.reads) != o.left && t.reads != 0:
			continue
		}
		t.waited = false
		k.lets(&rel, t.p)
	}
}

// stream is a call that locks its stream and lets go of it at its end.
func (k *Tracker) stream(s *thread, r *trace.Record) {
	if r.Seq == 0 || r.Obj.None() {
		return
	}
	o := k.object(k.key(s, r.Obj))
	if i := o.mine(s.th); i >= 0 && o.takers[i].seq+1 == r.Seq && !waited(r) {
		o.takers[i].seq = r.Seq // inside flockfile
		return
	}
	p := pointOf(r)
	k.take(o, taker{p: p, seq: r.Seq, waited: waited(r)})
	if i := len(o.takers) - 1; !o.takers[i].waited {
		o.takers = o.takers[:i]
		k.released(o, release{p: p, held: p, obj: r.Obj, at: r.End, set: true}, r.Seq, false)
		return
	}
	// Who let it in is not known yet; its own release is, so it stands as one who has and as one who had.
	k.released(o, release{p: p, held: p, obj: r.Obj, at: r.End, set: true}, r.Seq, false)
}

// Conditions. A wait lets go of its mutex when it begins, and takes it again, at its place in the mutex's order, before it
// ends. When it was woken is the earliest that it can have waited for the mutex.

func (k *Tracker) condWait(s *thread, r *trace.Record) {
	if r.Obj.None() {
		return
	}
	p := pointOf(r)
	m := trace.Object{UID: uint32(uint64(r.F[1]) >> 40), Num: uint64(r.F[1]) & (1<<40 - 1)}
	mk := k.key(s, m)
	if !m.None() {
		o := k.object(mk)
		k.letGo(o, m, s, p, r.Begin)
		if r.Seq != 0 {
			o.takers = append(o.takers, taker{p: p, seq: r.Seq})
			if len(o.takers) > maxEntries {
				k.forgot++
				o.takers = slices.Delete(o.takers, 0, 1)
			}
		}
	}
	if r.Ret != 0 {
		return // its time was up
	}
	c := k.object(k.key(s, r.Obj))
	c.takers = append(c.takers, taker{p: p, mutex: mk, seq: r.Seq})
	if len(c.takers) > maxEntries {
		k.forgot++
		c.takers = slices.Delete(c.takers, 0, 1)
	}
}

func (k *Tracker) signal(s *thread, r *trace.Record)    { k.wake(s, r, 1) }
func (k *Tracker) broadcast(s *thread, r *trace.Record) { k.wake(s, r, 1<<30) }

func (k *Tracker) wake(s *thread, r *trace.Record, most int) {
	if r.Obj.None() {
		return
	}
	c := k.object(k.key(s, r.Obj))
	c.takers = slices.DeleteFunc(c.takers, func(t taker) bool { return t.p.End+k.slack < r.Begin })
	for ; most > 0 && len(c.takers) > 0; most-- {
		first := 0
		for i := range c.takers {
			if c.takers[i].p.End < c.takers[first].p.End {
				first = i
			}
		}
		t := c.takers[first]
		c.takers = slices.Delete(c.takers, first, first+1)
		k.link(Wake, pointOf(r), r.Begin, t.p, t.p.End, r.Obj)
		// From now on it waits for its mutex.
		o := k.object(t.mutex)
		for i := range o.takers {
			if x := &o.takers[i]; x.p.Thread == t.p.Thread && x.p.N == t.p.N {
				x.waited = true
			}
		}
	}
}

// Semaphores: a post has its place before who it lets in has its own.

func (k *Tracker) semWait(s *thread, r *trace.Record) {
	if r.Ret != 0 || r.Seq == 0 || r.Obj.None() || !waited(r) {
		return
	}
	o := k.object(k.key(s, r.Obj))
	p := pointOf(r)
	if o.rel.set && o.relSeq < r.Seq && o.rel.at+k.slack >= r.Begin && o.rel.at <= r.End+k.slack && o.relSeq+1 == r.Seq {
		k.link(Post, o.rel.p, o.rel.at, p, r.End, r.Obj)
		return
	}
	if len(o.takers) >= maxEntries {
		k.forgot++
		o.takers = slices.Delete(o.takers, 0, 1)
	}
	o.takers = append(o.takers, taker{p: p, seq: r.Seq})
}

func (k *Tracker) semPost(s *thread, r *trace.Record) {
	if r.Ret != 0 || r.Seq == 0 || r.Obj.None() {
		return
	}
	o := k.object(k.key(s, r.Obj))
	o.takers = slices.DeleteFunc(o.takers, func(t taker) bool { return t.p.End+k.slack < r.Begin })
	next := -1
	for i := range o.takers {
		if t := &o.takers[i]; t.seq > r.Seq && (next < 0 || t.seq < o.takers[next].seq) {
			next = i
		}
	}
	p := pointOf(r)
	o.rel, o.relSeq = release{p: p, at: r.Begin, set: next < 0}, r.Seq
	if next >= 0 {
		t := o.takers[next].p
		o.takers = slices.Delete(o.takers, next, next+1)
		k.link(Post, p, r.Begin, t, t.End, r.Obj)
	}
}

// semOp is an operation on a set, told by its first part.
func (k *Tracker) semOp(s *thread, r *trace.Record) {
	if r.F[2] > 0 {
		k.semPost(s, r)
	} else if r.Timed {
		w := *r
		w.Note |= cabi.NoteWaited
		k.semWait(s, &w)
	}
}

// barrier gathers the arrivals of a generation, whose last one lets the others go.
func (k *Tracker) barrier(s *thread, r *trace.Record) {
	if r.Seq == 0 || r.Obj.None() {
		return
	}
	o := k.object(k.key(s, r.Obj))
	if g := uint64(r.F[1]); g != o.rank {
		k.generation(o)
		o.rank = g
	}
	if len(o.takers) >= maxEntries {
		k.forgot++
		return
	}
	o.takers = append(o.takers, taker{p: pointOf(r), seq: r.Seq})
	if o.count > 0 && int64(len(o.takers)) >= o.count {
		k.generation(o)
	}
}

func (k *Tracker) generation(o *object) {
	if len(o.takers) > 1 {
		last := 0
		for i := range o.takers {
			if o.takers[i].seq > o.takers[last].seq {
				last = i
			}
		}
		from := o.takers[last].p
		for i := range o.takers {
			if to := o.takers[i].p; i != last && to.End+k.slack >= from.Begin {
				k.link(Barrier, from, from.Begin, to, to.End, from.Obj)
			}
		}
	}
	o.takers = o.takers[:0]
}

// once: f2 is which run of the routine it was or waited for, f3 whether it ran it. Its runner's event begins after what
// the routine did, so the others' may have come before or come yet.
func (k *Tracker) once(s *thread, r *trace.Record) {
	if r.Obj.None() {
		return
	}
	o := k.object(k.key(s, r.Obj))
	if r.F[2] != 0 {
		k.ran(o, release{p: pointOf(r), at: r.Begin, set: true}, uint64(r.F[1]))
	} else if r.Timed {
		k.awaits(o, pointOf(r), uint64(r.F[1]))
	}
}

// guard: f2 is which initialisation it does (ret 1), or waited for.
func (k *Tracker) guard(s *thread, r *trace.Record) {
	if r.Obj.None() {
		return
	}
	o := k.object(k.key(s, r.Obj))
	if r.Ret == 1 {
		o.rank = uint64(r.F[1])
	} else if waited(r) {
		k.awaits(o, pointOf(r), uint64(r.F[1]))
	}
}

func (k *Tracker) guarded(s *thread, r *trace.Record) {
	if o := k.object(k.key(s, r.Obj)); !r.Obj.None() {
		k.ran(o, release{p: pointOf(r), at: r.Begin, set: true}, o.rank)
	}
}

func (k *Tracker) ran(o *object, rel release, run uint64) {
	o.rel, o.relSeq = rel, run
	for _, t := range o.takers {
		if t.seq == run && t.p.End+k.slack >= rel.at {
			k.link(Once, rel.p, rel.at, t.p, t.p.End, rel.p.Obj)
		}
	}
	o.takers = o.takers[:0]
}

func (k *Tracker) awaits(o *object, p Point, run uint64) {
	if o.rel.set && o.relSeq == run {
		if o.rel.p.End+k.slack >= p.Begin && o.rel.at <= p.End+k.slack {
			k.link(Once, o.rel.p, o.rel.at, p, p.End, p.Obj)
		}
		return
	}
	if len(o.takers) < maxEntries {
		o.takers = append(o.takers, taker{p: p, seq: run})
	} else {
		k.forgot++
	}
}

package demand

import (
	"cmp"
	"slices"
)

// places keeps what is known of events. It is filled first, in any order, and then read, about in each thread's order: a map of
// millions of places would be met at random.
type places[T any] struct {
	by   map[uint32]*placed[T]
	last *placed[T] // that was asked for
}

type placed[T any] struct {
	uid   uint32
	list  []atPlace[T]
	ready bool
	next  int // where it was read last
}

type atPlace[T any] struct {
	n uint64
	v T
}

func (p *places[T]) of(uid uint32) *placed[T] {
	l := p.known(uid)
	if l == nil {
		if p.by == nil {
			p.by = map[uint32]*placed[T]{}
		}
		l = &placed[T]{uid: uid}
		p.by[uid] = l
	}
	return l
}

// known are the places of a thread; nil: there are none.
func (p *places[T]) known(uid uint32) *placed[T] {
	if p.last != nil && p.last.uid == uid {
		return p.last
	}
	l := p.by[uid]
	if l != nil {
		p.last = l
	}
	return l
}

// grow makes room for n more places of a thread.
func (p *places[T]) grow(uid uint32, n int) {
	l := p.of(uid)
	l.list = slices.Grow(l.list, n)
}

// add keeps one more value of a place.
func (p *places[T]) add(at place, v T) {
	l := p.of(at.uid)
	l.list, l.ready = append(l.list, atPlace[T]{at.n, v}), false
}

// all are the values of a place, in the order in which they were added.
func (p *places[T]) all(at place) []atPlace[T] {
	l := p.known(at.uid)
	if l == nil {
		return nil
	}
	if !l.ready {
		byNumber := func(a, b atPlace[T]) int { return cmp.Compare(a.n, b.n) }
		if !slices.IsSortedFunc(l.list, byNumber) {
			slices.SortStableFunc(l.list, byNumber)
		}
		l.ready, l.next = true, 0
	}
	// Mostly it is the next one, or lies before that: what was read last is not over yet.
	if i := l.next; i > 0 && l.list[i-1].n >= at.n || i < len(l.list) && l.list[i].n < at.n {
		l.next, _ = slices.BinarySearchFunc(l.list, at.n, func(a atPlace[T], n uint64) int { return cmp.Compare(a.n, n) })
	}
	end := l.next
	for end < len(l.list) && l.list[end].n == at.n {
		end++
	}
	found := l.list[l.next:end]
	l.next = end
	return found
}

// get is the value that was added last.
func (p *places[T]) get(at place) (v T, ok bool) {
	if found := p.all(at); len(found) > 0 {
		return found[len(found)-1].v, true
	}
	return v, false
}

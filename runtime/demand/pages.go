package demand

import (
	"cmp"
	"slices"
)

// pages is a list that grows without being copied: there may be millions of sections and signals.
type pages[T any] struct {
	full [][]T
	n    int
}

// pageLen is how many things a page has; the first one grows up to that.
const pageLen = 1 << 13

func (p *pages[T]) add(v T) {
	last := len(p.full) - 1
	if last < 0 || len(p.full[last]) == pageLen {
		room := 0
		if last++; last > 0 {
			room = pageLen
		}
		p.full = append(p.full, make([]T, 0, room))
	}
	p.full[last] = append(p.full[last], v)
	p.n++
}

func (p *pages[T]) at(i int) *T { return &p.full[i/pageLen][i%pageLen] }

// inOrder is the order of n things by a number of each; those of one number stay as they are. The numbers are places in orders, of
// which few are left out.
func inOrder(n int, number func(i int) uint64) []uint32 {
	order := make([]uint32, n)
	if n == 0 {
		return order
	}
	least := number(0)
	most, last, sorted := least, least, true
	order[0] = 0
	for i := 1; i < n; i++ {
		order[i] = uint32(i)
		v := number(i)
		least, most = min(least, v), max(most, v)
		sorted = sorted && v >= last
		last = v
	}
	if sorted {
		return order
	}
	if most-least > 4*uint64(n)+1024 {
		slices.SortStableFunc(order, func(a, b uint32) int { return cmp.Compare(number(int(a)), number(int(b))) })
		return order
	}
	// Counted: how many have each number, and so where those begin.
	begin := make([]uint32, most-least+1)
	for i := range n {
		begin[number(i)-least]++
	}
	sum := uint32(0)
	for i, k := range begin {
		begin[i] = sum
		sum += k
	}
	for i := range n {
		k := &begin[number(i)-least]
		order[*k] = uint32(i)
		*k++
	}
	return order
}

package demand

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestPages(t *testing.T) {
	var p pages[int]
	for i := range 3*pageLen + 1 {
		p.add(i * 7)
	}
	for i := range p.n {
		if *p.at(i) != i*7 {
			t.Fatalf("%d is %d", i, *p.at(i))
		}
	}
	if p.n != 3*pageLen+1 || len(p.full) != 4 {
		t.Errorf("%d in %d pages", p.n, len(p.full))
	}
}

// Things come in the order of their numbers, whether those are sorted, near to each other or far apart; those of one number stay.
func TestInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, wide := range []uint64{1, 3, 50, 5000, 1 << 40, 1 << 63} {
		for _, n := range []int{0, 1, 2, 3, 40, 3000} {
			numbers := make([]uint64, n)
			for i := range numbers {
				numbers[i] = 1<<62 + r.Uint64N(wide)
			}
			for range 2 {
				want := make([]uint32, n)
				for i := range want {
					want[i] = uint32(i)
				}
				slices.SortStableFunc(want, func(a, b uint32) int { return cmp.Compare(numbers[a], numbers[b]) })
				if got := inOrder(n, func(i int) uint64 { return numbers[i] }); !slices.Equal(got, want) {
					t.Fatalf("%d up to %d: %v, not %v", n, wide, got, want)
				}
				slices.Sort(numbers)
			}
		}
	}
}

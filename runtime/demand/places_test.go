package demand

import (
	"math/rand/v2"
	"testing"
)

// Places are found in any order of asking, whatever the order of adding; the last value of one stands.
func TestPlaces(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var p places[int]
		want := map[place][]int{}
		for i := range 1 + r.IntN(200) {
			at := place{uint32(r.IntN(3)), uint64(r.IntN(100))}
			p.add(at, i)
			want[at] = append(want[at], i)
		}
		ask := func(at place) {
			got, ok := p.get(at)
			all := p.all(at)
			w := want[at]
			if ok != (len(w) > 0) || len(all) != len(w) || ok && got != w[len(w)-1] {
				t.Fatalf("%v: %d %v %v, not %v", at, got, ok, all, w)
			}
		}
		for n := range 100 {
			for uid := range 4 {
				ask(place{uint32(uid), uint64(n)})
			}
		}
		for range 200 {
			ask(place{uint32(r.IntN(4)), uint64(r.IntN(110))})
		}
	}
}

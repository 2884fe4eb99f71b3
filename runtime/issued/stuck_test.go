package issued

import (
	"slices"
	"testing"

	"prophet/cabi"
)

func TestCycleOf(t *testing.T) {
	for _, x := range []struct {
		on    []uint64 // plus 1
		cycle []int
	}{{nil, nil}, {[]uint64{0, 0}, nil}, {[]uint64{2, 1}, []int{0, 1}}, {[]uint64{1}, []int{0}}, {[]uint64{2, 3, 4, 2}, []int{1, 2, 3}},
		{[]uint64{2, 3, 0}, nil}, {[]uint64{2, 0, 4, 3}, []int{2, 3}}, {[]uint64{99}, nil}, {[]uint64{2, 3, 0, 2, 6, 5}, []int{4, 5}}} {
		var threads []cabi.ProgResultThread
		for _, on := range x.on {
			threads = append(threads, cabi.ProgResultThread{On: on})
		}
		if got := cycleOf(threads); !slices.Equal(got, x.cycle) {
			t.Errorf("%v: %v, not %v", x.on, got, x.cycle)
		}
	}
}

// One lock that two wait for has gone from the one to the other while they were looked at, and who has what it waits for has just got it.
func TestLasts(t *testing.T) {
	for _, x := range []struct {
		cycle []Waiting
		want  bool
	}{
		{[]Waiting{{Thread: 2, On: 3, Object: 1}, {Thread: 3, On: 2, Object: 4}}, true},
		{[]Waiting{{Thread: 2, On: 3, Object: 1}, {Thread: 3, On: 2, Object: 1}}, false},
		{[]Waiting{{Thread: 2, On: 3, Object: 1}, {Thread: 3, On: 2, Join: true}}, true},
		{[]Waiting{{Thread: 3, On: 3}}, false},
		{nil, false},
	} {
		if got := lasts(x.cycle); got != x.want {
			t.Errorf("%v: %v", x.cycle, got)
		}
	}
}

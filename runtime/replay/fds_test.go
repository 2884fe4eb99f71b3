package replay

import (
	"reflect"
	"testing"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// Numbers that one thread alone makes and closes need no order; those of several get it: who closes what another made comes after
// that, and a thread that was held up (11, made by 2 before 1 closed it) made what it made when that was free.
func TestOrdered(t *testing.T) {
	p := &trace.Proc{Number: 0}
	a, b := &trace.Thread{UID: 1, Proc: p}, &trace.Thread{UID: 2, Proc: p}
	other := &trace.Thread{UID: 3, Proc: &trace.Proc{Number: 1}}
	all := map[uint32]*[]made{
		1: {{5, 9, 10, false}, {7, 19, 20, false}, {5, 21, 22, true}, {5, 29, 30, false}, {9, 39, 40, false}, {9, 43, 44, true}, {8, 45, 46, false}, {11, 100, 101, true}, {11, 102, 110, false}},
		2: {{5, 24, 25, false}, {5, 26, 27, true}, {9, 40, 41, false}, {7, 42, 43, true}, {5, 28, 45, true}, {5, 49, 50, false}, {11, 90, 120, false}},
		3: {{5, 0, 1, false}, {7, 1, 2, false}},
	}
	got := ordered([]*trace.Thread{a, b, other}, all)
	const closes = cabi.ReplayCloses
	want := map[uint32][]cabi.ReplayFd{
		1: {{FD: 5, Place: 0}, {FD: 7, Place: 0}, {FD: 5 | closes, Place: 1}, {FD: 5, Place: 2}, {FD: 9, Place: 0}, {FD: 9 | closes, Place: 2}, {FD: 11 | closes, Place: 1}, {FD: 11, Place: 1}},
		2: {{FD: 5, Place: 1}, {FD: 5 | closes, Place: 2}, {FD: 9, Place: 1}, {FD: 7 | closes, Place: 1}, {FD: 5 | closes, Place: 3}, {FD: 5, Place: 3}, {FD: 11, Place: 0}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Each call that makes descriptors is in the table by a name that there is.
func TestMakes(t *testing.T) {
	if len(makes) < 45 {
		t.Errorf("%d calls make descriptors: has a name changed?", len(makes))
	}
}

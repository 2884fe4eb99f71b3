package replay

import (
	"reflect"
	"testing"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// Numbers that one thread alone makes need no order; those that several make get it by the ends of their calls, and who closes
// what another made comes after that.
func TestOrdered(t *testing.T) {
	p := &trace.Proc{Number: 0}
	a, b := &trace.Thread{UID: 1, Proc: p}, &trace.Thread{UID: 2, Proc: p}
	other := &trace.Thread{UID: 3, Proc: &trace.Proc{Number: 1}}
	all := map[uint32]*[]made{
		1: {{5, 9, 10, false}, {7, 19, 20, false}, {5, 21, 22, true}, {5, 29, 30, false}, {9, 39, 40, false}, {9, 43, 44, true}},
		2: {{5, 24, 25, false}, {5, 26, 27, true}, {9, 40, 41, false}, {7, 42, 43, true}, {5, 28, 45, true}, {5, 49, 50, false}},
		3: {{5, 0, 1, false}, {7, 1, 2, false}},
	}
	got := ordered([]*trace.Thread{a, b, other}, all)
	want := map[uint32][]cabi.ReplayFd{
		1: {{FD: 5, Place: 0}, {FD: 5 | cabi.ReplayCloses, Place: 1}, {FD: 5, Place: 2}, {FD: 9, Place: 0}, {FD: 9 | cabi.ReplayCloses, Place: 2}},
		2: {{FD: 5, Place: 1}, {FD: 5 | cabi.ReplayCloses, Place: 2}, {FD: 9, Place: 1}, {FD: 5 | cabi.ReplayCloses, Place: 2}, {FD: 5, Place: 3}},
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

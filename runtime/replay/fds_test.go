package replay

import (
	"reflect"
	"testing"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// Numbers that one thread alone makes need no order; those that several make get it by the ends of their calls.
func TestOrdered(t *testing.T) {
	p := &trace.Proc{Number: 0}
	a, b := &trace.Thread{UID: 1, Proc: p}, &trace.Thread{UID: 2, Proc: p}
	other := &trace.Thread{UID: 3, Proc: &trace.Proc{Number: 1}}
	all := map[uint32]*[]made{
		1: {{5, 10}, {7, 20}, {5, 30}, {9, 40}},
		2: {{5, 25}, {9, 41}, {5, 50}},
		3: {{5, 1}, {7, 2}},
	}
	got := ordered([]*trace.Thread{a, b, other}, all)
	want := map[uint32][]cabi.ReplayFd{
		1: {{FD: 5, Place: 0}, {FD: 5, Place: 2}, {FD: 9, Place: 0}},
		2: {{FD: 5, Place: 1}, {FD: 9, Place: 1}, {FD: 5, Place: 3}},
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

package demand

import (
	"testing"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// Who reads where others have written since is told so, once; what the process wrote itself it knows.
func TestLooks(t *testing.T) {
	l := looks{versions: map[filePart]uint32{}}
	root := &group{}
	a, b := &group{n: 1, root: root}, &group{n: 2, root: root}
	n := uint64(0)
	read := func(g *group, at, bytes int64) (known, moved bool) {
		n++
		l.read(g, 7, at, bytes, place{1, n})
		got, _ := l.found.get(place{1, n})
		return got.known, got.moved
	}
	visited := 0
	for _, x := range []struct {
		g            *group
		write        bool
		at, bytes    int64
		known, moved bool
	}{
		{a, false, 0, 100, false, false}, {a, false, 24, 16, true, false}, {b, false, 24, 16, false, false}, {b, true, 0, 4096, false, false},
		{b, false, 24, 16, true, false}, {a, false, 4096, 16, false, false}, {a, false, 4000, 200, true, true}, {a, false, 24, 16, true, false},
		{a, true, 1 << 40, 1 << 40, false, false}, {a, false, -1, 5, false, false},
	} {
		visited++
		if x.write {
			l.wrote(x.g, 7, x.at, x.bytes)
			continue
		}
		if known, moved := read(x.g, x.at, x.bytes); known != x.known || moved != x.moved {
			t.Errorf("read %d: known %v, moved %v", visited, known, moved)
		}
	}
	if visited != 10 {
		t.Errorf("%d steps", visited)
	}
	// How often it was written is what others find there, too.
	l.wrote(a, 7, 0, 1)
	read(b, 24, 16)
	if got, _ := l.found.get(place{1, n}); got.version != 2 || !got.moved {
		t.Errorf("%+v", got)
	}
	for _, moved := range []int64{0, cabi.ResultMoved} {
		if want := -moved - 5<<cabi.ResultBits; cabi.Kind(want) != -moved || cabi.VersionOf(want) != 5 {
			t.Errorf("%d: %d, version %d", want, cabi.Kind(want), cabi.VersionOf(want))
		}
	}
}

// What several processes read and write at places is told apart by its version, of what one has to itself others know nothing.
func TestSeveral(t *testing.T) {
	a, b := &group{n: 1}, &group{n: 2}
	var f fileState
	for i, x := range []struct {
		g               *group
		writes, several bool
	}{{b, false, false}, {a, true, false}, {a, false, false}, {a, true, false}, {b, false, true}, {a, false, true}} {
		if f.by(x.g, x.writes); f.several != x.several {
			t.Errorf("step %d: %v", i, f.several)
		}
	}
}

// Demand of what an issue took is that target's already: it is not scaled again.
func TestPrefixIsScaledOnce(t *testing.T) {
	c := &compiler{info: &Info{}, opt: Options{Scale: 3}, t: &trace.Trace{Meta: &trace.Meta{Issued: &trace.Issued{Scale: 2}}}}
	e := emitter{compiler: c}
	for prefix, want := range map[bool]float64{true: 1.5, false: 3} {
		if got := e.scale(&pending{prefix: prefix}); got != want {
			t.Errorf("scaled by %v, not %v", got, want)
		}
	}
}

// Ways on are kept once for each context: of the last operations, and of how long was slept between tries.
func TestPast(t *testing.T) {
	sleep := func(us int64) cabi.ProgOp { return cabi.ProgOp{Code: cabi.OpSleep, A: us * 1000} }
	try := cabi.ProgOp{Code: cabi.OpTrylock, Flags: cabi.OpChoice, Site: 3, Want: -ebusy}
	run := func(before int, ops ...cabi.ProgOp) (p past) {
		for i := range before {
			p.add(&cabi.ProgOp{Code: cabi.OpFstat, Obj: uint32(i)})
		}
		for range pastLength {
			p.add(&cabi.ProgOp{Code: cabi.OpStat})
		}
		for i := range ops {
			p.add(&ops[i])
		}
		return p
	}
	a, b, c := run(0, try, sleep(1), try), run(9, try, sleep(1), cabi.ProgOp{Code: cabi.OpCPU}, try), run(0, try, sleep(2), try)
	if a.hash != b.hash || a.slept != b.slept {
		t.Error("what is longer ago, or no part of a context, counts")
	}
	if a.hash == c.hash || a.slept == c.slept {
		t.Error("a longer sleep is another context")
	}
	if d := run(0, try, sleep(1), cabi.ProgOp{Code: cabi.OpPwrite}, try, sleep(1)); d.slept == run(0, try, sleep(1), try, sleep(1)).slept {
		t.Error("work between tries does not count")
	}
}

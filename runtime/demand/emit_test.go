package demand

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// What a thread did not run is missing from its longest gaps; the others keep their length.
func TestLevel(t *testing.T) {
	visited := 0
	for _, x := range []struct {
		gaps []int64
		lost int64
		want []int64
	}{
		{[]int64{30, 40, 20}, 0, []int64{30, 40, 20}},
		{[]int64{30, 3000, 20, 40}, 2960, []int64{30, 40, 20, 40}},
		{[]int64{30, 3000, 20, 2000}, 4900, []int64{30, 50, 20, 50}},
		{[]int64{0, 0, 10, 10}, 20, []int64{0, 0, 0, 0}},
		{[]int64{7}, 3, []int64{4}},
	} {
		visited++
		e := emitter{}
		for _, g := range x.gaps {
			e.put(&pending{gap: g})
		}
		level := e.level(x.lost)
		var got []int64
		for _, w := range e.window {
			got = append(got, min(w.gap, level))
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%v without %d: %v, not %v", x.gaps, x.lost, got, x.want)
		}
	}
	if visited != 5 {
		t.Errorf("%d cases", visited)
	}
}

// What a thread lost is sought where gaps are far longer than usual, as far as its CPU time allows; what that does not explain is
// missing from the longest gaps.
func TestLose(t *testing.T) {
	const us = 1000
	visited := 0
	for _, x := range []struct {
		gaps      []int64 // each with 2 us as usual
		low, high int64
		want      []int64
	}{
		{[]int64{2 * us, 3 * us, 400 * us, 2 * us}, 300 * us, 500 * us, []int64{2 * us, 3 * us, 2 * us, 2 * us}},
		{[]int64{2 * us, 3 * us, 400 * us, 2 * us}, 0, 199 * us, []int64{2 * us, 3 * us, 201 * us, 2 * us}},
		{[]int64{2 * us, 3 * us, 400 * us, 2 * us}, 399 * us, 399 * us, []int64{2 * us, 2 * us, 2 * us, 2 * us}},
		{[]int64{2 * us, 5 * us, 9 * us, 2 * us}, 0, 50 * us, []int64{2 * us, 5 * us, 9 * us, 2 * us}},
		{[]int64{2 * us, 5 * us, 9 * us, 2 * us}, 8 * us, 50 * us, []int64{2 * us, 3 * us, 3 * us, 2 * us}},
	} {
		visited++
		e := emitter{}
		for _, g := range x.gaps {
			e.put(&pending{gap: g, usual: 2 * us})
		}
		e.lose(x.low, x.high)
		var got []int64
		for _, w := range e.window {
			got = append(got, w.gap)
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%v without %d to %d: %v, not %v", x.gaps, x.low, x.high, got, x.want)
		}
	}
	if visited != 5 {
		t.Errorf("%d cases", visited)
	}
}

// Of the time up to a thread's first reading of its CPU time, it ran no longer than that says.
func TestFirstSample(t *testing.T) {
	c := &compiler{info: &Info{}, opt: Options{Scale: 1}}
	g := &group{}
	e := emitter{compiler: c, th: &thread{group: g}, out: &opWriter{b: newBehind(io.Discard)}}
	defer e.out.b.end()
	g.main, g.parent = e.th, &group{}
	e.put(&pending{ProgOp: cabi.ProgOp{Code: cabi.OpCPU}, gap: 1e9, usual: math.MaxInt64 / 4})
	if err := e.sample(1e8); err != nil {
		t.Fatal(err)
	}
	e.put(&pending{ProgOp: cabi.ProgOp{Code: cabi.OpCPU}, gap: 1e9, usual: math.MaxInt64 / 4})
	if err := e.sample(3e8); err != nil {
		t.Fatal(err)
	}
	if got := c.info.CPU; got != 300*time.Millisecond {
		t.Errorf("%v of CPU time, not 300ms", got)
	}
}

// How long an issue may take follows from how long home took, with its CPU time as the target has it.
func TestLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, cabi.Prog{Magic: cabi.ProgMagic, Version: cabi.ProgVersion, Home: 1e9, CPU: 2e9})
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for scale, want := range map[float64]time.Duration{0.5: 150 * time.Second, 4: 330 * time.Second, 1e12: 1000 * time.Hour} {
		if got, err := Limit(path, scale); err != nil || got != want {
			t.Errorf("x %g: %v, %v, want %v", scale, got, err, want)
		}
	}
}

// A try is the next one of those before it as long as what was tried for was not had and used since.
func TestTries(t *testing.T) {
	const choice, failed = cabi.OpChoice, -eAgain
	try := func(site uint32, want int64) cabi.ProgOp {
		return cabi.ProgOp{Code: cabi.OpFcntlLock, Flags: choice, Site: site, Want: want}
	}
	sleep, write := cabi.ProgOp{Code: cabi.OpSleep}, cabi.ProgOp{Code: cabi.OpPwrite}
	var p past
	var got []int64
	for _, o := range []cabi.ProgOp{sleep, try(1, failed), sleep, try(2, 0), try(1, failed), sleep, try(2, failed), sleep, try(2, 0), try(1, failed), sleep,
		try(1, 0), write, sleep, try(1, failed), sleep} {
		if o.Code == cabi.OpSleep {
			got = append(got, p.next())
		}
		p.add(&o)
	}
	if want := []int64{0, 1, 2, 3, 4, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	// What was got is used until it is given back: a database's client that has begun to write and then has to wait goes on counting.
	lock, unlock := cabi.ProgOp{Code: cabi.OpLock, Obj: 7}, cabi.ProgOp{Code: cabi.OpUnlock, Obj: 7}
	p, got = past{}, nil
	for _, o := range []cabi.ProgOp{try(1, failed), sleep, try(1, 0), lock, write, try(2, failed), sleep, try(2, 0), write, unlock, try(1, failed), sleep} {
		if o.Code == cabi.OpSleep {
			got = append(got, p.next())
		}
		p.add(&o)
	}
	if want := []int64{1, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("with a lock: %v, want %v", got, want)
	}
	// A file's lock is given back by two operations, of which the second one says which part of it that was: a try after that is the first one.
	part, free := cabi.ProgOp{Code: cabi.OpMore, A: 1, B: 1}, try(1, 0)
	free.A = lockNone
	p, got = past{}, nil
	for _, o := range []cabi.ProgOp{try(1, failed), part, sleep, try(1, failed), part, sleep, try(1, 0), part, write, free, part, try(1, failed), part, sleep} {
		if o.Code == cabi.OpSleep {
			got = append(got, p.next())
		}
		p.add(&o)
	}
	if want := []int64{1, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("with a lock of a part of a file: %v, want %v", got, want)
	}
}

// What the recorder did between two events, and its CPU time, are not the program's demand.
func TestOurs(t *testing.T) {
	c := &compiler{info: &Info{}, opt: Options{Scale: 1}, t: &trace.Trace{Clock: trace.NewClock(0, 1e9)}}
	g := &group{}
	e := emitter{compiler: c, th: &thread{group: g}, out: &opWriter{b: newBehind(io.Discard)}, cpuSeen: true}
	defer e.out.b.end()
	e.begin(0)
	for _, r := range []trace.Record{
		{Tag: cabi.TagOurs, Begin: 30e6, Nums: [8]uint64{20e6}},
		{Tag: cabi.TagCPU, Begin: 50e6, Nums: [8]uint64{50e6}},
		{Tag: cabi.TagOurs, Begin: 60e6, Nums: [8]uint64{10e6}},
		{Tag: cabi.TagCPU, Begin: 100e6, Nums: [8]uint64{80e6}}, // and for 20 ms it did not run
	} {
		if err := e.record(&trace.Thread{}, &r); err != nil {
			t.Fatal(err)
		}
	}
	e.gap(e.sampledAt, math.MaxInt64/4)
	if err := e.sample(e.sampledCPU); err != nil {
		t.Fatal(err)
	}
	if got := c.info.CPU; got != 50*time.Millisecond {
		t.Errorf("%v of CPU time, not 50ms", got)
	}
}

package graft

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// part is one half of a run as tests make it.
type part struct {
	start  uint64 // ticks
	hz     uint64
	bias   uint64 // of the module that calls are in
	uid    uint32 // of the first thread: others follow
	events []int  // of each thread
	cpu    uint64 // ns that each had used at its first event: 1 us more for each after that
	issued *trace.Issued
}

const step = 1000 // ticks from one event to the next

func (p part) write(tb testing.TB) string {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "t.prophet")
	m := trace.Meta{Format: cabi.FormatVersion, State: trace.StateComplete, Run: "0123456789abcdef", Command: []string{"p"}, TicksHz: p.hz, Issued: p.issued}
	if err := errors.Join(os.Mkdir(dir, 0o700), trace.WriteMeta(dir, &m)); err != nil {
		tb.Fatal(err)
	}
	w, err := trace.NewWriter(dir)
	if err != nil {
		tb.Fatal(err)
	}
	numbers := func(list ...uint64) (b []byte) {
		for _, v := range list {
			b = trace.AppendV(b, v)
		}
		return b
	}
	for i, n := range p.events {
		uid, now := p.uid+uint32(i), p.start
		e := trace.NewEncoder(uid, 0, now, w.Put)
		how := uint64(cabi.ThreadCreated)
		if i == 0 && p.uid == 1 {
			how = cabi.ThreadMain
			e.Control(cabi.TagProc, trace.AppendS(numbers(0, 0, 0, 0, 100, 1, cabi.ProcRoot), "/bin/p\x00/tmp\x00p"))
		}
		if i == 0 {
			e.Control(cabi.TagClock, numbers(now, 5_000_000, 1_700_000_000_000_000_000))
			e.Control(cabi.TagModule, trace.AppendS(trace.AppendS(numbers(p.bias, 0x10000, p.bias), "/bin/p"), "\x01"))
		}
		e.Control(cabi.TagThread, numbers(uint64(uid), 1, uint64(i), 100+uint64(uid), how))
		for k := range n {
			now += step
			e.Event(&trace.Record{Call: 1, PC: p.bias + 0x10, Obj: trace.Object{UID: 1, Num: 1}, Begin: now, Seq: uint64(k + 1)})
			e.At(cabi.TagCPU, now, numbers(p.cpu+uint64(k)*1000))
		}
		if err := e.Flush(cabi.ChunkLast); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return dir
}

func open(tb testing.TB, path string) *trace.Trace {
	tb.Helper()
	t, err := trace.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { t.Close() })
	return t
}

// told is what a thread's stream says.
type told struct {
	events  int
	stamps  []uint64
	sites   map[uint64]bool
	cpu     []uint64
	threads int
}

func read(tb testing.TB, t *trace.Trace, uid uint32) told {
	tb.Helper()
	x := told{sites: map[uint64]bool{}}
	th := t.ThreadByUID(uid)
	if th == nil {
		return x
	}
	it := t.Iter(th)
	var r trace.Record
	for {
		err := it.Next(&r)
		if err == io.EOF {
			return x
		}
		if err != nil {
			tb.Fatal(err)
		}
		switch r.Tag {
		case trace.TagEvent:
			x.events++
			x.stamps = append(x.stamps, r.Begin)
			x.sites[r.PC] = true
		case cabi.TagCPU:
			x.cpu = append(x.cpu, r.Nums[0])
		case cabi.TagThread:
			x.threads++
		}
	}
}

// A joined trace has each thread's events up to the cut, then those that came after: times, CPU times and call sites go on as if
// nothing had been, whatever the clock and the addresses of the later part.
func TestJoin(t *testing.T) {
	first := part{start: 1e9, hz: 2e9, bias: 0x400000, uid: 1, events: []int{10, 10, 4}, cpu: 50_000, issued: &trace.Issued{Run: "r", Scale: 2}}
	rest := part{start: 7e9, hz: 1e9, bias: 0x900000, uid: 1, events: []int{5, 3}, cpu: 900_000}
	a, b := open(t, first.write(t)), open(t, rest.write(t))
	out := filepath.Join(t.TempDir(), "joined.prophet")
	if err := Join(a, b, Cut{Events: map[uint32]uint64{1: 6, 2: 10, 3: 4}, Inside: map[uint32]bool{1: true}}, out); err != nil {
		t.Fatal(err)
	}
	j := open(t, out)
	if w, err := j.Verify(1, nil); err != nil || w.Damaged != 0 {
		t.Errorf("%+v, %v", w, err)
	}
	for uid, want := range map[uint32]int{1: 11, 2: 13, 3: 4} {
		x := read(t, j, uid)
		if x.events != want || x.threads != 1 {
			t.Errorf("thread %d: %d events, not %d; %d beginnings", uid, x.events, want, x.threads)
		}
		if len(x.sites) != 1 || !x.sites[0x400010] {
			t.Errorf("thread %d: calls at %v", uid, x.sites)
		}
		for i := 1; i < len(x.stamps); i++ {
			if x.stamps[i] < x.stamps[i-1] {
				t.Errorf("thread %d: event %d lies before the one before it", uid, i)
			}
		}
		for i := 1; i < len(x.cpu); i++ {
			if x.cpu[i] < x.cpu[i-1] || x.cpu[i]-x.cpu[i-1] > 10_000 {
				t.Errorf("thread %d: CPU times %d", uid, x.cpu)
				break
			}
		}
	}
	// The later part runs at half the rate: its steps take twice as many ticks of the first.
	if x := read(t, j, 1); x.stamps[8]-x.stamps[7] != 2*step {
		t.Errorf("a step of %d ticks", x.stamps[8]-x.stamps[7])
	}
	if i := j.Meta.Issued; i == nil || i.Scale != 2 || i.Upto[1] != 6 || i.Upto[2] != 10 || i.Upto[3] != 4 {
		t.Errorf("%+v", i)
	}
	if err := Join(a, b, Cut{}, out); err == nil {
		t.Error("a trace was written over another")
	}
}

// Whatever the later part is, and wherever the cut, what is made of it can be read, or is refused and removed.
func FuzzJoin(f *testing.F) {
	a := open(f, part{start: 1e9, hz: 2e9, bias: 0x400000, uid: 1, events: []int{10, 10}}.write(f))
	rest := part{start: 7e9, hz: 1e9, bias: 0x900000, uid: 1, events: []int{5, 3}}.write(f)
	list, _ := filepath.Glob(filepath.Join(rest, "stream-*"))
	if len(list) != 1 {
		f.Fatal(list)
	}
	stream, err := os.ReadFile(list[0])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(stream, uint64(6), uint64(10), true)
	f.Add(stream[:len(stream)/2], uint64(0), uint64(1<<60), false)
	f.Add([]byte{}, uint64(1), uint64(1), true)
	f.Fuzz(func(t *testing.T, stream []byte, one, two uint64, inside bool) {
		dir := t.TempDir()
		path, out := filepath.Join(dir, "rest.prophet"), filepath.Join(dir, "out.prophet")
		meta, err := os.ReadFile(filepath.Join(rest, "meta.json"))
		if err := errors.Join(err, os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "meta.json"), meta, 0o600),
			os.WriteFile(filepath.Join(path, filepath.Base(list[0])), stream, 0o600)); err != nil {
			t.Fatal(err)
		}
		b, err := trace.Open(path)
		if err != nil {
			return
		}
		defer b.Close()
		if Join(a, b, Cut{Events: map[uint32]uint64{1: one, 2: two}, Inside: map[uint32]bool{1: inside}}, out) != nil {
			if _, err := os.Lstat(out); err == nil {
				t.Error("what was refused is there")
			}
			return
		}
		j, err := trace.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		if _, err := j.Verify(1, nil); err != nil {
			t.Fatal(err)
		}
	})
}

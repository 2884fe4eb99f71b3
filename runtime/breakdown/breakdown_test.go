package breakdown

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"prophet/cabi"
	"prophet/runtime/demand"
	"prophet/runtime/issued"
)

// step is an operation of a thread: from, to (ms) and what.
type step struct {
	from, to float64
	code     uint16
	obj      uint32
	a, b     int32
	result   int8
}

const ms = 1_000_000

// made is a run of which each step is an operation of its own; threads of process p are those whose number is in procs[p].
func made(threads [][]step, procs [][]uint32) *run {
	p := &Program{threads: make([]cabi.ProgThread, len(threads)), objects: make([]cabi.ProgObject, 4), preds: []cabi.ProgPred{{Cond: 1, Mutex: 0}}}
	p.objects[2].Value = 2
	for n, list := range procs {
		p.procs = append(p.procs, cabi.ProgProc{Main: list[0]})
		for _, th := range list {
			p.threads[th].Proc = uint32(n)
		}
	}
	r := &run{p: p, threads: make([][]entry, len(threads))}
	for th, list := range threads {
		for _, s := range list {
			r.threads[th] = append(r.threads[th], entry{begin: uint64(s.from * ms), end: uint64(s.to * ms), op: uint32(len(p.ops)), code: s.code, share: 65535, result: s.result})
			p.ops = append(p.ops, op{code: s.code, obj: s.obj, a: s.a, b: s.b})
		}
	}
	return r
}

func all(_, _ *entry, gap uint64) uint64 { return gap }

// The path goes to whoever ended a wait, and stays where nobody did.
func TestPath(t *testing.T) {
	const nop, end = cabi.OpNop, cabi.OpEnd
	one, two := [][]uint32{{0, 1}}, [][]uint32{{0}, {1}}
	tests := []struct {
		name    string
		threads [][]step
		procs   [][]uint32
		want    string // of the path, ms by thread and class
	}{
		{"lock", [][]step{
			{{0, 0, nop, 0, 0, 0, 0}, {1, 1, cabi.OpLock, 0, 0, 0, 0}, {1, 1, cabi.OpCreate, 1, 0, 0, 0}, {10, 10, cabi.OpUnlock, 0, 0, 0, 0}, {11, 20, cabi.OpJoin, 1, 0, 0, 0}, {21, 21, end, 0, 0, 0, 0}},
			{{1, 1, nop, 0, 0, 0, 0}, {2, 10.05, cabi.OpLock, 0, 0, 0, 0}, {19, 19, cabi.OpUnlock, 0, 0, 0, 0}, {20, 20, end, 1, 0, 0, 0}},
		}, one, "0 cpu 11, 1 cpu 9.95, 1 locks 0.05"},
		{"a lock that was free", [][]step{
			{{0, 0, nop, 0, 0, 0, 0}, {1, 1, cabi.OpCreate, 1, 0, 0, 0}, {11, 20, cabi.OpJoin, 1, 0, 0, 0}, {21, 21, end, 0, 0, 0, 0}},
			{{1, 1, nop, 0, 0, 0, 0}, {2, 3, cabi.OpLock, 0, 0, 0, 0}, {19, 19, cabi.OpUnlock, 0, 0, 0, 0}, {20, 20, end, 1, 0, 0, 0}},
		}, one, "0 cpu 2, 1 cpu 18, 1 locks 1"},
		{"no core when the lock was free", [][]step{
			{{0, 0, nop, 0, 0, 0, 0}, {1, 1, cabi.OpCreate, 1, 0, 0, 0}, {5, 5, cabi.OpUnlock, 0, 0, 0, 0}, {11, 20, cabi.OpJoin, 1, 0, 0, 0}, {20, 20, end, 0, 0, 0, 0}},
			{{1, 1, nop, 0, 0, 0, 0}, {2, 8, cabi.OpLock, 0, 0, 0, 0}, {20, 20, end, 1, 0, 0, 0}},
		}, one, "0 cpu 5, 1 cpu 12, 1 ready 2.9, 1 locks 0.1"},
		{"condition", [][]step{
			{{0, 0, nop, 0, 0, 0, 0}, {1, 1, cabi.OpCreate, 1, 0, 0, 0}, {2, 2, cabi.OpLock, 0, 0, 0, 0}, {3, 9, cabi.OpWait, 0, 0, 0, 0}, {10, 10, end, 0, 0, 0, 0}},
			{{1, 1, nop, 0, 0, 0, 0}, {5, 5, cabi.OpLock, 0, 0, 0, 0}, {6, 6, cabi.OpSignal, 1, 0, 0, 0}, {8.9, 8.9, cabi.OpUnlock, 0, 0, 0, 0}, {30, 30, end, 1, 0, 0, 0}},
		}, one, "0 cpu 2, 0 waits 0.1, 1 cpu 7.9"},
		{"signalled after the section", [][]step{
			{{0, 0, nop, 0, 0, 0, 0}, {1, 1, cabi.OpCreate, 1, 0, 0, 0}, {2, 2, cabi.OpLock, 0, 0, 0, 0}, {3, 9, cabi.OpWait, 0, 0, 0, 0}, {10, 10, end, 0, 0, 0, 0}},
			{{1, 1, nop, 0, 0, 0, 0}, {5, 5, cabi.OpLock, 0, 0, 0, 0}, {6, 6, cabi.OpUnlock, 0, 0, 0, 0}, {8.95, 8.95, cabi.OpBroadcast, 1, 0, 0, 0}, {30, 30, end, 1, 0, 0, 0}},
		}, one, "0 cpu 2, 0 waits 0.05, 1 cpu 7.95"},
		{"barrier, whose next generation is there at once", [][]step{
			{{0, 0, nop, 0, 0, 0, 0}, {1, 1, cabi.OpCreate, 1, 0, 0, 0}, {2, 7.04, cabi.OpBarrier, 2, 0, 0, 0}, {9, 9.01, cabi.OpBarrier, 2, 0, 0, 0}, {10, 10, end, 0, 0, 0, 0}},
			{{1, 1, nop, 0, 0, 0, 0}, {7, 7.01, cabi.OpBarrier, 2, 0, 0, 0}, {7.02, 9, cabi.OpBarrier, 2, 0, 0, 0}, {30, 30, end, 1, 0, 0, 0}},
		}, one, "0 cpu 3.95, 0 waits 0.05, 1 cpu 6"},
		{"pipe", [][]step{
			{{0, 0, nop, 0, 0, 0, 0}, {1, 1, cabi.OpPipe, 5, 6, 0, 0}, {2, 2, cabi.OpFork, 1, 0, 0, 0}, {3, 9, cabi.OpRead, 5, 0, 0, 1}, {12, 12, end, 0, 0, 0, 0}},
			{{2, 2, nop, 0, 0, 0, 0}, {4, 4, cabi.OpDup, 6, 7, 0, 0}, {8.96, 8.97, cabi.OpGive, 7, 0, 0, 1}, {30, 30, end, 1, 0, 0, 0}},
		}, two, "0 cpu 5, 0 pipes 0.04, 1 cpu 6.96"},
		{"a pipe's end", [][]step{
			{{0, 0, nop, 0, 0, 0, 0}, {1, 1, cabi.OpPipe, 5, 6, 0, 0}, {2, 2, cabi.OpFork, 1, 0, 0, 0}, {3, 9, cabi.OpTake, 5, 0, 0, 0}, {12, 12, end, 0, 0, 0, 0}},
			{{2, 2, nop, 0, 0, 0, 0}, {8.96, 8.96, cabi.OpExit, 1, 0, 0, 0}},
		}, two, "0 cpu 5, 0 pipes 0.04, 1 cpu 6.96"},
		{"a full pipe", [][]step{
			{{0, 0, nop, 0, 0, 0, 0}, {1, 1, cabi.OpSocketpair, 5, 6, 0, 0}, {2, 2, cabi.OpFork, 1, 0, 0, 0}, {3, 9, cabi.OpWrite, 5, 0, 0, 1}, {12, 12, end, 0, 0, 0, 0}},
			{{2, 2, nop, 0, 0, 0, 0}, {8.96, 8.97, cabi.OpRead, 6, 0, 0, 1}, {30, 30, end, 1, 0, 0, 0}},
		}, two, "0 cpu 5, 0 pipes 0.04, 1 cpu 6.96"},
		{"a connection", [][]step{
			{{0, 0, nop, 0, 0, 0, 0}, {2, 2, cabi.OpFork, 1, 0, 0, 0}, {3, 6, cabi.OpAccept, 0, 9, 0, 0}, {6, 9, cabi.OpTake, 9, 0, 0, 1}, {12, 12, end, 0, 0, 0, 0}},
			{{2, 2, nop, 0, 0, 0, 0}, {5.96, 5.97, cabi.OpConnect, 3, 0, 0, 0}, {8.98, 8.99, cabi.OpGive, 3, 0, 0, 1}, {30, 30, end, 1, 0, 0, 0}},
		}, two, "0 cpu 5, 0 pipes 0.02, 1 cpu 6.97, 1 pipes 0.01"},
		{"readiness", [][]step{
			{{0, 0, nop, 0, 0, 0, 0}, {1, 1, cabi.OpPipe, 5, 6, 0, 0}, {2, 2, cabi.OpFork, 1, 0, 0, 0}, {3, 9, demand.AtPoll, 0, 0, 0, 0}, {9, 9, cabi.OpRead, 5, 0, 0, 1}, {12, 12, end, 0, 0, 0, 0}},
			{{2, 2, nop, 0, 0, 0, 0}, {8.96, 8.97, cabi.OpGive, 6, 0, 0, 1}, {30, 30, end, 1, 0, 0, 0}},
		}, two, "0 cpu 5, 0 pipes 0.04, 1 cpu 6.96"},
		{"the end of a child", [][]step{
			{{0, 0, nop, 0, 0, 0, 0}, {2, 4, cabi.OpFork, 1, 0, 0, 0}, {5, 9, cabi.OpWaitpid, 1, 0, 0, 0}, {12, 12, cabi.OpExit, 0, 0, 0, 0}},
			{{3, 3, nop, 0, 0, 0, 0}, {8.96, 8.96, cabi.OpExit, 1, 0, 0, 0}},
		}, two, "0 cpu 6, 0 waits 0.04, 1 cpu 5.96"},
		{"the signal of a child", [][]step{
			{{0, 0, nop, 0, 0, 0, 0}, {2, 2, cabi.OpFork, 1, 0, 0, 0}, {5, 9, demand.AtSignal, 0, 0, 0, 0}, {9, 9, cabi.OpWaitpid, 1, 0, 0, 0}, {12, 12, cabi.OpExit, 0, 0, 0, 0}},
			{{2, 2, nop, 0, 0, 0, 0}, {8.96, 8.96, cabi.OpExit, 1, 0, 0, 0}},
		}, two, "0 cpu 5, 0 waits 0.04, 1 cpu 6.96"},
		{"a semaphore, a sleep and a file", [][]step{
			{{0, 0, nop, 0, 0, 0, 0}, {1, 1, cabi.OpCreate, 1, 0, 0, 0}, {3, 9, cabi.OpSemwait, 3, 0, 0, 0}, {9, 10, cabi.OpOpen, 7, 0, 4, 0}, {10, 12, cabi.OpRead, 7, 0, 0, 1}, {12, 12, end, 0, 0, 0, 0}},
			{{1, 1, nop, 0, 0, 0, 0}, {2, 8, cabi.OpSleep, 0, 0, 0, 0}, {8.96, 8.96, cabi.OpSempost, 3, 0, 0, 0}, {30, 30, end, 1, 0, 0, 0}},
		}, one, "0 cpu 1, 0 disk 3, 0 waits 0.04, 1 cpu 1.96, 1 sleep 6"},
		{"a file's lock", [][]step{
			{{0, 0, nop, 0, 0, 0, 0}, {0, 0, cabi.OpOpen, 7, 0, 4, 0}, {1, 1, cabi.OpFork, 1, 0, 0, 0}, {3, 9, cabi.OpFcntlLock, 7, 7<<8 | 1, 0, 0}, {12, 12, end, 0, 0, 0, 0}},
			{{1, 1, nop, 0, 0, 0, 0}, {2, 2, cabi.OpFcntlLock, 7, 7<<8 | 1, 0, 0}, {8.95, 8.95, cabi.OpFcntlLock, 7, 6<<8 | 2, 0, 0}, {30, 30, end, 1, 0, 0, 0}},
		}, two, "0 cpu 4, 0 locks 0.05, 1 cpu 7.95"},
	}
	visited := 0
	for _, x := range tests {
		t.Run(x.name, func(t *testing.T) {
			visited++
			s := made(x.threads, x.procs).split(all)
			var b strings.Builder
			for th := range s.On {
				for c, ns := range s.On[th] {
					if ns > 0 {
						fmt.Fprintf(&b, ", %d %s %.4g", th, Class(c), float64(ns)/ms)
					}
				}
			}
			if got := strings.TrimPrefix(b.String(), ", "); got != x.want {
				t.Errorf("the path is %s, not %s", got, x.want)
			}
			if s.Partial || s.Path.Sum() != s.NS {
				t.Errorf("the path is %d ns of %d; partial: %v", s.Path.Sum(), s.NS, s.Partial)
			}
			for th, list := range x.threads {
				first, last := list[0], list[len(list)-1]
				if n := uint64(last.to*ms) - uint64(first.from*ms); s.Threads[th].Sum() != n {
					t.Errorf("the classes of thread %d take %d ns of %d", th, s.Threads[th].Sum(), n)
				}
			}
		})
	}
	if visited != len(tests) || visited < 14 {
		t.Errorf("%d runs", visited)
	}
}

// A thread that did not get a core is ready, at home by its CPU time and on a target by what was demanded.
func TestReady(t *testing.T) {
	r := made([][]step{{{0, 0, cabi.OpNop, 0, 0, 0, 0}, {10, 10, cabi.OpUnlock, 0, 0, 0, 0}, {12, 12, cabi.OpEnd, 0, 0, 0, 0}}}, [][]uint32{{0}})
	r.threads[0][1].share = 65535 / 5
	s := r.split(func(_, e *entry, gap uint64) uint64 { return gap * uint64(e.share) / 65535 })
	if s.Path[CPU] != 4*ms || s.Path[Ready] != 8*ms {
		t.Errorf("%v", s.Path)
	}
	p := r.p
	p.ops[1].cpu = 4 * ms
	p.ops[2].cpu = 2*ms - 10_000
	path := filepath.Join(t.TempDir(), "log")
	w, err := issued.Create(path, issued.Head{Threads: 1, Begin: 100, End: 100 + 12000, Hz: 1e6, Nanos: 12 * ms, Program: 7})
	if err != nil {
		t.Fatal(err)
	}
	w.Thread(cabi.ProgResultThread{Cut: 3})
	for n, at := range []uint64{0, 10000, 12000} {
		w.Add(cabi.ProgLog{Begin: 100 + at, End: 100 + at, Op: uint64(n)})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := issued.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := p.Issue(l, 1); err == nil {
		t.Error("the log of another program is taken")
	}
	p.Sum = 7
	if s, err = p.Issue(l, 1.5); err != nil || s.Path[CPU] != 8*ms || s.Path[Ready] != 4*ms || s.NS != 12*ms || s.Cut != 3 {
		t.Errorf("%+v, %v", s, err)
	}
}

// What is not in the way of others can be changed.
func TestChanges(t *testing.T) {
	r := made([][]step{
		{{0, 0, cabi.OpNop, 0, 0, 0, 0}, {1, 1, cabi.OpCreate, 1, 0, 0, 0}, {1, 1, cabi.OpLock, 3, 0, 0, 0}, {10, 10, cabi.OpUnlock, 3, 0, 0, 0}, {11, 20, cabi.OpJoin, 1, 0, 0, 0}, {20, 30, cabi.OpFsync, 5, 0, 0, 0}, {30, 40, cabi.OpSleep, 0, 0, 0, 0}, {41, 41, cabi.OpEnd, 0, 0, 0, 0}},
		{{1, 1, cabi.OpNop, 0, 0, 0, 0}, {2, 10, cabi.OpLock, 3, 0, 0, 0}, {19, 19, cabi.OpUnlock, 3, 0, 0, 0}, {20, 20, cabi.OpEnd, 1, 0, 0, 0}},
	}, [][]uint32{{0, 1}})
	r.p.ops[5].obj = 7
	r.threads[0] = append(r.threads[0][:1:1], append([]entry{{begin: 0, end: 0, op: uint32(len(r.p.ops)), code: cabi.OpOpen}}, r.threads[0][1:]...)...)
	r.p.ops = append(r.p.ops, op{code: cabi.OpOpen, obj: 7})
	s := r.split(all)
	var got []string
	for _, c := range r.p.Changes(s, func(n uint32) string { return fmt.Sprint("lock ", n) }) {
		got = append(got, fmt.Sprintf("%s %d", c.Resource, c.NS/ms))
		if c.Ops == nil {
			continue
		}
		n := 0
		for i, o := range r.p.ops {
			if c.Ops(uint64(i), &cabi.ProgOp{Code: o.code, Obj: o.obj}) {
				n++
			}
		}
		if want := map[string]int{"syncs": 1, "sleeps": 1, "lock 3": 4}[c.Resource]; n != want {
			t.Errorf("%s changes %d operations, not %d", c.Resource, n, want)
		}
	}
	if want := "syncs 10, sleeps 10, lock 3 8, CPU 2"; strings.Join(got, ", ") != want {
		t.Errorf("%v, not %s", got, want)
	}
	r.p.preds[0].Mutex = 3
	for _, c := range r.p.Changes(s, func(n uint32) string { return "lock" }) {
		if c.Resource == "lock" {
			t.Error("a lock that somebody waits with for a condition can be free")
		}
	}
}

// Of many threads those of the shortest times are one.
func TestCompare(t *testing.T) {
	n := threadsMax + 10
	home, target, names := make([]Times, n), make([]Times, n), make([]string, n)
	for i := range n {
		home[i][CPU], target[i][Disk], names[i] = uint64(i+1), uint64(i), fmt.Sprint("p0/", i)
	}
	list := Compare(home, target, names)
	last := list[len(list)-2:]
	if list[0].Thread != names[n-1] || last[0] != (Part{"10 others", CPU, 55, 0}) || last[1] != (Part{"10 others", Disk, 0, 45}) {
		t.Errorf("%v … %v", list[0], last)
	}
}

// Whatever a log and the times of home say, a path has an end, and no more than the run's time.
func FuzzSplit(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03\x04\x05\x06\x07"), false)
	f.Add(bytes.Repeat([]byte{15, 1, 2, 9, 33, 0, 5, 27}, 20), true)
	codes := []uint16{cabi.OpNop, cabi.OpEnd, cabi.OpCPU, cabi.OpLock, cabi.OpUnlock, cabi.OpBarrier, cabi.OpWait, cabi.OpSignal, cabi.OpCreate, cabi.OpJoin, cabi.OpFork, cabi.OpWaitpid,
		cabi.OpExit, cabi.OpOpen, cabi.OpClose, cabi.OpTake, cabi.OpGive, cabi.OpDup, cabi.OpPipe, cabi.OpFlock, cabi.OpExec, cabi.OpAccept, cabi.OpConnect, demand.AtPoll, demand.AtWait, demand.AtSignal, 65535}
	f.Fuzz(func(t *testing.T, b []byte, two bool) {
		procs := [][]uint32{{0, 1, 2}}
		if two {
			procs = [][]uint32{{0, 2}, {1}}
		}
		r := made(make([][]step, 3), procs)
		for ; len(b) >= 6 && len(r.p.ops) < 1000; b = b[6:] {
			th := b[0] % 3
			var last uint64
			if n := len(r.threads[th]); n > 0 {
				last = r.threads[th][n-1].end
			}
			begin := last + uint64(b[1]%8)*50_000
			r.threads[th] = append(r.threads[th], entry{begin: begin, end: begin + uint64(b[2]%8)*50_000, op: uint32(len(r.p.ops)), code: codes[int(b[3])%len(codes)], result: int8(b[4]%3) - 1})
			r.p.ops = append(r.p.ops, op{code: codes[int(b[3])%len(codes)], obj: uint32(b[4]) % 5, a: int32(b[5]) - 1, b: int32(b[5])})
		}
		s := r.split(all)
		if n := s.Path.Sum(); n > s.NS || n < s.NS && !s.Partial {
			t.Errorf("the path takes %d ns of %d", n, s.NS)
		}
		r.p.Changes(s, func(uint32) string { return "" })
	})
}

// A program and what is said of home come from files.
func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	h := cabi.Prog{Magic: cabi.ProgMagic, Version: cabi.ProgVersion, Procs: 1, Threads: 1, Ops: 2}
	size := uint64(binary.Size(h))
	h.ProcsAt, h.ThreadsAt, h.OpsAt = size, size+uint64(binary.Size(cabi.ProgProc{})), size+uint64(binary.Size(cabi.ProgProc{})+binary.Size(cabi.ProgThread{}))
	h.ObjectsAt, h.PredsAt = size, size
	for _, v := range []any{h, cabi.ProgProc{}, cabi.ProgThread{Count: 2}, cabi.ProgOp{Code: cabi.OpFork}, cabi.ProgOp{Code: cabi.OpEnd}} {
		binary.Write(&b, binary.LittleEndian, v)
	}
	if _, err := Load(bytes.NewReader(b.Bytes()), int64(b.Len())); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes(), make([]byte, demand.AtSize))
	f.Add(b.Bytes()[:100], []byte{})
	f.Fuzz(func(t *testing.T, program, home []byte) {
		p, err := Load(bytes.NewReader(program), int64(len(program)))
		if err != nil {
			return
		}
		if s, err := p.Home(bytes.NewReader(home)); err == nil && s.Path.Sum() > s.NS {
			t.Errorf("the path takes %d ns of %d", s.Path.Sum(), s.NS)
		}
	})
}

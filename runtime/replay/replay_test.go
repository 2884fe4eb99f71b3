package replay

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prophet/cabi"
	"prophet/runtime/trace"
)

var update = flag.Bool("update", false, "write the goldens anew")

// call finds a row by name.
func call(name string) uint16 {
	for i := range cabi.Calls {
		if cabi.Calls[i].Name == name {
			return cabi.Calls[i].ID
		}
	}
	panic(name)
}

var (
	fd     = trace.Object{UID: 1, Num: 1}
	first  = trace.Object{UID: 1, Num: 2}
	second = trace.Object{UID: 1, Num: 3}
)

const start = 1_700_000_000_000_000_000

// synth writes a trace of three threads: main reads a file and makes two, which take two locks.
func synth(t *testing.T, unseen bool) *trace.Trace {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run.prophet")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	m := trace.Meta{Format: cabi.FormatVersion, State: trace.StateComplete, Run: "0123456789abcdef", Command: []string{"/bin/prog", "x"}, Exe: "/bin/prog", Cwd: "/w",
		TicksHz: 1e9, StartNS: start, Ended: &trace.Ended{How: "exit", Status: 3}, Start: &trace.Start{Personality: 0x0040000}, Env: []string{"A=1", "B=2"}}
	if err := trace.WriteMeta(dir, &m); err != nil {
		t.Fatal(err)
	}
	w, err := trace.NewWriter(dir)
	if err != nil {
		t.Fatal(err)
	}
	nums := func(n ...uint64) (b []byte) {
		for _, v := range n {
			b = trace.AppendV(b, v)
		}
		return b
	}
	now := uint64(1000)
	event := func(e *trace.Encoder, name string, pc uint64, obj trace.Object, ret int64, seq uint64, f ...int64) {
		now += 100
		r := trace.Record{Call: call(name), Begin: now, End: now, PC: pc, Obj: obj, Ret: ret, Seq: seq}
		copy(r.F[:], f)
		if name == "open" {
			r.Tail = e.Path(nil, "in\x1b[1m.txt")
		}
		e.Event(&r)
	}
	e := trace.NewEncoder(1, 0, now, w.Put)
	e.Control(cabi.TagClock, nums(now, 5_000_000, start))
	e.Control(cabi.TagProc, trace.AppendS(nums(0, 0, 0, 0, 100, 1, cabi.ProcRoot), "/bin/prog\x00/w\x00/bin/prog\x00x\x00"))
	e.Control(cabi.TagThread, nums(1, 0, 0, 100, cabi.ThreadMain))
	e.Control(cabi.TagModule, trace.AppendS(trace.AppendS(nums(0x400000, 0x10000, 0x400000), "/bin/prog"), "\x01\x02"))
	event(e, "open", 0x401000, trace.Object{}, 3, 0)
	e.Control(cabi.TagObject, trace.AppendS(nums(1, 1, cabi.ObjFd, 3), ""))
	event(e, "read", 0x401010, fd, 5, 0, 64)
	e.Control(cabi.TagHash, []byte("12345678"))
	if unseen {
		e.Control(cabi.TagUnseen, trace.AppendS(nums(cabi.UnseenFutex, 202), "wake"))
	}
	event(e, "pthread_create", 0x401020, trace.Object{UID: 2}, 0, 0, 1)
	event(e, "pthread_create", 0x401020, trace.Object{UID: 3}, 0, 0, 2)
	event(e, "pthread_join", 0x401030, trace.Object{UID: 2}, 0, 0, 1)
	event(e, "pthread_join", 0x401030, trace.Object{UID: 3}, 0, 0, 2)
	event(e, "write", 0x401040, fd, 5, 0, 5)
	e.Control(cabi.TagHash, []byte("87654321"))
	e.Flush(cabi.ChunkLast)
	for uid, order := range [][]trace.Object{2: {first, second}, 3: {second, first}} {
		if order == nil {
			continue
		}
		uid := uint32(uid)
		now = 2000 + 1000*uint64(uid)
		e = trace.NewEncoder(uid, 0, now, w.Put)
		e.Control(cabi.TagThread, nums(uint64(uid), 1, uint64(uid-1), 100+uint64(uid), cabi.ThreadCreated))
		for i, o := range order {
			event(e, "pthread_mutex_lock", 0x402000, o, 0, uint64(1+i))
		}
		for _, o := range order {
			event(e, "pthread_mutex_unlock", 0x402010, o, 0, 0)
		}
		e.Flush(cabi.ChunkLast)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	tr, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

func id(o trace.Object) uint64 { return uint64(o.UID)<<40 | o.Num }

// at sets where threads stand: UID, state, event, call.
func (s *State) at(uid, state uint32, event uint64, name string) *cabi.ReplayThread {
	th := &s.Threads[uid]
	th.State, th.Event = state, event
	if name != "" {
		th.Call = uint32(call(name))
	}
	return th
}

func outside() *Outside {
	return &Outside{Args: []string{"/bin/prog", "x"},
		Stat:    func(string) (int64, int64, bool) { return 5, start - 1, true },
		BuildID: func(string) []byte { return []byte{1, 2} },
		Site:    func(uint32, uint64) string { return "" },
		Func:    func(_ string, off uint64) string { return map[uint64]string{0x1010: "main", 0x2000: "work"}[off] },
	}
}

// TestReports compares the reports of typical causes with what is kept of them.
func TestReports(t *testing.T) {
	visited := 0
	for _, c := range []struct {
		name   string
		unseen bool
		make   func(s *State, t *trace.Trace, o *Outside) *Difference
	}{
		{"input", false, func(s *State, t *trace.Trace, o *Outside) *Difference {
			s.at(1, cabi.TurnStopped, 1, "read")
			r := &s.Head.Report
			*r = cabi.ReplayReport{UID: 1, Event: 1, What: cabi.DiffersData, Want: uint32(call("read")), Came: uint32(call("read")), CameV: 5, WantO: id(fd), CameO: id(fd),
				Whole: 1, CameRet: 5, CameF: [3]uint64{64}, CamePC: 0x401010, Hashed: 1, DataLen: 5, DataHash: 0x3837363534333231 + 1}
			copy(r.Data[:], "\x1b[2Jx")
			o.Stat = func(string) (int64, int64, bool) { return 5, start + 5e9, true }
			return s.Differ(t, o)
		}},
		{"gone", false, func(s *State, t *trace.Trace, o *Outside) *Difference {
			s.at(1, cabi.TurnStopped, 0, "open")
			r := &s.Head.Report
			*r = cabi.ReplayReport{UID: 1, What: cabi.DiffersResult, Want: uint32(call("open")), Came: uint32(call("open")), WantV: 3, CameV: ^uint64(1),
				Whole: 1, CameRet: ^uint64(1), CamePC: 0x401000}
			tail := trace.AppendS(trace.AppendV(nil, 0), "in\x1b[1m.txt")
			r.TailLen = uint32(copy(r.Tail[:], tail))
			copy(r.Text[:], "in\x1b[1m.txt")
			o.Stat = func(string) (int64, int64, bool) { return 0, 0, false }
			return s.Differ(t, o)
		}},
		{"unguarded", false, func(s *State, t *trace.Trace, o *Outside) *Difference {
			s.at(1, cabi.TurnRuns, 4, "pthread_join")
			s.at(2, cabi.TurnStopped, 1, "pthread_mutex_unlock")
			s.at(3, cabi.TurnWaits, 0, "pthread_mutex_lock").Object = id(second)
			s.Head.Report = cabi.ReplayReport{UID: 2, Event: 1, What: cabi.DiffersCall, Want: uint32(call("pthread_mutex_lock")), Came: uint32(call("pthread_mutex_unlock")), WantO: id(second), CamePC: 0x402010}
			return s.Differ(t, o)
		}},
		{"uncovered", true, func(s *State, t *trace.Trace, o *Outside) *Difference {
			s.at(2, cabi.TurnStopped, 0, "pthread_mutex_lock")
			s.Head.Report = cabi.ReplayReport{UID: 2, What: cabi.DiffersTurn, Want: uint32(call("pthread_mutex_lock")), Came: uint32(call("pthread_mutex_lock")), WantV: 1, CameV: 2, WantO: id(first), CameO: id(first),
				Whole: 1, CameSeq: 2, CamePC: 0x402000}
			return s.Differ(t, o)
		}},
		{"program", false, func(s *State, t *trace.Trace, o *Outside) *Difference {
			s.at(1, cabi.TurnStopped, 6, "getpid")
			s.Head.Report = cabi.ReplayReport{UID: 1, Event: 6, What: cabi.DiffersCall, Want: uint32(call("write")), Came: uint32(call("getpid")), CamePC: 0x401038}
			s.Head.Pids, s.Head.Signals = 2, 1
			o.Args = []string{"/bin/prog", "y"}
			o.Env = []string{"A=1", "C=3"}
			o.BuildID = func(string) []byte { return []byte{1, 3} }
			return s.Differ(t, o)
		}},
		{"early", false, func(s *State, t *trace.Trace, o *Outside) *Difference {
			s.at(1, cabi.TurnStopped, 6, "")
			s.Head.Report = cabi.ReplayReport{UID: 1, Event: 6, What: cabi.DiffersLess, Want: uint32(call("write")), Came: cabi.ExitQuick, CameV: 4, WantO: id(fd)}
			return s.Differ(t, o)
		}},
		{"cycle", false, func(s *State, t *trace.Trace, o *Outside) *Difference {
			s.at(1, cabi.TurnRuns, 4, "pthread_join")
			for uid, o := range map[uint32]trace.Object{2: second, 3: first} {
				s.at(uid, cabi.TurnWaits, 1, "pthread_mutex_lock").Object = id(o)
			}
			return s.Stall(t, o, map[uint32]time.Duration{1: 0, 2: 0, 3: 0})
		}},
		{"chain", false, func(s *State, t *trace.Trace, o *Outside) *Difference {
			s.at(1, cabi.TurnRuns, 3, "pthread_create")
			s.at(2, cabi.TurnWaits, 1, "pthread_mutex_lock").Object = id(second)
			return s.Stall(t, o, map[uint32]time.Duration{1: 0, 2: 0})
		}},
		{"beyond", false, func(s *State, t *trace.Trace, o *Outside) *Difference {
			s.at(1, cabi.TurnRuns, 4, "pthread_join")
			s.at(2, cabi.TurnEnd, 4, "getpid")
			s.at(3, cabi.TurnOver, 4, "")
			return s.Stall(t, o, map[uint32]time.Duration{1: 0, 2: 0})
		}},
		{"spin", false, func(s *State, t *trace.Trace, o *Outside) *Difference {
			s.at(1, cabi.TurnRuns, 4, "pthread_join")
			s.at(2, cabi.TurnRuns, 1, "").Call = 0
			s.at(3, cabi.TurnWaits, 1, "pthread_mutex_lock").Object = id(first)
			return s.Spin(t, o, 2, 10*time.Second, 300*time.Nanosecond)
		}},
		{"missing", false, func(s *State, t *trace.Trace, o *Outside) *Difference {
			s.at(1, cabi.TurnOver, 7, "")
			s.at(2, cabi.TurnOver, 2, "").Left = 1
			return s.Missing(t, o, nil, true)
		}},
		{"nobody", false, func(s *State, t *trace.Trace, o *Outside) *Difference { return s.Missing(t, o, nil, true) }},
		{"status", false, func(s *State, t *trace.Trace, o *Outside) *Difference {
			for uid, n := range map[uint32]uint64{1: 7, 2: 4, 3: 4} {
				s.at(uid, cabi.TurnOver, n, "")
			}
			if d := s.Status(t, o, 3, ""); d != nil {
				return d
			}
			return s.Status(t, o, -1, "SIGSEGV")
		}},
	} {
		visited++
		t.Run(c.name, func(t *testing.T) {
			tr := synth(t, c.unseen)
			s := &State{Threads: make([]cabi.ReplayThread, 4)}
			for i := range s.Threads {
				s.Threads[i].UID = uint32(i)
			}
			d := c.make(s, tr, outside())
			if d == nil {
				t.Fatal("no difference")
			}
			text := d.Text()
			if n := strings.Count(text, "\n"); n > 40 {
				t.Errorf("%d lines", n)
			}
			if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' }); i >= 0 {
				t.Errorf("a control character at %d of %q", i, text)
			}
			b, err := json.MarshalIndent(d, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, c.name, text+"\n\n"+string(b)+"\n")
		})
	}
	if visited != 13 {
		t.Fatal("not all reports visited")
	}
}

func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s has changed (-update writes it anew):\n%s", path, text)
	}
}

// A process that ends keeps its last thread until the kernel has taken its memory down: where nobody else could do anything
// that was taken for a world that stands, on a machine with little time for it.
func TestWatchdogLetsProcessesEnd(t *testing.T) {
	s := &State{Threads: []cabi.ReplayThread{{}, {UID: 1, State: cabi.TurnOver}, {UID: 2, State: cabi.TurnEnd}}}
	look := func(cpu map[uint32]time.Duration, after time.Duration) Verdict {
		w := Watchdog{Idle: 3 * time.Second, Spin: 10 * time.Second}
		now := time.Unix(1000, 0)
		w.Look(now, s, Sample{CPU: cpu}, nil)
		return w.Look(now.Add(after), s, Sample{CPU: cpu}, nil)
	}
	ending, gone := map[uint32]time.Duration{1: 0, 2: 0}, map[uint32]time.Duration{2: 0}
	if v := look(ending, time.Second); v != Goes {
		t.Errorf("while it ends: %v", v)
	}
	if v := look(ending, 4*time.Second); v != Stands {
		t.Errorf("when it does not: %v", v)
	}
	if v := look(gone, time.Second); v != Stands {
		t.Errorf("when it is gone: %v", v)
	}
}

// TestWatchdog drives it through worlds that stand, spin, compute and sleep.
func TestWatchdog(t *testing.T) {
	type step struct {
		after   time.Duration
		events  uint64
		cpu     time.Duration // of thread 1, which runs
		foreign int
		paused  bool
		want    Verdict
	}
	const s = time.Second
	runs := func(state uint32) *State {
		return &State{Threads: []cabi.ReplayThread{{}, {UID: 1, State: state}, {UID: 2, State: cabi.TurnWaits}}}
	}
	for _, c := range []struct {
		name  string
		state uint32
		gap   time.Duration
		loose bool
		steps []step
	}{
		{"stands", cabi.TurnRuns, 0, false, []step{{0, 1, 0, 0, false, Goes}, {2 * s, 1, 0, 0, false, Goes}, {2 * s, 1, 0, 0, false, Stands}}},
		{"moves", cabi.TurnRuns, 0, false, []step{{0, 1, 0, 0, false, Goes}, {4 * s, 2, 0, 0, false, Goes}, {2 * s, 2, 0, 0, false, Goes}, {4 * s, 3, 0, 0, false, Goes}}},
		{"nobody runs", cabi.TurnWaits, 0, false, []step{{0, 1, 0, 0, false, Goes}, {4 * s, 1, 0, 0, false, Stands}}},
		{"all have asked for more", cabi.TurnEnd, 0, false, []step{{0, 1, 0, 0, false, Goes}, {4 * s, 1, 0, 0, false, Stands}}},
		{"becomes another program", cabi.TurnOver, 0, false, []step{{0, 1, 0, 0, false, Goes}, {2 * s, 1, 0, 0, false, Goes}, {2 * s, 1, s, 0, false, Goes}, {2 * s, 1, s, 0, false, Goes}, {2 * s, 1, s, 0, false, Stands}}},
		{"computes", cabi.TurnRuns, s, false, []step{{0, 1, 0, 0, false, Goes}, {8 * s, 1, 8 * s, 0, false, Goes}, {4 * s, 1, 9 * s, 0, false, Goes}}},
		{"spins", cabi.TurnRuns, s, false, []step{{0, 1, 5 * s, 0, false, Goes}, {8 * s, 1, 13 * s, 0, false, Goes}, {4 * s, 1, 16 * s, 0, false, Spins}}},
		{"paused", cabi.TurnRuns, 0, false, []step{{0, 1, 0, 0, false, Goes}, {9 * s, 1, 0, 0, true, Goes}, {9 * s, 1, 0, 0, true, Goes}, {s, 1, 0, 0, false, Goes}, {s, 1, 0, 0, false, Goes}, {4 * s, 1, 0, 0, false, Stands}}},
		{"waits for a program that is not seen", cabi.TurnRuns, 4 * s, false, []step{{0, 1, 0, 1, false, Goes}, {7 * s, 1, 0, 1, false, Goes}, {2 * s, 1, 0, 1, false, Stands}}},
		{"sleeps really", cabi.TurnRuns, 10 * s, true, []step{{0, 1, 0, 0, false, Goes}, {15 * s, 1, 0, 0, false, Goes}, {9 * s, 1, 0, 0, false, Stands}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := Watchdog{Idle: 3 * s, Spin: 10 * s, Loose: c.loose}
			now := time.Unix(1000, 0)
			for i, x := range c.steps {
				now = now.Add(x.after)
				got := w.Look(now, runs(c.state), Sample{Events: x.events, CPU: map[uint32]time.Duration{1: x.cpu, 2: 0}, Foreign: x.foreign, Paused: x.paused}, func(uint32) time.Duration { return c.gap })
				if got != x.want {
					t.Fatalf("step %d: %v, want %v", i, got, x.want)
				}
			}
		})
	}
}

// TestWatchdogAtTheEdges: a world in which all ask for more is found out soon; one that has nobody in it yet, or any more, is
// given time, as is one whose only thread goes from one program to the next.
func TestWatchdogAtTheEdges(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name        string
		state       uint32
		there       bool
		goes, stops time.Duration
	}{
		{"asks for more", cabi.TurnEnd, true, s / 4, s},
		{"has not begun", cabi.TurnNone, false, 29 * s, 31 * s},
		{"is gone", cabi.TurnEnd, false, 29 * s, 31 * s},
		{"becomes another program", cabi.TurnOver, true, 2 * s, 4 * s},
	} {
		w := Watchdog{Idle: 3 * s, Spin: 10 * s}
		x := Sample{CPU: map[uint32]time.Duration{}}
		if c.there {
			x.CPU[1] = 0
		}
		state := &State{Threads: []cabi.ReplayThread{{}, {UID: 1, State: c.state}}}
		begin := time.Unix(1000, 0)
		for i, at := range []time.Duration{0, c.goes, c.stops} {
			want := Goes
			if i == 2 {
				want = Stands
			}
			if got := w.Look(begin.Add(at), state, x, func(uint32) time.Duration { return 0 }); got != want {
				t.Errorf("%s: after %v: %v, want %v", c.name, at, got, want)
			}
		}
	}
}

// TestIndex: what is built is what is read, and nothing that a program writes over it makes a reader panic.
func TestIndex(t *testing.T) {
	tr := synth(t, false)
	b, err := Build(tr, tr.Path, 0)
	if err != nil {
		t.Fatal(err)
	}
	n, err := Prefix(b[:HeadSize])
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse(b[:n])
	if err != nil || len(s.Threads) != 4 || s.Threads[3].Parent != 1 {
		t.Fatalf("%v %+v", err, s)
	}
	seen := 0
	for i := 0; i+4 <= 96; i += 4 {
		for _, v := range []uint32{0, 1, 1 << 31, ^uint32(0)} {
			x := bytes.Clone(b)
			binary.LittleEndian.PutUint32(x[i:], v)
			if n, err := Prefix(x[:HeadSize]); err == nil && n <= uint64(len(x)) {
				if s, err := Parse(x[:n]); err == nil {
					_ = s.Stall(tr, outside(), nil).Text()
				}
			}
			seen++
		}
	}
	if seen != 96 {
		t.Fatalf("%d places visited", seen)
	}
}

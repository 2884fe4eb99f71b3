package profile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// made is a trace in the making: ticks are ns.
type made struct {
	t   testing.TB
	dir string
	w   *trace.Writer
}

func make1(t testing.TB) *made {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "t.prophet")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	m := trace.Meta{Format: cabi.FormatVersion, State: trace.StateComplete, Run: "0123456789abcdef", Command: []string{"made"}, TicksHz: 1_000_000_000}
	if err := trace.WriteMeta(dir, &m); err != nil {
		t.Fatal(err)
	}
	w, err := trace.NewWriter(dir)
	if err != nil {
		t.Fatal(err)
	}
	return &made{t, dir, w}
}

func nums(v ...uint64) (b []byte) {
	for _, x := range v {
		b = trace.AppendV(b, x)
	}
	return b
}

const start = 1_000_000_000

// thread begins a thread of the one process.
func (m *made) thread(uid uint32) *trace.Encoder {
	e := trace.NewEncoder(uid, 0, start, m.w.Put)
	how := uint64(cabi.ThreadCreated)
	if uid == 1 {
		how = cabi.ThreadMain
		e.Control(cabi.TagClock, nums(start, 5_000_000, 1_700_000_000_000_000_000))
		e.Control(cabi.TagProc, trace.AppendS(nums(0, 0, 0, 0, 100, 1, cabi.ProcRoot), "/bin/made\x00/\x00made\x00"))
		e.Control(cabi.TagModule, trace.AppendS(trace.AppendS(nums(0x400000, 0x100000, 0x400000), "/nowhere/made"), "\x01\x02"))
	}
	e.Control(cabi.TagThread, nums(uint64(uid), 1, uint64(uid), 100+uint64(uid), how))
	return e
}

func (m *made) open() *trace.Trace {
	m.t.Helper()
	if err := m.w.Close(); err != nil {
		m.t.Fatal(err)
	}
	t, err := trace.Open(m.dir)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { t.Close() })
	return t
}

func call(t testing.TB, name string) uint16 {
	t.Helper()
	for i := range cabi.Calls {
		if cabi.Calls[i].Name == name && cabi.Calls[i].Version == "" {
			return cabi.Calls[i].ID
		}
	}
	t.Fatalf("no call %s", name)
	return 0
}

// times are the ns of all samples, by their folded line's end.
func times(t *testing.T, p *Profile, ty Type) map[string]int64 {
	t.Helper()
	var b bytes.Buffer
	if err := p.Folded(&b, p.Names(nil), ty); err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for line := range strings.Lines(b.String()) {
		var n int64
		i := strings.LastIndexByte(line, ' ')
		fmt.Sscan(line[i+1:], &n)
		out[line[:i]] += n
	}
	return out
}

func same(t *testing.T, what string, got, want map[string]int64) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v\nwant %v", what, got, want)
	}
}

// TestWeights: a stack stands for what its thread did at that call site since the last one there, each type by itself.
func TestWeights(t *testing.T) {
	m := make1(t)
	e := m.thread(1)
	now := uint64(start)
	fd := trace.Object{UID: 1, Num: 1}
	lock := trace.Object{UID: 1, Num: 2}
	e.Control(cabi.TagObject, trace.AppendS(nums(1, 1, cabi.ObjFd, 3), "/data"))
	e.Control(cabi.TagObject, trace.AppendS(nums(1, 3, cabi.ObjFd, 4), "pipe, read end"))
	event := func(name string, pc uint64, o trace.Object, gap, took uint64, note uint8, seq uint64) {
		now += gap
		e.Event(&trace.Record{Call: call(t, name), PC: pc, Obj: o, Begin: now, End: now + took, Timed: took > 0, Note: note, Seq: seq})
		now += took
	}
	event("fsync", 0x401000, fd, 100, 1000, 0, 0)
	event("fsync", 0x401000, fd, 10, 2000, 0, 0)
	e.Stack(0, []uint64{0x402000, 0x403000})
	event("fsync", 0x401000, fd, 10, 4000, 0, 0)
	event("read", 0x401100, trace.Object{UID: 1, Num: 3}, 5, 50, 0, 0)
	e.Stack(cabi.StackLost, []uint64{0x402100})
	event("fsync", 0x401000, fd, 10, 8000, 0, 0)
	e.Stack(0, []uint64{0x404000})
	event("fsync", 0x401000, fd, 10, 16000, 0, 0)
	event("fsync", 0x405000, fd, 10, 32000, 0, 0) // never has a stack
	event("pthread_mutex_lock", 0x406000, lock, 0, 700, cabi.NoteWaited, 1)
	event("usleep", 0x407000, trace.Object{}, 300, 60, 0, 0)
	event("pthread_mutex_unlock", 0x406100, lock, 40, 0, 0, 0)
	e.Flush(cabi.ChunkLast)
	p, err := Of(m.open(), 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Stacks != 3 || p.Events != 10 {
		t.Errorf("%d stacks of %d events", p.Stacks, p.Events)
	}
	same(t, "disk", times(t, p, Disk), map[string]int64{
		"p0;made+0x3000;made+0x2000;made+0x1000;fsync": 3000, "p0;made+0x4000;made+0x1000;fsync": 28000, "p0;[call site alone];made+0x5000;fsync": 32000})
	same(t, "network", times(t, p, Network), map[string]int64{"p0;[frames are missing];made+0x2100;made+0x1100;read": 50})
	same(t, "lock_wait", times(t, p, LockWait), map[string]int64{"p0;[call site alone];made+0x6000;pthread_mutex_lock": 700})
	same(t, "lock_hold", times(t, p, LockHold), map[string]int64{"p0;[call site alone];made+0x6000;pthread_mutex_lock": 400})
	same(t, "sleep", times(t, p, Sleep), map[string]int64{"p0;[call site alone];made+0x7000;usleep": 60})
	same(t, "cpu", times(t, p, CPU), map[string]int64{
		"p0;made+0x3000;made+0x2000;made+0x1000": 110, "p0;made+0x4000;made+0x1000": 30, "p0;[frames are missing];made+0x2100;made+0x1100": 5,
		"p0;[call site alone];made+0x5000": 10, "p0;[call site alone];made+0x7000": 300, "p0;[call site alone];made+0x6100": 40})
	pp, err := p.Pprof(p.Names(nil))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := pp.Write(&b); err != nil {
		t.Fatal(err)
	}
	labels := map[string]int{}
	for _, s := range pp.Sample {
		labels[strings.Join(s.Label["stack"], "")]++
		if s.Label["thread"][0] != "p0" || s.Label["process"][0] != "p0" {
			t.Errorf("labels %v", s.Label)
		}
	}
	if labels[""] == 0 || labels["call site alone"] == 0 || labels["frames are missing"] == 0 {
		t.Errorf("labels %v", labels)
	}
}

// TestCPUShare: CPU demand is no more than the kernel counted.
func TestCPUShare(t *testing.T) {
	m := make1(t)
	m.thread(1).Flush(cabi.ChunkLast)
	e := m.thread(2)
	now := uint64(start)
	for range 10 {
		now += 1000 // of which the thread ran a half
		e.Event(&trace.Record{Call: call(t, "pthread_mutex_unlock"), PC: 0x401000, Obj: trace.Object{UID: 1, Num: 1}, Begin: now, End: now})
	}
	e.At(cabi.TagCPU, now, nums(5000))
	now += 1000
	e.Event(&trace.Record{Call: call(t, "pthread_mutex_unlock"), PC: 0x402000, Obj: trace.Object{UID: 1, Num: 1}, Begin: now, End: now})
	e.Flush(cabi.ChunkLast)
	p, err := Of(m.open(), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "cpu", times(t, p, CPU), map[string]int64{"p0/2;[call site alone];made+0x1000": 5000, "p0/2;[call site alone];made+0x2000": 1000})
}

// TestTimed: where a timer took stacks, they are the CPU time.
func TestTimed(t *testing.T) {
	m := make1(t)
	m.thread(1).Flush(cabi.ChunkLast)
	e := m.thread(2)
	e.Sample(start+100, 1000, []uint64{0x401001, 0x402000})
	e.Event(&trace.Record{Call: call(t, "pthread_mutex_unlock"), PC: 0x402000, Obj: trace.Object{UID: 1, Num: 1}, Begin: start + 5000, End: start + 5000})
	e.At(cabi.TagCPU, start+6000, nums(1500))
	e.Sample(start+7000, 3000, []uint64{0x401001, 0x402000})
	e.Sample(start+7100, 2900, []uint64{0x401001, 0x402000}) // cannot be
	e.Sample(start+7200, 4000, nil)
	e.Flush(cabi.ChunkLast)
	p, err := Of(m.open(), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !p.Timed {
		t.Error("not said to be timed")
	}
	same(t, "cpu", times(t, p, CPU), map[string]int64{"p0/2;made+0x2000;made+0x1001": 3000})
}

// TestInterrupted: the time of a call in which a handler ran is the call's, not CPU demand of the handler.
func TestInterrupted(t *testing.T) {
	m := make1(t)
	e := m.thread(1)
	wait := call(t, "waitpid")
	e.At(cabi.TagSignal, start+5000, append(nums(17, uint64(wait)), nums(2, 0)...))
	e.Event(&trace.Record{Call: call(t, "getpid"), PC: 0x401000, Begin: start + 5100, End: start + 5100})
	e.At(cabi.TagSigRet, start+5200, nums(17))
	e.Event(&trace.Record{Call: wait, PC: 0x402000, Begin: start + 5200, End: start + 6000, Timed: true})
	e.Flush(cabi.ChunkLast)
	p, err := Of(m.open(), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "sleep", times(t, p, Sleep), map[string]int64{"p0;[call site alone];made+0x2000;waitpid": 5800})
	same(t, "cpu", times(t, p, CPU), map[string]int64{"p0;[call site alone];made+0x1000": 100, "p0;[call site alone];made+0x2000": 100})
}

// TestCondition: a wait for a condition lets go of its mutex.
func TestCondition(t *testing.T) {
	m := make1(t)
	e := m.thread(1)
	lock := trace.Object{UID: 1, Num: 2}
	e.Event(&trace.Record{Call: call(t, "pthread_mutex_lock"), PC: 0x401000, Obj: lock, Begin: start + 100, End: start + 100, Seq: 1})
	var wait uint16
	for i := range cabi.Calls {
		if cabi.Calls[i].Name == "pthread_cond_wait" && wait == 0 {
			wait = cabi.Calls[i].ID
		}
	}
	e.Event(&trace.Record{Call: wait, PC: 0x402000, Obj: trace.Object{UID: 1, Num: 3}, F: [3]int64{0, 1<<40 | 2, 0}, Begin: start + 300, End: start + 5300, Timed: true, Seq: 2})
	e.Event(&trace.Record{Call: call(t, "pthread_mutex_unlock"), PC: 0x403000, Obj: lock, Begin: start + 5400, End: start + 5400})
	e.Flush(cabi.ChunkLast)
	p, err := Of(m.open(), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "lock_hold", times(t, p, LockHold), map[string]int64{"p0;[call site alone];made+0x1000;pthread_mutex_lock": 300})
	same(t, "lock_wait", times(t, p, LockWait), map[string]int64{"p0;[call site alone];made+0x2000;pthread_cond_wait": 5000})
}

// TestWaits: each wait has the stacks of who waited and of who had the lock, taken while it had it.
func TestWaits(t *testing.T) {
	m := make1(t)
	lock := trace.Object{UID: 1, Num: 2}
	take, free := call(t, "pthread_mutex_lock"), call(t, "pthread_mutex_unlock")
	a, b := m.thread(1), m.thread(2)
	a.Control(cabi.TagObject, trace.AppendS(nums(1, 2, cabi.ObjMutex, 0x1000), ""))
	a.Event(&trace.Record{Call: take, PC: 0x401000, Obj: lock, Begin: start + 1000, End: start + 1000, Seq: 1})
	a.Event(&trace.Record{Call: call(t, "fsync"), PC: 0x402000, Begin: start + 2000, End: start + 900_000, Timed: true})
	a.Stack(cabi.StackHolder, []uint64{0x403000})
	a.Event(&trace.Record{Call: free, PC: 0x401100, Obj: lock, Begin: start + 1_000_000, End: start + 1_000_000})
	b.Event(&trace.Record{Call: take, PC: 0x411000, Obj: lock, Begin: start + 100_000, End: start + 1_000_100, Timed: true, Note: cabi.NoteWaited, Seq: 2})
	b.Stack(cabi.StackWait, []uint64{0x413000})
	b.Event(&trace.Record{Call: free, PC: 0x411100, Obj: lock, Begin: start + 1_100_000, End: start + 1_100_000})
	b.Event(&trace.Record{Call: take, PC: 0x411000, Obj: trace.Object{UID: 9, Num: 9}, Begin: start + 2_000_000, End: start + 2_000_500, Timed: true, Note: cabi.NoteWaited, Seq: 7})
	a.Flush(cabi.ChunkLast)
	b.Flush(cabi.ChunkLast)
	tr := m.open()
	w, err := WaitsOf(tr, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(w.List) != 2 || w.List[0].NS != 900_100 || w.List[0].Holder == nil || w.List[1].Holder != nil || w.List[0].By.UID != 2 || w.List[0].Of.UID != 1 || w.List[0].At != 100_000 {
		t.Fatalf("%+v", w.List)
	}
	if got := w.List[0].ObjectName(tr); got != "mutex:p0#2" {
		t.Errorf("the lock is %s", got)
	}
	var out bytes.Buffer
	if err := w.Folded(&out, w.Names(nil)); err != nil {
		t.Fatal(err)
	}
	want := "p0;made+0x13000;made+0x11000;pthread_mutex_lock;[waits for] mutex:?#9;[nobody was seen to let go] 500\n" +
		"p0;made+0x13000;made+0x11000;pthread_mutex_lock;[waits for] mutex:p0#2;made+0x3000;made+0x2000;fsync 900100\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// TestBounds: what is kept does not grow with the number of events, and only so far with what is different in them.
func TestBounds(t *testing.T) {
	m := make1(t)
	e := m.thread(1)
	now := uint64(start)
	const sites = maxSites + 5000
	for i := range uint64(sites) {
		now += 100
		e.Event(&trace.Record{Call: call(t, "getpid"), PC: 0x400000 + i, Begin: now, End: now})
	}
	e.Flush(cabi.ChunkLast)
	p, err := Of(m.open(), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	var events int64
	for i := range p.Samples {
		events += p.Samples[i].N[CPU]
	}
	if events != sites || len(p.Samples) > maxSites+2 || !slices.ContainsFunc(p.Notes, func(s string) bool { return strings.Contains(s, "call sites were too many") }) {
		t.Errorf("%d events in %d samples, notes %q", events, len(p.Samples), p.Notes)
	}
	if _, err := p.Pprof(p.Names(nil)); err != nil {
		t.Error(err)
	}
}

// TestMemory: many events, with a stack now and then, take no memory of their own.
func TestMemory(t *testing.T) {
	m := make1(t)
	for uid := uint32(1); uid <= 4; uid++ {
		e := m.thread(uid)
		now := uint64(start)
		for i := range uint64(200_000) {
			now += 50
			name := "pthread_mutex_unlock"
			r := trace.Record{PC: 0x401000 + i%50*16, Obj: trace.Object{UID: 1, Num: 1 + i%9}, Begin: now, End: now}
			if i%2 == 0 {
				name, r.Seq = "pthread_mutex_lock", i
			}
			r.Call = call(t, name)
			e.Event(&r)
			if i%200 == 0 {
				e.Stack(0, []uint64{0x402000 + i%7*32, 0x403000, 0x404000 + i%11*32})
			}
		}
		e.Flush(cabi.ChunkLast)
	}
	tr := m.open()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	p, err := Of(tr, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if p.Events != 800_000 || after.HeapAlloc > before.HeapAlloc+4<<20 || len(p.Samples) > 4*50*77 {
		t.Errorf("%d events, %d samples, %d KiB more", p.Events, len(p.Samples), (after.HeapAlloc-before.HeapAlloc)>>10)
	}
}

func BenchmarkOf(b *testing.B) {
	m := make1(b)
	const threads, events = 4, 250_000
	for uid := uint32(1); uid <= threads; uid++ {
		e := m.thread(uid)
		now := uint64(start)
		for i := range uint64(events) {
			now += 50
			e.Event(&trace.Record{Call: uint16(1 + i%2), PC: 0x401000 + i%2*16, Obj: trace.Object{UID: 1, Num: 1 + i/40%5}, Begin: now, End: now})
		}
		e.Flush(cabi.ChunkLast)
	}
	tr := m.open()
	for b.Loop() {
		if _, err := Of(tr, 2, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*threads*events/b.Elapsed().Seconds(), "events/s")
}

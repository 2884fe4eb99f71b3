package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"prophet/cabi"
	"prophet/runtime/trace"
)

func numbers(v ...uint64) []byte {
	var b []byte
	for _, x := range v {
		b = trace.AppendV(b, x)
	}
	return b
}

const second = 1_000_000_000

func dirOf(t testing.TB, name string, fill func(w *trace.Writer)) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := trace.WriteMeta(dir, &trace.Meta{Format: 1, TicksHz: second, Command: []string{"./app"}, Machine: trace.Machine{CPUs: 2, PageSize: 4096}}); err != nil {
		t.Fatal(err)
	}
	w, err := trace.NewWriter(dir)
	if err != nil {
		t.Fatal(err)
	}
	fill(w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func reportOf(t testing.TB, o Options, dir string) *Report {
	t.Helper()
	tr, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	r, err := Of(tr, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// call is the id of a call.
func call(name string) uint16 {
	for i := range cabi.Calls {
		if cabi.Calls[i].Name == name {
			return cabi.Calls[i].ID
		}
	}
	panic(name)
}

// begin writes what a thread's stream begins with.
func begin(e *trace.Encoder, uid uint64, main bool) {
	if main {
		e.Control(cabi.TagProc, append(numbers(0, 0, 0, 0, 50, 1, cabi.ProcRoot), trace.AppendS(nil, []byte("/bin/app\x00/tmp\x00app\x00-v\x00"))...))
		e.Control(cabi.TagThread, numbers(uid, 0, 0, 50, cabi.ThreadMain))
	} else {
		e.Control(cabi.TagThread, numbers(uid, 1, uid-1, 49+uid, cabi.ThreadCreated))
	}
}

// Two threads: the second waits 5 ms for a lock that the first has, and 3 ms of it for a file that the first opened.
func twoThreads(w *trace.Writer) {
	lock := trace.Object{UID: 1, Num: 7}
	file := trace.Object{UID: 1, Num: 3}
	const ms = 1_000_000
	e := trace.NewEncoder(1, 0, second, w.Put)
	begin(e, 1, true)
	e.Event(&trace.Record{Call: call("open"), Begin: second + ms, End: second + ms + 100, Timed: true, Ret: 5, Tail: e.Path(nil, "/data/one")})
	e.Control(cabi.TagObject, append(numbers(1, 3, cabi.ObjFd, 5), trace.AppendS(nil, "")...))
	e.Event(&trace.Record{Call: call("pthread_mutex_lock"), Obj: lock, PC: 0x1000, Begin: second + 2*ms, Seq: 1})
	e.Event(&trace.Record{Call: call("pthread_mutex_unlock"), Obj: lock, PC: 0x1010, Begin: second + 8*ms})
	e.Event(&trace.Record{Call: call("pthread_mutex_lock"), Obj: lock, PC: 0x1000, Begin: second + 20*ms, Seq: 3})
	e.Event(&trace.Record{Call: call("pthread_mutex_unlock"), Obj: lock, PC: 0x1010, Begin: second + 21*ms})
	if err := e.Flush(cabi.ChunkLast); err != nil {
		panic(err)
	}
	e = trace.NewEncoder(2, 0, second+ms, w.Put)
	begin(e, 2, false)
	e.Event(&trace.Record{Call: call("pthread_mutex_lock"), Obj: lock, PC: 0x2000, Begin: second + 3*ms, End: second + 8*ms, Timed: true, Seq: 2, Note: cabi.NoteWaited})
	e.Stack(cabi.StackWait, []uint64{0x2100, 0x2200})
	e.Event(&trace.Record{Call: call("pthread_mutex_unlock"), Obj: lock, PC: 0x2010, Begin: second + 9*ms})
	e.Event(&trace.Record{Call: call("read"), Obj: file, Begin: second + 10*ms, End: second + 13*ms, Timed: true, Ret: 4096, F: [3]int64{4096}})
	e.Event(&trace.Record{Call: call("fsync"), Obj: file, Begin: second + 14*ms, End: second + 16*ms, Timed: true})
	e.Event(&trace.Record{Call: call("nanosleep"), Begin: second + 16*ms, End: second + 21*ms, Timed: true})
	if err := e.Flush(cabi.ChunkLast); err != nil {
		panic(err)
	}
}

func TestReport(t *testing.T) {
	r := reportOf(t, Options{Name: func(list []Stack) (out [][]string) {
		for _, s := range list {
			var f []string
			for _, pc := range s.PCs {
				f = append(f, fmt.Sprintf("f%x", pc))
			}
			out = append(out, f)
		}
		return out
	}}, dirOf(t, "a.prophet", twoThreads))
	if r.Totals.Threads != 2 || r.Totals.Events != 10 || r.Totals.Timed != 5 || r.Run.NS != 21e6 || r.Damaged != 0 {
		t.Errorf("totals %+v of %d ns, %d damaged", r.Totals, r.Run.NS, r.Damaged)
	}
	want := [groups]int64{Locks: 5e6, Disks: 5e6, Sleeping: 5e6, Compute: 5e6}
	if got := r.Threads[1].Time; got != want {
		t.Errorf("the second thread's time is %v, want %v", got, want)
	}
	if len(r.Locks) != 1 {
		t.Fatalf("%d objects were waited at, want one", len(r.Locks))
	}
	l := r.Locks[0]
	if l.Name != "mutex:p0#7" || l.NS != 5e6 || l.Waits != 1 || l.Taken != 3 || l.HeldNS != 8e6 || l.MaxHeld != 6e6 {
		t.Errorf("the lock is %+v", l)
	}
	if len(l.Waiters) != 1 || l.Waiters[0].Thread != "p0/1" || len(l.Causes) != 1 || l.Causes[0].Thread != "p0" || l.Causes[0].NS != 5e6 {
		t.Errorf("waited %v, for %v", l.Waiters, l.Causes)
	}
	if len(l.At) != 1 || l.At[0].Site != "0x2000" || len(l.CauseAt) != 1 || l.CauseAt[0].Site != "0x1000" {
		t.Errorf("waited at %v for what was taken at %v", l.At, l.CauseAt)
	}
	if got, want := l.At[0].Stack, []string{"f2000", "f2100", "f2200"}; !slices.Equal(got, want) || !slices.Equal(l.CauseAt[0].Stack, []string{"f1000"}) {
		t.Errorf("the stacks are %v and %v, want %v and the site alone", got, l.CauseAt[0].Stack, want)
	}
	if i := slices.IndexFunc(r.Slow, func(c SlowCall) bool { return c.Group == "lock" }); i < 0 || len(r.Slow[i].Stack) != 3 {
		t.Errorf("the slow wait has no stack: %+v", r.Slow)
	}
	if len(r.Files) != 1 {
		t.Fatalf("%d files, want one", len(r.Files))
	}
	if f := r.Files[0]; f.Name != "/data/one" || f.Read != 4096 || f.Reads != 1 || f.Syncs != 1 || f.SyncNS != 2e6 || f.NS != 5e6+100 || f.Opens != 1 {
		t.Errorf("the file is %+v", f)
	}
	if len(r.Slow) != 5 || r.Slow[0].Group != "disk" || r.Slow[0].Call != "read (file)" || r.Slow[0].What != "/data/one" || !strings.Contains(r.Slow[0].Text, "read(fd:p0#3, n=4096) = 4096") {
		t.Errorf("slow calls %+v", r.Slow)
	}
	if p := r.Procs[0]; p.Command != "app -v" || p.Threads != 2 || p.Events != 10 {
		t.Errorf("the process is %+v", p)
	}
	if tl := r.Timeline; len(tl.Lanes) != 2 || tl.Slices != 5 || tl.All != 5 || tl.Lanes[1].Slices != 4 || tl.ShortNS != 0 || len(tl.Data) < 2*Groups*tl.Bins {
		t.Errorf("timeline %+v of %d bytes", *tl, len(tl.Data))
	}
	if len(r.LeftOut) != 0 {
		t.Errorf("left out: %v", r.LeftOut)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(b, &back); err != nil || back.Locks[0].NS != 5e6 || back.Threads[1].Time != want {
		t.Errorf("what JSON says is another report: %v", err)
	}
}

// What does not fit is left out by rule and said: the longest calls stay, whatever the order in which they came.
func TestBounds(t *testing.T) {
	dir := dirOf(t, "b.prophet", func(w *trace.Writer) {
		e := trace.NewEncoder(1, 0, second, w.Put)
		begin(e, 1, true)
		now := uint64(second)
		for i := range 5000 {
			took := uint64(1000 + (i*7919)%5000)
			e.Event(&trace.Record{Call: call("read"), Begin: now, End: now + took, Timed: true, Ret: 1})
			now += took + 100
		}
		e.Flush(cabi.ChunkLast)
	})
	r := reportOf(t, Options{Slices: 100, Slow: 3, Calls: 1}, dir)
	if tl := r.Timeline; tl.Slices != 100 || tl.All != 5000 || tl.ShortNS != 5899 {
		t.Errorf("%d of %d calls are kept, those of more than %d ns; want 100 of 5000, more than 5899", tl.Slices, tl.All, tl.ShortNS)
	}
	if len(r.Slow) != 3 || r.Slow[0].NS != 5999 || r.Slow[2].NS != 5997 {
		t.Errorf("slow calls %+v", r.Slow)
	}
	if len(r.LeftOut) != 1 || !strings.Contains(r.LeftOut[0], "4,900 calls shorter than 5.9 us") {
		t.Errorf("left out: %q", r.LeftOut)
	}
}

// Two readings of one trace are the same.
func TestSame(t *testing.T) {
	dir := dirOf(t, "a.prophet", twoThreads)
	a, b := reportOf(t, Options{Workers: 2}, dir), reportOf(t, Options{Workers: 1}, dir)
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	if !bytes.Equal(x, y) || !bytes.Equal(a.Timeline.Data, b.Timeline.Data) {
		t.Error("two reports of one trace differ")
	}
}

// A report of a damaged trace says so and has the rest; no damage makes it fail.
func TestDamage(t *testing.T) {
	dir := dirOf(t, "a.prophet", twoThreads)
	path := filepath.Join(dir, "stream-00")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	damaged := 0
	for i := range 300 {
		bad := slices.Clone(good)
		for range 1 + i%4 {
			bad[rng.IntN(len(bad))] ^= byte(1 + rng.IntN(255))
		}
		if i%3 == 0 {
			bad = bad[:rng.IntN(len(bad))]
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if r := reportOf(t, Options{}, dir); r.Damaged > 0 {
			damaged++
			if len(r.Damage) == 0 || !strings.Contains(strings.Join(r.Warnings, "\n"), "damaged") {
				t.Fatalf("damage is counted (%d) and not told: %v", r.Damaged, r.Warnings)
			}
		}
	}
	if damaged < 250 {
		t.Errorf("only %d of 300 damaged traces say so", damaged)
	}
}

func TestGroups(t *testing.T) {
	seen := 0
	for name, want := range map[string]Group{"read": Disks, "pread64": Disks, "send": Network, "epoll_wait": Waiting, "accept4": Waiting, "pthread_mutex_lock": Locks,
		"pthread_cond_wait": Waiting, "pthread_barrier_wait": Waiting, "sem_wait": Waiting, "nanosleep": Sleeping, "clock_gettime": Others, "pthread_join": Waiting,
		"waitpid": Waiting, "fork": Others, "mmap": Others, "flock": Locks, "mq_send": Pipes, "getaddrinfo": Network, "fsync": Disks, "puts": Locks} {
		seen++
		if got := infos[call(name)].group; got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if seen != 20 {
		t.Errorf("%d calls were looked at", seen)
	}
	read := &infos[call("__read_chk")]
	if read.name != "read" || read.stat != infos[call("read")].stat || read.groupOf(fdSocket) != Network || read.groupOf(fdPipe) != Pipes || read.groupOf(fdEvent) != Waiting {
		t.Errorf("__read_chk is %+v", *read)
	}
}

func TestHist(t *testing.T) {
	for _, ns := range []uint64{0, 1, 15, 16, 17, 31, 32, 1000, 12345, 1 << 40, 1<<63 + 5} {
		i := bucketOf(ns)
		if i < 0 || i >= HistBuckets || ns < bucketLow(i) || ns < 1<<44 && ns >= bucketLow(i+1) {
			t.Errorf("%d is in bucket %d, from %d to %d", ns, i, bucketLow(i), bucketLow(i+1))
		}
	}
	var h Hist
	rng := rand.New(rand.NewPCG(3, 4))
	var all []float64
	for range 20000 {
		v := uint64(math.Exp(rng.NormFloat64()*2 + 9))
		h.Add(v)
		all = append(all, float64(v))
	}
	slices.Sort(all)
	for _, q := range []float64{.01, .5, .9, .99} {
		if got, want := float64(h.Quantile(q)), all[int(q*20000)]; math.Abs(got-want) > .07*want {
			t.Errorf("quantile %g is %g, want about %g", q, got, want)
		}
	}
	if h.Quantile(1) > h.Max || h.Quantile(0) < h.Min {
		t.Error("a quantile lies outside of what was counted")
	}
}

// The tests of significance against values that can be worked out.
func TestRanks(t *testing.T) {
	near := func(what string, got, want, by float64) {
		t.Helper()
		if math.Abs(got-want) > by {
			t.Errorf("%s is %g, want %g", what, got, want)
		}
	}
	near("p of four below four", mannWhitney([]float64{1, 2, 3, 4}, []float64{5, 6, 7, 8}), 2./70, 1e-12)
	near("p of three below three", mannWhitney([]float64{1, 2, 3}, []float64{5, 6, 7}), .1, 1e-12)
	near("p of 1 against 2", mannWhitney([]float64{1}, []float64{2}), 1, 1e-12)
	near("p of all the same", mannWhitney([]float64{3, 3, 3}, []float64{3, 3}), 1, 1e-12)
	near("p with ties", mannWhitney([]float64{1, 2, 2}, []float64{2, 3, 3}), .3, 1e-12) // of 20 deals 6 are as far
	near("least p", leastP(6, 6), 2./924, 1e-12)
	// Without a difference p below 5% comes about as often, exact or not.
	rng := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{8, 60} {
		low := 0
		for range 1000 {
			a, b := make([]float64, n), make([]float64, n)
			for i := range a {
				a[i], b[i] = rng.ExpFloat64(), rng.ExpFloat64()
			}
			if mannWhitney(a, b) <= .05 {
				low++
			}
		}
		if low < 25 || low > 75 {
			t.Errorf("of 1000 pairs of %d that do not differ %d have p of at most 5%%", n, low)
		}
	}
	var a, b Hist
	wins := 0.0
	var va, vb []uint64
	for i := range 200 {
		va, vb = append(va, uint64(i%10)), append(vb, uint64(i%13))
		a.Add(va[i])
		b.Add(vb[i])
	}
	for _, x := range va {
		for _, y := range vb {
			if y > x {
				wins++
			} else if y == x {
				wins += .5
			}
		}
	}
	chance, z := superior(&a, &b)
	near("chance", chance, wins/40000, 1e-9)
	if z <= 0 {
		t.Errorf("z is %g where b is larger", z)
	}
	if got := adjust([]float64{.01, .04, .03, .5}); math.Abs(got[0]-.04) > 1e-12 || math.Abs(got[1]-.16/3) > 1e-12 || math.Abs(got[2]-.16/3) > 1e-12 || got[3] != .5 {
		t.Errorf("q is %v", got)
	}
}

// A histogram's z does not know that calls which come together are alike; with the inflation the test keeps its level.
func TestInflation(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	wrong := 0
	const rounds = 200
	for range rounds {
		var h [2]Hist
		var parts [2]blocks
		for s := range h {
			for part := range parts[s] {
				drift := rng.NormFloat64() // of this stretch of the run
				for range 50 {
					v := uint64(math.Exp(drift + rng.NormFloat64() + 8))
					h[s].Add(v)
					parts[s].add(part, v)
				}
			}
		}
		_, z := superior(&h[0], &h[1])
		if math.Erfc(math.Abs(z)/math.Sqrt(max(parts[0].inflation(), parts[1].inflation()))/math.Sqrt2) <= .05 {
			wrong++
		}
	}
	if wrong > rounds/10 {
		t.Errorf("%d of %d pairs that do not differ are told apart", wrong, rounds)
	}
	var even blocks
	for i := range even {
		for k := range 40 {
			even.add(i, uint64(100+k))
		}
	}
	if f := even.inflation(); f != 1 {
		t.Errorf("calls that are the same everywhere count as %g", f)
	}
}

// A run whose reads take so long.
func reads(t *testing.T, seed uint64, median float64) *Report {
	rng := rand.New(rand.NewPCG(seed, 9))
	return reportOf(t, DiffOptions(1), dirOf(t, fmt.Sprintf("r%d.prophet", seed), func(w *trace.Writer) {
		e := trace.NewEncoder(1, 0, second, w.Put)
		begin(e, 1, true)
		now := uint64(second)
		for range 2000 {
			took := uint64(median * math.Exp(rng.NormFloat64()/2))
			e.Event(&trace.Record{Call: call("read"), Begin: now, End: now + took, Timed: true, Ret: 1})
			e.Event(&trace.Record{Call: call("fsync"), Begin: now + took, End: now + took + 5000 + rng.Uint64N(100), Timed: true})
			now += took + 6000
		}
		e.Flush(cabi.ChunkLast)
	}))
}

func find(t *testing.T, d *Diff, name string) *CallChange {
	t.Helper()
	for i := range d.Calls {
		if d.Calls[i].Name == name {
			return &d.Calls[i]
		}
	}
	t.Fatalf("%s is not compared", name)
	return nil
}

func TestCompare(t *testing.T) {
	var a, b, c []*Report
	for i := range uint64(5) {
		a, b, c = append(a, reads(t, 10+i, 1000)), append(b, reads(t, 20+i, 1500)), append(c, reads(t, 30+i, 1000))
	}
	one := Compare(a[:1], b[:1])
	if x := find(t, one, "read"); one.Tested != "calls" || x.Verdict != "more" || x.P != nil || x.CallQ == nil || *x.CallQ > 1e-6 || x.Chance < .6 {
		t.Errorf("one slower run: %+v", *x)
	}
	if x := find(t, one, "fsync"); x.Verdict != "same" {
		t.Errorf("what is the same in both: %+v", *x)
	}
	if !strings.Contains(one.Verdict, "cannot be said from so few runs") || one.Run[0].P != nil || one.Run[0].Verdict != "unknown" {
		t.Errorf("of one run each it is said: %s", one.Verdict)
	}
	many := Compare(a, b)
	if x := find(t, many, "read"); many.Tested != "runs" || x.Verdict != "more" || x.Q == nil || *x.Q > .05 {
		t.Errorf("five slower runs: %+v", *x)
	}
	if r := many.Run[0]; r.Verdict != "more" || !strings.Contains(many.Verdict, "Runs of one side do not differ that much") {
		t.Errorf("%s; %+v", many.Verdict, r)
	}
	same := Compare(a, c)
	if x := find(t, same, "read"); x.Verdict != "same" || !strings.Contains(same.Verdict, "no difference is shown") {
		t.Errorf("the same program twice: %s; %+v", same.Verdict, *x)
	}
	few := Compare(a[:2], b[:2])
	if x := find(t, few, "read"); x.Verdict != "same" || !strings.Contains(strings.Join(few.Notes, " "), "no p can be below 0.333") {
		t.Errorf("two runs a side: %+v, %v", *x, few.Notes)
	}
	var text bytes.Buffer
	if err := many.Text(&text, 10, "", ""); err != nil || !strings.Contains(text.String(), "more, 10,000 to 10,000 calls; one of B takes longer with chance") {
		t.Errorf("as text (%v):\n%s", err, text.String())
	}
}

func TestPrediction(t *testing.T) {
	p, err := ReadPrediction(strings.NewReader(`{"predicted_seconds": 2, "home_seconds": 1, "breakdown": [{"thread": "p0\u202e", "class": "disk", "home_seconds": 1}]}`))
	if err != nil || p.Predicted != 2 || p.Breakdown[0].Thread != `p0\xe2\x80\xae` {
		t.Errorf("%+v, %v", p, err)
	}
	for _, bad := range []string{"", "[]", "{}", `{"predicted_seconds": -1, "home_seconds": 1}`, `{"predicted_seconds": 1}`, `{"predicted_seconds": "1"}`} {
		if _, err := ReadPrediction(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is taken for a prediction", bad)
		}
	}
}

// Each group has its name in the page's words and its colour; the page asserts no more of Go than what is here.
func TestNames(t *testing.T) {
	script, err := os.ReadFile("page/base.js")
	if err != nil {
		t.Fatal(err)
	}
	style, err := os.ReadFile("page/style.css")
	if err != nil {
		t.Fatal(err)
	}
	at := -1
	for _, n := range GroupNames() {
		i := bytes.Index(script, []byte("\t"+n+": \""))
		if i < 0 {
			i = bytes.Index(script, []byte(", "+n+": \""))
		}
		if i <= at {
			t.Errorf("groupWords in page/base.js wants %s, in the order of GroupNames", n)
		}
		at = i
		if bytes.Count(style, []byte("--"+n+": ")) != 3 {
			t.Errorf("page/style.css wants a colour --%s, for light and dark", n)
		}
	}
	if !reflect.DeepEqual(counterNames, []string{"events", "resident_bytes", "bytes_in", "bytes_out"}) {
		t.Error("page/timeline.js draws counters by these names")
	}
}

// FuzzPrediction: what comes from anywhere is refused, or can be shown.
func FuzzPrediction(f *testing.F) {
	f.Add([]byte(`{"predicted_seconds": 1.5, "home_seconds": 1, "target": "t\u001b", "breakdown": [{"thread": "p0", "class": "cpu", "home_seconds": 1, "target_seconds": 2}],
		"critical_path": [{"thread": "p0", "class": "disk", "seconds": 1}], "sensitivity": [{"resource": "cpu", "seconds": -1}], "notes": ["n"]}`))
	f.Add([]byte(`{"predicted_seconds": 1e308, "home_seconds": 5e-324}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ReadPrediction(bytes.NewReader(b))
		if err != nil {
			return
		}
		out, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ReadPrediction(bytes.NewReader(out)); err != nil || again.Predicted != p.Predicted || again.Home != p.Home {
			t.Fatalf("read again: %v, %+v", err, again)
		}
		if i := bytes.IndexFunc(out, func(r rune) bool { return r < ' ' || r == 0x9b || r == 0x202e }); i >= 0 || bytes.Contains(out, []byte(`\u001b`)) {
			t.Fatalf("what a terminal obeys is left: %q", out)
		}
	})
}

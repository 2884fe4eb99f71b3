package tests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"prophet/cabi"
	"prophet/runtime/replay"
	"prophet/runtime/trace"
)

// truthful is a recorded run of progs/truth.c that is re-executed in changed ways.
type truthful struct {
	t       *testing.T
	threads int
	rounds  int
	bins    [5]string // by MORE
	input   []byte
	trace   string
	story   *story
}

const truthBlock = 64

func recordTruth(t *testing.T, threads, rounds int) *truthful {
	t.Helper()
	x := &truthful{t: t, threads: threads, rounds: rounds, trace: filepath.Join(t.TempDir(), "run.prophet")}
	dir := t.TempDir()
	for more := range x.bins {
		x.bins[more] = filepath.Join(dir, "truth"+strconv.Itoa(more))
		out, err := exec.Command("gcc", "-O1", "-D_GNU_SOURCE", "-pthread", "-w", "-DMORE="+strconv.Itoa(more), "-o", x.bins[more], filepath.Join(top, "tests", "progs", "truth.c")).CombinedOutput()
		if err != nil {
			t.Fatalf("gcc: %v\n%s", err, out)
		}
	}
	x.input = make([]byte, threads*rounds*truthBlock)
	for i := range x.input {
		x.input[i] = byte(i * 7 >> 3)
	}
	cmd := exec.Command(built(t, "prophet"), append([]string{"record", "-q", "-o", x.trace, "--", x.bins[0]}, x.args()...)...)
	cmd.Dir = x.place(x.input)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	x.story = readStory(t, x.trace)
	if len(x.story.threads) != threads+1 {
		t.Fatalf("the trace has %d threads", len(x.story.threads))
	}
	return x
}

func (x *truthful) args() []string {
	return []string{strconv.Itoa(x.threads), strconv.Itoa(x.rounds), "word"}
}

// place is a directory to run in.
func (x *truthful) place(input []byte) string {
	dir := x.t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "in"), input, 0o644); err != nil {
		x.t.Fatal(err)
	}
	return dir
}

// again re-executes and reads what replayd says of it.
func (x *truthful) again(trace, bin string, args []string, input []byte) (replay.Result, error) {
	cmd := exec.Command(built(x.t, "replayd"), append([]string{"--json", "--trace", trace, "--", bin}, args...)...)
	cmd.Dir = x.place(input)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	began, late := time.Now(), lateness()
	err := cmd.Run()
	delay := late()
	var res replay.Result
	lines := strings.Split(strings.TrimSpace(errs.String()), "\n")
	if e := json.Unmarshal([]byte(lines[len(lines)-1]), &res); e != nil {
		return res, fmt.Errorf("%v: %q is no result: %v", err, errs.String(), e)
	}
	if status := cmd.ProcessState.ExitCode(); status != res.Status {
		return res, fmt.Errorf("exit status %d, but the result says %d", status, res.Status)
	}
	if took := time.Since(began) - delay; took > 30*time.Second {
		return res, fmt.Errorf("it took %v", took)
	}
	return res, nil
}

// change is one way to make a re-execution differ, and what must be named.
type change struct {
	what  string
	trace string
	bin   string
	args  []string
	input []byte
	// The first diverging event. A changed order shows in whichever of the threads that it concerns writes first.
	want []named
	// Where the order cannot be kept: a thread that must be in the cycle.
	cycle *named
}

type named struct {
	thread string
	event  uint64
}

func (n named) String() string { return fmt.Sprintf("thread %s, event %d", n.thread, n.event) }

// worker is a random one of the threads that main creates.
func (x *truthful) worker(rnd *rand.Rand) *tale {
	return x.story.tale("p0/" + strconv.Itoa(1+rnd.IntN(x.threads)))
}

// calls are the places in a tale's records of events of one call.
func (l *tale) calls(name string) (at []int) {
	for i := range l.records {
		if r := &l.records[i]; r.Tag == trace.TagEvent && r.Row != nil && r.Row.Name == name {
			at = append(at, i)
		}
	}
	return at
}

// next is the number of the first event of a call behind a record.
func (l *tale) next(after int, name string) uint64 {
	for _, i := range l.calls(name) {
		if i > after {
			return l.records[i].N
		}
	}
	return uint64(len(l.events()))
}

// changed is the story with one thread's records replaced.
func (x *truthful) changed(dir string, l *tale, records []trace.Record) string {
	return x.changedAll(dir, map[*tale][]trace.Record{l: records})
}

func (x *truthful) changedAll(dir string, with map[*tale][]trace.Record) string {
	s := &story{dir: x.story.dir}
	for _, l := range x.story.threads {
		if records := with[l]; records != nil {
			l = &tale{name: l.name, uid: l.uid, proc: l.proc, first: l.first, records: records}
		}
		s.threads = append(s.threads, l)
	}
	path := filepath.Join(dir, "run.prophet")
	s.write(x.t, path)
	return path
}

// kinds are the ways; each gets a random source and a directory for a trace.
var kinds = []struct {
	name string
	make func(x *truthful, rnd *rand.Rand, dir string, c *change)
}{
	{"a byte of the input file", func(x *truthful, rnd *rand.Rand, _ string, c *change) {
		at := rnd.IntN(len(x.input))
		c.input = slices.Clone(x.input)
		c.input[at] ^= 1 << rnd.IntN(8)
		l := x.story.tale("p0/" + strconv.Itoa(1+at/truthBlock/x.rounds))
		c.want = []named{{l.name, l.records[l.calls("pread")[at/truthBlock%x.rounds]].N}}
	}},
	{"a result", func(x *truthful, rnd *rand.Rand, dir string, c *change) {
		l := x.worker(rnd)
		list := l.calls("pread")
		i := list[rnd.IntN(len(list))]
		records := slices.Clone(l.records)
		records[i].Ret -= 1 + int64(rnd.IntN(60))
		c.trace, c.want = x.changed(dir, l, records), []named{{l.name, l.records[i].N}}
	}},
	{"a random value", func(x *truthful, rnd *rand.Rand, dir string, c *change) {
		l := x.worker(rnd)
		list := l.calls("getrandom")
		i := list[rnd.IntN(len(list))]
		records := slices.Clone(l.records)
		data := slices.Clone(records[i+1].Text[0])
		data[rnd.IntN(len(data))] ^= 1 << rnd.IntN(8)
		records[i+1].Text[0] = data
		c.trace, c.want = x.changed(dir, l, records), []named{{l.name, l.next(i, "write")}}
	}},
	{"a time", func(x *truthful, rnd *rand.Rand, dir string, c *change) {
		l := x.worker(rnd)
		list := l.calls("clock_gettime")
		i := list[rnd.IntN(len(list))]
		records := slices.Clone(l.records)
		records[i].F[0] += 1 + int64(rnd.IntN(1e9))
		c.trace, c.want = x.changed(dir, l, records), []named{{l.name, l.next(i, "write")}}
	}},
	{"the order of a lock", func(x *truthful, rnd *rand.Rand, dir string, c *change) {
		type taker struct {
			l  *tale
			at int
		}
		places := map[trace.Object][]taker{} // by place, from 1
		for _, l := range x.story.threads {
			for _, i := range l.calls("pthread_mutex_lock") {
				r := &l.records[i]
				for uint64(len(places[r.Obj])) <= r.Seq {
					places[r.Obj] = append(places[r.Obj], taker{})
				}
				places[r.Obj][r.Seq] = taker{l, i}
			}
		}
		type pair struct{ a, b taker }
		var pairs []pair
		for _, l := range x.story.threads { // in a fixed order
			for _, i := range l.calls("pthread_mutex_lock") {
				r := &l.records[i]
				if all := places[r.Obj]; r.Seq+1 < uint64(len(all)) && all[r.Seq+1].l != l && all[r.Seq+1].l != nil {
					pairs = append(pairs, pair{taker{l, i}, all[r.Seq+1]})
				}
			}
		}
		if len(pairs) == 0 {
			x.t.Fatal("no lock went from one thread to another")
		}
		p := pairs[rnd.IntN(len(pairs))]
		a, b := slices.Clone(p.a.l.records), slices.Clone(p.b.l.records)
		a[p.a.at].Seq++
		b[p.b.at].Seq--
		c.trace = x.changedAll(dir, map[*tale][]trace.Record{p.a.l: a, p.b.l: b})
		// Whoever has the lock from there on sees another value, and says so by its next write.
		obj, seen := p.a.l.records[p.a.at].Obj, map[*tale]bool{}
		for _, k := range places[obj][p.a.l.records[p.a.at].Seq:] {
			if k.l != nil && !seen[k.l] {
				seen[k.l] = true
				c.want = append(c.want, named{k.l.name, k.l.next(k.at, "write")})
			}
		}
		if p.a.l.records[p.a.at].Seq == 1 { // the object's name tells who had it first
			c.want = append(c.want, named{p.b.l.name, p.b.l.records[p.b.at].N})
		}
		c.cycle = &named{p.a.l.name, p.a.l.records[p.a.at].N}
	}},
	{"an event less", func(x *truthful, rnd *rand.Rand, dir string, c *change) {
		l, n := x.pick(rnd)
		all := l.events()
		records := slices.Concat(l.records[:all[n]], l.records[all[n+1]:])
		c.trace, c.want = x.changed(dir, l, records), []named{{l.name, uint64(n)}}
	}},
	{"an event twice", func(x *truthful, rnd *rand.Rand, dir string, c *change) {
		l, n := x.pick(rnd)
		all := l.events()
		records := slices.Concat(l.records[:all[n+1]], l.records[all[n]:])
		c.trace, c.want = x.changed(dir, l, records), []named{{l.name, uint64(n + 1)}}
	}},
	{"a path", func(x *truthful, rnd *rand.Rand, dir string, c *change) {
		l := x.story.tale("p0")
		list := l.calls("open")
		i := list[rnd.IntN(len(list))]
		records := slices.Clone(l.records)
		fields := slices.Clone(records[i].Fields)
		path := slices.Clone(fields[len(fields)-1].Text)
		path[len(path)-1] ^= 1
		fields[len(fields)-1].Text = path
		records[i].Fields = fields
		c.trace, c.want = x.changed(dir, l, records), []named{{l.name, l.records[i].N}}
	}},
	{"an argument", func(x *truthful, rnd *rand.Rand, _ string, c *change) {
		c.args = append(x.args()[:2], "word"+strconv.Itoa(rnd.IntN(1000)))
		l := x.story.tale("p0")
		list := l.calls("write")
		c.want = []named{{l.name, l.records[list[len(list)-1]].N}}
	}},
	{"another binary", func(x *truthful, rnd *rand.Rand, _ string, c *change) {
		more := 1 + rnd.IntN(len(x.bins)-1)
		c.bin = x.bins[more]
		switch more {
		case 1: // one call more in the third round of the second thread
			l := x.story.tale("p0/2")
			c.want = []named{{l.name, l.records[l.calls("getrandom")[2]].N}}
		case 2: // at the end of the first
			l := x.story.tale("p0/1")
			c.want = []named{{l.name, uint64(len(l.events()))}}
		case 3: // before the last write of main
			l := x.story.tale("p0")
			list := l.calls("write")
			c.want = []named{{l.name, l.records[list[len(list)-1]].N}}
		case 4: // the first ends the process in its second round
			l := x.story.tale("p0/1")
			c.want = []named{{l.name, l.records[l.calls("pthread_mutex_lock")[2]].N}}
		}
	}},
	{"a number", func(x *truthful, rnd *rand.Rand, dir string, c *change) {
		l := x.worker(rnd)
		list := l.calls("pread")
		i := list[rnd.IntN(len(list))]
		records := slices.Clone(l.records)
		records[i].F[rnd.IntN(2)] += 1 + int64(rnd.IntN(100))
		c.trace, c.want = x.changed(dir, l, records), []named{{l.name, l.records[i].N}}
	}},
	{"what was written", func(x *truthful, rnd *rand.Rand, dir string, c *change) {
		l := x.worker(rnd)
		list := l.calls("write")
		i := list[rnd.IntN(len(list))]
		records := slices.Clone(l.records)
		if tag := records[i+1].Tag; tag != cabi.TagHash && tag != cabi.TagData {
			x.t.Fatalf("what was written is not recorded: %d", tag)
		}
		data := slices.Clone(records[i+1].Text[0])
		data[rnd.IntN(len(data))] ^= 1 << rnd.IntN(8)
		records[i+1].Text[0] = data
		c.trace, c.want = x.changed(dir, l, records), []named{{l.name, l.records[i].N}}
	}},
}

// pick is an event of a worker that is followed by one of another call.
func (x *truthful) pick(rnd *rand.Rand) (*tale, int) {
	for {
		l := x.worker(rnd)
		all := l.events()
		n := rnd.IntN(len(all) - 1)
		if l.records[all[n]].Call != l.records[all[n+1]].Call {
			return l, n
		}
	}
}

// two runs work on two goroutines.
func two(n int, work func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range 2 {
		wg.Go(func() {
			for i := range next {
				work(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

var truthSizes = []struct{ threads, rounds int }{{2, 24}, {16, 6}}

// TestTruthDetects changes one thing in a hundred ways by seed: the first diverging event must be named each time.
func TestTruthDetects(t *testing.T) {
	for _, size := range truthSizes {
		t.Run(fmt.Sprintf("%d threads", size.threads), func(t *testing.T) {
			x := recordTruth(t, size.threads, size.rounds)
			var changes []*change
			for seed := range 50 {
				rnd := rand.New(rand.NewPCG(uint64(seed), uint64(size.threads)))
				k := kinds[seed%len(kinds)]
				c := &change{what: fmt.Sprintf("seed %d: %s", seed, k.name), trace: x.trace, bin: x.bins[0], args: x.args(), input: x.input}
				k.make(x, rnd, t.TempDir(), c)
				changes = append(changes, c)
			}
			found := make([]bool, len(changes))
			two(len(changes), func(i int) {
				c := changes[i]
				res, err := x.again(c.trace, c.bin, c.args, c.input)
				if err != nil {
					t.Errorf("%s: %v", c.what, err)
					return
				}
				d := res.Difference
				switch {
				case res.Identical || d == nil:
					t.Errorf("%s: not found: %+v", c.what, res)
				case slices.Contains(c.want, named{d.Thread, d.Event}):
					found[i] = true
				case c.cycle != nil && d.What == replay.WhatStall && strings.Contains(strings.Join(d.Cycle, "\n"), fmt.Sprintf("thread %s, at its event %d ", c.cycle.thread, c.cycle.event)):
					found[i] = true
				default:
					t.Errorf("%s: want %v or the cycle %v, got\n%s", c.what, c.want, c.cycle, d.Text())
				}
				if d != nil && (len(d.Causes) == 0 || strings.Count(d.Text(), "\n") > 40) {
					t.Errorf("%s: no cause, or too long:\n%s", c.what, d.Text())
				}
			})
			n := 0
			for _, ok := range found {
				if ok {
					n++
				}
			}
			t.Logf("%d of %d first diverging events named", n, len(changes))
		})
	}
}

// TestTruthIsQuiet re-executes a hundred times without a change: no false alarm.
func TestTruthIsQuiet(t *testing.T) {
	for _, size := range truthSizes {
		t.Run(fmt.Sprintf("%d threads", size.threads), func(t *testing.T) {
			x := recordTruth(t, size.threads, size.rounds)
			copied := filepath.Join(t.TempDir(), "copy.prophet")
			x.story.write(t, copied) // what the other test changes is otherwise the same
			two(50, func(i int) {
				path := x.trace
				if i%2 == 1 {
					path = copied
				}
				res, err := x.again(path, x.bins[0], x.args(), x.input)
				if err != nil || !res.Identical || res.Status != 0 || res.Threads != size.threads+1 {
					t.Errorf("run %d: %v %+v", i, err, res)
					if res.Difference != nil {
						t.Log(res.Difference.Text())
					}
				}
			})
		})
	}
}

// Who asks for another lock than the recorded one is told so: it does not wait for a place that there is at the other.
func TestTruthNamesTheOther(t *testing.T) {
	bin := compile(t, filepath.Join(top, "tests", "replay", "other.c"))
	rec := Cmd{Argv: []string{bin, "1"}}.Recorded(t)
	out, err := exec.Command(built(t, "replayd"), "--trace", rec.Trace, "--", bin, "0").CombinedOutput()
	if !strings.Contains(string(out), "pthread_mutex_lock: expected mutex:p0#1, got mutex:p0#2") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestTruthNamesCycles asks for orders that cannot be: the report names who waits for whom, soon, and replayd ends.
func TestTruthNamesCycles(t *testing.T) {
	for _, size := range truthSizes {
		t.Run(fmt.Sprintf("%d threads", size.threads), func(t *testing.T) {
			x := recordTruth(t, size.threads, size.rounds)
			two(4, func(seed int) {
				rnd := rand.New(rand.NewPCG(uint64(seed), 7))
				// A thread's own places in the order of one lock change places: the first comes after the last.
				l := x.worker(rnd)
				by := map[trace.Object][]int{}
				for _, i := range l.calls("pthread_mutex_lock") {
					by[l.records[i].Obj] = append(by[l.records[i].Obj], i)
				}
				list := by[l.records[l.calls("pthread_mutex_lock")[rnd.IntN(3)]].Obj]
				a, b := list[0], list[len(list)-1]
				records := slices.Clone(l.records)
				records[a].Seq, records[b].Seq = records[b].Seq, records[a].Seq
				path := x.changed(t.TempDir(), l, records)
				began := time.Now()
				res, err := x.again(path, x.bins[0], x.args(), x.input)
				if err != nil || res.Status != 125 || res.Difference == nil {
					t.Errorf("seed %d: %v %+v", seed, err, res)
					return
				}
				d := res.Difference
				mine := fmt.Sprintf("thread %s, at its event %d in pthread_mutex_lock, waits for place ", l.name, l.records[a].N)
				if d.What != replay.WhatStall || !strings.Contains(strings.Join(d.Cycle, "\n"), mine) || d.Causes[0].Cause != "the recorded order cannot be kept" || time.Since(began) > 10*time.Second {
					t.Errorf("seed %d: after %v, want %q in\n%s", seed, time.Since(began), mine, d.Text())
				}
			})
		})
	}
}

// TestTruthNamesSpinning: a thread that waits for memory that nobody will write is named, and one that computes is let
// go on.
func TestTruthNamesSpinning(t *testing.T) {
	bin := compile(t, filepath.Join(top, "tests", "progs", "flag.c"))
	record := func(how string) string {
		path := filepath.Join(t.TempDir(), how+".prophet")
		if out, err := exec.Command(built(t, "prophet"), "record", "-q", "-o", path, "--", bin, how).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return path
	}
	again := func(path string) (string, int) {
		cmd := exec.Command(built(t, "replayd"), "--stall", "300ms", "--trace", path)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		cmd.Run()
		return errs.String(), cmd.ProcessState.ExitCode()
	}
	path := record("spin")
	if says, status := again(path); status != 0 {
		t.Fatalf("unchanged: exit status %d: %s", status, says)
	}
	s := readStory(t, path)
	for _, l := range s.threads { // the flag is set only after what comes after it is seen
		for _, i := range l.calls("pthread_mutex_lock") {
			l.records[i].Seq = 3 - l.records[i].Seq
		}
	}
	changed := filepath.Join(t.TempDir(), "changed.prophet")
	s.write(t, changed)
	says, status := again(changed)
	if status != 125 || !strings.HasPrefix(says, "replayd: stalled: thread p0 has run for ") || !strings.Contains(says, "waits for memory to change") ||
		!strings.Contains(says, "p0/1, event 0: waits for its turn in pthread_mutex_lock, for place 2 of mutex:p0") {
		t.Errorf("exit status %d: %s", status, says)
	}
	if says, status := again(record("compute")); status != 0 {
		t.Errorf("what computes was stopped: exit status %d: %s", status, says)
	}
}

// Who came first to a name is not recorded: where another does, the report says so, and not that an input changed.
func TestTruthNamesNames(t *testing.T) {
	bin := compile(t, filepath.Join(top, "tests", "replay", "named.c"))
	for _, options := range []string{"", "serial"} {
		rec := Cmd{Argv: []string{bin}, Options: options}.Recorded(t)
		out, err := exec.Command(built(t, "replayd"), "--trace", rec.Trace).CombinedOutput()
		same := err == nil && strings.Contains(string(out), "replayd: identical: ")
		if !same && (options == "serial" || !strings.Contains(string(out), "cause     a name that the run changes: ") || strings.Contains(string(out), "input file changed")) {
			t.Errorf("%q: %v: %s", options, err, out)
		}
	}
}

// Bytes that nobody else can have changed are said to be what no event tells of.
func TestTruthNamesUnset(t *testing.T) {
	bin := compile(t, filepath.Join(top, "tests", "replay", "unset.c"))
	for _, options := range []string{"", "serial"} {
		rec := Cmd{Argv: []string{bin}, Options: options}.Recorded(t)
		out, err := exec.Command(built(t, "replayd"), "--trace", rec.Trace).CombinedOutput()
		if said := string(out); err == nil || !strings.Contains(said, "write: other data of 64 bytes") || !strings.Contains(said, "cause     memory that was never set, or the time stamp counter: ") {
			t.Errorf("%q: %v: %s", options, err, said)
		}
	}
}

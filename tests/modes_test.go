package tests

import (
	"bufio"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// live is a program that works when told to (progs/phases.c), recorded.
type live struct {
	*exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	path string
}

func start(t *testing.T, options string) *live {
	t.Helper()
	dir := t.TempDir()
	l := &live{Cmd: exec.Command(prog(t, "phases")), path: filepath.Join(dir, "run.prophet")}
	l.Env = append(os.Environ(), "LD_PRELOAD="+built(t, "libprophet.so"), "PROPHET_TRACE="+l.path, "PROPHET_OPTIONS="+options)
	l.Stderr = os.Stderr
	var err error
	if l.in, err = l.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := l.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	l.out = bufio.NewReader(out)
	if err := l.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Process.Kill(); l.Wait() })
	return l
}

// work lets it do n rounds and returns what it said about it.
func (l *live) work(t *testing.T, n int) string {
	t.Helper()
	if _, err := io.WriteString(l.in, strconv.Itoa(n)+"\n"); err != nil {
		t.Fatal(err)
	}
	s, err := l.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(s)
}

func (l *live) end(t *testing.T) {
	t.Helper()
	l.in.Close()
	if err := l.Wait(); err != nil {
		t.Fatal(err)
	}
}

// prophet runs a command of the tool, which must succeed.
func prophet(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(built(t, "prophet"), argv...).CombinedOutput()
	if err != nil {
		t.Fatalf("prophet %s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return string(out)
}

// The level is switched while the program runs: at once, each way, and the trace stays whole.
func TestModeLevels(t *testing.T) {
	t.Parallel()
	l := start(t, "level=off")
	pid := strconv.Itoa(l.Process.Pid)
	l.work(t, 1000)
	prophet(t, "level", pid, "full")
	l.work(t, 100)
	prophet(t, "level", pid, "order")
	l.work(t, 10)
	prophet(t, "level", pid, "off")
	l.work(t, 1000)
	prophet(t, "level", pid, "full")
	l.work(t, 1)
	l.end(t)
	f := sound(t, l.path)
	for name, want := range map[string]int{"pthread_mutex_lock": 111, "pthread_mutex_unlock": 111, "clock_gettime": 101} {
		if f.Calls[name] != want {
			t.Errorf("%d of %s, want %d", f.Calls[name], name, want)
		}
	}
	for _, level := range []string{"off", "order", "full"} {
		_, r := Same(t, Cmd{Argv: []string{"sh", "-c", prog(t, "threads") + "; echo a b | tr a-z A-Z | sort"}, Options: "level=" + level})
		f := undamaged(t, r.Trace)
		if level == "off" && f.Events != 0 || level == "order" && f.Calls["read"] != 0 {
			t.Errorf("level %s: %d events: %v", level, f.Events, f.Calls)
		}
	}
}

// Serial: nothing that happens between calls overlaps with anything of another thread, of any process.
func TestModeSerial(t *testing.T) {
	t.Parallel()
	c := Cmd{Argv: []string{prog(t, "racy"), "2", "3", "3000"}, Options: "serial", Timeout: 2 * time.Minute}
	r := c.Recorded(t)
	compare(t, "what the racy program counted", "none lost\n", r.Stdout)
	compare(t, "exit status", "exit status 0", r.Status)
	compare(t, "standard error", "", r.Stderr)
	f := sound(t, r.Trace)
	// What lies between two events of a thread is disjoint from that of all others.
	type stretch struct {
		begin, end uint64
		name       string
	}
	var all []stretch
	for _, th := range f.Trace.Threads {
		it := f.Trace.Iter(th)
		var rec trace.Record
		var last uint64
		for it.Next(&rec) == nil {
			if rec.Tag == trace.TagEvent && rec.Timed {
				if last != 0 && rec.Begin > last {
					all = append(all, stretch{last, rec.Begin, th.Name})
				}
				last = rec.End
			}
		}
	}
	if len(all) < 10000 {
		t.Errorf("only %d stretches to compare", len(all))
	}
	sort.Slice(all, func(i, k int) bool { return all[i].begin < all[k].begin })
	bad := 0
	for i := 1; i < len(all); i++ {
		if all[i].begin < all[i-1].end && all[i].name != all[i-1].name {
			if bad++; bad < 4 {
				t.Errorf("%s ran from %d to %d, %s from %d to %d", all[i-1].name, all[i-1].begin, all[i-1].end, all[i].name, all[i].begin, all[i].end)
			}
		}
	}
	if bad > 0 {
		t.Errorf("%d of %d stretches overlap", bad, len(all))
	}
}

// Whoever holds the token and is killed, or computes for ever, does not hold up the others; programs that wait work.
func TestModeSerialHolder(t *testing.T) {
	t.Parallel()
	for _, argv := range [][]string{
		{prog(t, "holder")},
		{prog(t, "threads")},
		{prog(t, "processes")},
		{"bash", "-c", "seq 1000 | sort -n | (sleep 0.1; cat) | tail -1; echo x | xargs -n1 sh -c 'exit 3'; echo $?"},
		{"python3", "-c", "import threading, subprocess, queue\nq = queue.Queue()\nts = [threading.Thread(target=lambda: [q.put(i) for i in range(50)]) for _ in range(4)]\n[t.start() for t in ts]\n[t.join() for t in ts]\nprint(q.qsize(), subprocess.run(['true']).returncode)"},
	} {
		t.Run(filepath.Base(argv[0]), func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			_, r := Same(t, Cmd{Argv: argv, Options: "serial", Timeout: time.Minute})
			if d := time.Since(begin); d > 30*time.Second {
				t.Errorf("it took %v", d)
			}
			undamaged(t, r.Trace)
		})
	}
}

func size(t *testing.T, path string) (n int64) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(path, "stream-*"))
	if err != nil || len(list) == 0 {
		t.Fatalf("no streams in %s: %v", path, err)
	}
	for _, f := range list {
		st, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		n += st.Size()
	}
	return n
}

// The flight recorder keeps the last part: at exit, at a crash, when asked.
func TestModeFlight(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, path string, least uint64, what string) *Found {
		t.Helper()
		f := read(t, path)
		for _, d := range append(f.Trace.Damage, f.Damage...) {
			if !strings.Contains(d.Error(), "are missing before") {
				t.Errorf("%s: damage: %v", what, d)
			}
		}
		if f.Events < least {
			t.Errorf("%s: only %d events", what, f.Events)
		}
		if n := size(t, path); n > 1200<<10 {
			t.Errorf("%s: %d bytes of streams, 1 MiB was to be kept", what, n)
		}
		return f
	}
	l := start(t, "flight=1M")
	l.work(t, 300000)
	l.work(t, 77)
	l.end(t)
	f := check(t, l.path, 50000, "exit")
	if f.Root == nil || f.Calls["pthread_mutex_lock"] < 77 {
		t.Errorf("the end of the run is not in the trace")
	}
	l = start(t, "flight=1M")
	l.work(t, 300000)
	io.WriteString(l.in, "crash\n")
	l.Wait()
	check(t, l.path, 50000, "crash")
	l = start(t, "flight=1M")
	l.work(t, 300000)
	l.Process.Kill()
	l.Wait()
	check(t, l.path, 50000, "kill")
	l = start(t, "flight=1M")
	l.work(t, 300000)
	prophet(t, "flight", strconv.Itoa(l.Process.Pid))
	if n := size(t, l.path); n < 500<<10 {
		t.Errorf("asked for: %d bytes of streams", n)
	}
	l.work(t, 10)
	l.end(t)
	_, r := Same(t, Cmd{Argv: []string{"bash", "-c", "for i in 1 2 3 4 5; do echo $i | cat; done; " + prog(t, "threads")}, Options: "flight=1M"})
	check(t, r.Trace, 100, "a shell")
}

// Delays are injected through the control page: the n-th call of a kind waits.
func TestModeDelay(t *testing.T) {
	t.Parallel()
	l := start(t, "")
	if s := l.work(t, 10); s != "quick" {
		t.Errorf("10 rounds were %s", s)
	}
	var lock uint32
	for i := range cabi.Calls {
		if cabi.Calls[i].Name == "pthread_mutex_lock" {
			lock = uint32(cabi.Calls[i].ID)
		}
	}
	f, err := os.OpenFile(filepath.Join(l.path, "control"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := syscall.Mmap(int(f.Fd()), 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(m)
	f.Close()
	var c cabi.Control
	at := unsafe.Offsetof(c.Delays)
	binary.LittleEndian.PutUint32(m[at+unsafe.Offsetof(c.Delays[0].Call):], lock)
	binary.LittleEndian.PutUint64(m[at+unsafe.Offsetof(c.Delays[0].Nth):], 5)
	binary.LittleEndian.PutUint64(m[at+unsafe.Offsetof(c.Delays[0].NS):], 50_000_000)
	binary.LittleEndian.PutUint32(m[unsafe.Offsetof(c.Delayed):], 1)
	binary.LittleEndian.PutUint32(m[unsafe.Offsetof(c.Fast):], 0)
	if s := l.work(t, 10); s != "slow" {
		t.Errorf("10 rounds with a delay in the fifth were %s", s)
	}
	if s := l.work(t, 10); s != "quick" {
		t.Errorf("10 rounds after the delay were %s", s)
	}
	l.end(t)
	found := sound(t, l.path)
	n := 0
	if _, err := found.Trace.Walk(1, func(*trace.Thread) trace.Visit {
		return func(r *trace.Record) error {
			if r.Tag == trace.TagEvent && r.Note&cabi.NoteDelayed != 0 {
				n++
			}
			return nil
		}
	}, nil); err != nil {
		t.Fatal(err)
	}
	if n != 1 || found.Calls["pthread_mutex_lock"] != 30 {
		t.Errorf("%d events say that they were delayed, of %d", n, found.Calls["pthread_mutex_lock"])
	}
}

// Marks of the program itself, which needs no library to link or to run.
func TestModeMarks(t *testing.T) {
	t.Parallel()
	c := Cmd{Argv: []string{prog(t, "marks")}}
	bare, rec := c.Bare(t), c.Recorded(t)
	compare(t, "bare status", "exit status 10", bare.Status)
	compare(t, "recorded status", "exit status 11", rec.Status)
	compare(t, "output", bare.Stdout, rec.Stdout)
	compare(t, "standard error", bare.Stderr, rec.Stderr)
	if f := sound(t, rec.Trace); f.Marks != 7 {
		t.Errorf("%d marks, want 7", f.Marks)
	}
}

// A program that a signal ends is seen to end by it: prophet dies of the same one, those that Go would not let it die of, too.
func TestRecordDiesOfSignals(t *testing.T) {
	for _, name := range []string{"HUP", "INT", "KILL", "USR1", "USR2", "PIPE", "ALRM", "TERM", "VTALRM", "PROF", "RTMIN"} {
		// Whoever starts these tests may ignore some: nohup does.
		argv := []string{"env", "--default-signal", "bash", "-c", "kill -" + name + " $$"}
		bare := exec.Command(argv[0], argv[1:]...)
		bare.Run() // how it ended is compared
		recorded := exec.Command(built(t, "prophet"), append([]string{"record", "-q", "-o", filepath.Join(t.TempDir(), "run.prophet"), "--"}, argv...)...)
		recorded.Run()
		if want, got := bare.ProcessState.String(), recorded.ProcessState.String(); got != want || !strings.HasPrefix(want, "signal: ") {
			t.Errorf("%s: %s, bare %s", name, got, want)
		}
	}
}

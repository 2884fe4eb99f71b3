package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"prophet/cabi"
	"prophet/runtime/inside"
	"prophet/runtime/recovery"
	"prophet/runtime/summary"
	"prophet/runtime/trace"
)

// built programs of progs/, each once a test run.
var progs struct {
	sync.Mutex
	dir  string
	once map[string]*sync.Once
	err  map[string]error
}

func TestMain(m *testing.M) {
	inside.Main()
	dir, err := os.MkdirTemp("", "prophet-progs")
	if err == nil {
		err = os.Chmod(dir, 0o755) // some tests run programs as another user
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	progs.dir, progs.once, progs.err = dir, map[string]*sync.Once{}, map[string]error{}
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// prog compiles progs/<name>.c (or .cc) with these flags added, once, and returns the program's path; with "-shared"
// among the flags it is a library.
func prog(t testing.TB, name string, flags ...string) string {
	t.Helper()
	out := filepath.Join(progs.dir, name+strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.Join(flags, "")))
	if len(out) > 200 {
		out = out[:200]
	}
	progs.Lock()
	o := progs.once[out]
	if o == nil {
		o = &sync.Once{}
		progs.once[out] = o
	}
	progs.Unlock()
	o.Do(func() {
		source, cc := filepath.Join(top, "tests", "progs", name+".c"), "gcc"
		if _, err := os.Stat(source); err != nil {
			source, cc = source+"c", "g++"
		}
		text, err := os.ReadFile(source)
		if err == nil {
			args := []string{"-O1", "-D_GNU_SOURCE", "-pthread", "-w", "-I", filepath.Join(top, "cabi"), "-o", out, source}
			if own, ok := strings.CutPrefix(strings.SplitN(string(text), "\n", 2)[0], "// cflags:"); ok {
				args = append(args, strings.Fields(own)...)
			}
			var msg []byte
			if msg, err = exec.Command(cc, append(args, flags...)...).CombinedOutput(); err != nil {
				err = fmt.Errorf("%s %s: %w\n%s", cc, source, err, msg)
			}
		}
		progs.Lock()
		progs.err[out] = err
		progs.Unlock()
	})
	progs.Lock()
	defer progs.Unlock()
	if err := progs.err[out]; err != nil {
		t.Fatal(err)
	}
	return out
}

// need fails the test where a program is not installed.
func need(t testing.TB, names ...string) {
	t.Helper()
	for _, n := range names {
		if _, err := exec.LookPath(n); err != nil {
			t.Fatalf("%s is not installed: run tests/setup (packages are listed in tests/packages)", n)
		}
	}
}

// needRoot fails the test where it lacks the rights that it needs.
func needRoot(t testing.TB, why string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatalf("this test needs root (%s): run it as root, as CI does", why)
	}
}

// Found is what a trace holds.
type Found struct {
	*summary.Summary
	Calls map[string]int // by name
	Trace *trace.Trace
	Notes []string
}

// read opens and reads a whole trace; damage is left in what it returns.
func read(t testing.TB, path string) *Found {
	t.Helper()
	tr, _, notes, err := recovery.Open(path, nil)
	if err != nil {
		t.Fatalf("opening the trace: %v", err)
	}
	t.Cleanup(func() { tr.Close() })
	f := &Found{Calls: map[string]int{}, Trace: tr, Notes: notes}
	var mu sync.Mutex
	w, err := tr.Walk(2, func(*trace.Thread) trace.Visit {
		return func(r *trace.Record) error {
			if r.Tag == trace.TagEvent {
				mu.Lock()
				f.Calls[rowName(cabi.ByID(r.Call))]++
				mu.Unlock()
			}
			return nil
		}
	}, nil)
	if err != nil {
		t.Fatalf("reading the trace: %v", err)
	}
	if f.Summary, err = summary.Of(tr, 2, nil); err != nil {
		t.Fatalf("summing up the trace: %v", err)
	}
	f.Damage, f.Damaged = w.Damage, w.Damaged
	return f
}

// sound reads a trace that must have nothing wrong: no damage, nothing lost.
func sound(t testing.TB, path string) *Found {
	t.Helper()
	f := read(t, path)
	for i, d := range append(f.Trace.Damage, f.Damage...) {
		if i < 5 {
			t.Errorf("damage in the trace: %v", d)
		}
	}
	v, err := f.Trace.Verify(2, nil)
	if err != nil {
		t.Fatalf("verifying the trace: %v", err)
	}
	for i, d := range v.Damage {
		if i < 5 {
			t.Errorf("verify: %v", d)
		}
	}
	for _, l := range f.Lost {
		if l.N > 0 {
			t.Errorf("the trace lost %d %s", l.N, l.What)
		}
	}
	if f.Events == 0 {
		t.Errorf("the trace has no events")
	}
	return f
}

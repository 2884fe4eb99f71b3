package tests

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prophet/runtime/recovery"
	"prophet/runtime/trace"
)

// predicted is what of `prophet predict --json` these tests look at.
type predicted struct {
	Seconds  float64  `json:"predicted_seconds"`
	Rounds   int      `json:"rounds"`
	Proven   bool     `json:"proven"`
	Threads  int      `json:"threads"`
	Told     []int    `json:"told_cpus"`
	Unproven float64  `json:"unproven_share"`
	Notes    []string `json:"notes"`
	Strict   *struct {
		Rounds   int     `json:"rounds"`
		Most     int     `json:"most"`
		Proven   bool    `json:"proven"`
		Unproven float64 `json:"unproven_share"`
		Stopped  string  `json:"stopped"`
		Each     []struct {
			Identical uint64 `json:"identical"`
		} `json:"each_round"`
	} `json:"strict"`
}

// predict predicts without trying the program at home, with what is to be left of temporary files in a directory of its own.
func predict(t *testing.T, trace string, args ...string) (p predicted, said string, err error) {
	t.Helper()
	tmp := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, built(t, "prophet"), append([]string{"predict", trace, "--json", "--force", "--home-runs", "0", "--what-if", "0", "-n", "1"}, args...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err = cmd.Run(); err == nil {
		err = json.Unmarshal(out.Bytes(), &p)
	}
	if left, _ := os.ReadDir(tmp); len(left) > 0 {
		t.Errorf("left is %v", left)
	}
	return p, errs.String(), err
}

// A barrier's threads come in another order each time. What we prove in a few rounds takes a round for each of these orders where each of
// them is learnt by itself; no more rounds than are allowed; and each proves more than the one before.
func TestPredictStrict(t *testing.T) {
	// A busy machine may let them come in one order, which is known at once then, however often they come; or hold up three rounds, one after
	// the other, until they prove nothing.
	var trace, said string
	var p predicted
	var err error
	for try := 0; ; try++ {
		trace = recordedProgram(t, "barrier", "3", "8")
		if p, said, err = predict(t, trace, "--target", "local", "--strict"); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		if p.Strict == nil || p.Strict.Proven && p.Strict.Rounds >= 2*p.Rounds+3 || try == 2 {
			break
		}
	}
	if !p.Proven || p.Rounds > 3 || p.Strict == nil || !p.Strict.Proven || p.Strict.Rounds < 2*p.Rounds+3 || p.Strict.Most != 100 {
		t.Errorf("%+v; %+v", p, p.Strict)
	}
	last := uint64(0)
	for i, x := range p.Strict.Each {
		if x.Identical <= last && i > 0 {
			t.Errorf("round %d proves %d events, the one before %d", i+1, x.Identical, last)
		}
		last = x.Identical
	}
	for try := 0; ; try++ {
		if p, said, err = predict(t, trace, "--target", "local", "--strict=2"); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		if p.Strict == nil || !p.Strict.Proven || try == 2 {
			break
		}
	}
	if s := p.Strict; !p.Proven || s == nil || s.Proven || s.Rounds != 2 || s.Most != 2 || s.Unproven <= 0.2 || s.Unproven > 1 {
		t.Errorf("%+v; %+v", p, p.Strict)
	}
}

// strictly issues a trace up to where it leaves its path and says what came of it. Where a system call is named threads are late behind it,
// or before it, as those are that get no processor.
func strictly(t *testing.T, trace, late string) (made *trace.Trace, said string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "made.prophet")
	argv := []string{built(t, "replayd"), "issue", "--trace", trace, "--order", "strict", "--record", path}
	if late != "" {
		call, _, _ := strings.Cut(late, ":")
		argv = append([]string{"strace", "-f", "-o", filepath.Join(t.TempDir(), "calls"), "-e", "trace=" + call, "-e", "inject=" + late}, argv...)
	}
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if made, _, _, err = recovery.Open(path, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { made.Close() })
	return made, string(out)
}

// Threads that had been created when a strict issue ended, and had done nothing yet, are in its trace: whoever executes the program in
// that order would not let them go on otherwise. So is whoever created one, however late it got a processor to come back from that.
func TestStrictSilentThreads(t *testing.T) {
	need(t, "strace")
	home := recordedProgram(t, "barrier", "3", "8")
	for _, late := range []string{"", "clone3:delay_exit=500000"} {
		tr, said := strictly(t, home, late)
		created := 0
		if first := tr.ThreadByUID(1); first != nil {
			created = min(3, int(tr.EventsBetween(first, 0, 1<<62))) // it joins them after that
		}
		if len(tr.Threads) != 1+created || created == 0 {
			t.Errorf("late behind %q: %d threads, of which %d were created: %s", late, len(tr.Threads), created, said)
		}
	}
}

// Threads and processes that have been made and got no processor yet may move: an issue is not over by them.
func TestStrictLate(t *testing.T) {
	need(t, "strace")
	home := recordedProgram(t, "barrier", "3", "8")
	for _, late := range []string{"set_robust_list:delay_enter=400000", "rseq:delay_enter=400000"} {
		tr, said := strictly(t, home, late)
		if strings.Contains(said, "nothing could move") || len(tr.Threads) != 4 {
			t.Errorf("late before %q: %d threads: %s", late, len(tr.Threads), said)
		}
	}
}

// threadsOf is how many threads a recorded run had.
func threadsOf(t *testing.T, path string) int {
	t.Helper()
	tr, _, _, err := recovery.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	return len(tr.Threads)
}

// Programs that start as many threads as there are CPUs are predicted with those that they would start there.
func TestPredictShape(t *testing.T) {
	dir := t.TempDir()
	if err := exec.Command("sh", "-c", "seq 400000 >"+filepath.Join(dir, "data")).Run(); err != nil {
		t.Fatal(err)
	}
	prophet, data := built(t, "prophet"), filepath.Join(dir, "data")
	record := func(name string, argv ...string) string {
		path := filepath.Join(dir, name)
		cmd := exec.Command(argv[0], append(argv[1:], "record", "-q", "-o", path, "--")...)
		cmd.Args = append(cmd.Args, map[string][]string{"x": {"xz", "-T0", "-1", "--block-size=256KiB", "-k", "-c", data}, "p": {"pigz", "-k", "-c", data}}[name[:1]]...)
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	visited := 0
	for _, name := range []string{"xz", "pigz"} {
		home, there := record(name, prophet), record(name+"-there", "taskset", "-c", "0", prophet)
		p, said, err := predict(t, home, "--target", "local,cpus=1", "--rounds", "0")
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		if want := threadsOf(t, there); p.Threads != want || (p.Told != nil) != (threadsOf(t, home) != want) {
			t.Errorf("%s: predicted with %d threads (told %v), there it has %d, and here %d", name, p.Threads, p.Told, want, threadsOf(t, home))
		}
		// A target with the CPUs that it was told of asks for nothing else.
		if p, said, err = predict(t, home, "--target", "local", "--rounds", "0"); err != nil || p.Told != nil || p.Threads != threadsOf(t, home) {
			t.Errorf("%s at home: %+v, %v: %s", name, p, err, said)
		}
		visited++
	}
	if visited != 2 {
		t.Errorf("%d programs", visited)
	}
}

// What a program is told of CPUs is told by each call that tells of them, in children too, and again when it is executed again.
func TestToldCPUs(t *testing.T) {
	script := `nproc; nproc --all; getconf _NPROCESSORS_ONLN; getconf _NPROCESSORS_CONF; python3 -c 'import os; print(os.cpu_count(), len(os.sched_getaffinity(0)))'`
	dir := t.TempDir()
	for _, x := range []struct{ told, says string }{{"1", "1\n1\n1\n1\n1 1\n"}, {"3", "3\n3\n3\n3\n3 3\n"}, {"1:2:5", "1\n5\n2\n5\n2 1\n"}} {
		path := filepath.Join(dir, x.told+".prophet")
		out, err := exec.Command(built(t, "prophet"), "record", "-q", "--cpus", x.told, "-o", path, "--", "sh", "-c", script).CombinedOutput()
		if err != nil || string(out) != x.says {
			t.Errorf("told %s: %v: %q, not %q", x.told, err, out, x.says)
		}
		if out, err := exec.Command(built(t, "replayd"), "--trace", path).Output(); err != nil || string(out) != x.says {
			t.Errorf("executed again, told %s: %v: %q", x.told, err, out)
		}
	}
	for _, bad := range []string{"0", "x", "1:2:3:4", "-1", "1:"} {
		if out, err := exec.Command(built(t, "prophet"), "record", "--cpus", bad, "--", "true").CombinedOutput(); err == nil || !bytes.Contains(out, []byte("--cpus")) {
			t.Errorf("--cpus %s: %v, %s", bad, err, out)
		}
	}
}

// What is not issued although others may wait for it is said.
func TestPredictNotIssued(t *testing.T) {
	trace := Cmd{Argv: []string{"sh", "-c", "sleep 10 & kill $!; wait; true"}}.Recorded(t).Trace
	p, said, err := predict(t, trace, "--target", "local", "--rounds", "0")
	if err != nil || len(p.Notes) == 0 || !strings.Contains(strings.Join(p.Notes, " "), "kill (1)") {
		t.Errorf("%+v, %v: %s", p, err, said)
	}
	trace = Cmd{Argv: []string{"ls"}}.Recorded(t).Trace
	if p, said, err = predict(t, trace, "--target", "local", "--rounds", "0"); err != nil || strings.Contains(strings.Join(p.Notes, " "), "not issued") {
		t.Errorf("%+v, %v: %s", p, err, said)
	}
}

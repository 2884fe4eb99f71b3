package tests

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// bugNames are the programs with a known bug.
func bugNames(t testing.TB) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(top, "tests", "bugs", "*.c"))
	if err != nil || len(list) < 12 {
		t.Fatalf("tests/bugs has %d programs: %v", len(list), err)
	}
	for i := range list {
		list[i] = strings.TrimSuffix(filepath.Base(list[i]), ".c")
	}
	return list
}

func bug(t testing.TB, name string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), filepath.Base(name))
	cc, source := "gcc", filepath.Join(top, "tests", "bugs", name+".c")
	if _, err := os.Stat(source + "c"); err == nil {
		cc, source = "g++", source+"c"
	}
	if b, err := exec.Command(cc, "-O1", "-D_GNU_SOURCE", "-pthread", "-w", "-Wl,-z,now", "-o", out, source).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, b)
	}
	return out
}

// untilFail runs `prophet record --until-fail` and returns what --json says of it.
type untilReport struct {
	Run *struct {
		Status int
		Signal string
		Trace  string
	}
	Prophet struct {
		Status int
		Error  string
	}
	UntilFail *struct {
		Failed   bool
		Runs     int
		TimedOut bool `json:"timed_out"`
		Chaos    *uint64
		Replay   string
	} `json:"until_fail"`
}

func untilFail(t *testing.T, dir string, args ...string) (status int, stdout string, r untilReport) {
	t.Helper()
	cmd := exec.Command(built(t, "prophet"), append([]string{"record", "--until-fail", "--json"}, args...)...)
	cmd.Dir = dir
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(errs.String()), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status = ws.ExitStatus(); ws.Signaled() {
		status = 128 + int(ws.Signal())
	}
	return status, out.String(), r
}

// traces are what lies in dir and is called a trace.
func traces(t *testing.T, dir string) int {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*.prophet"))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestUntilFail(t *testing.T) {
	t.Parallel()
	counted := `n=$(cat n 2>/dev/null || echo 0); n=$((n+1)); echo $n >n; echo "run $n"; if test $n = 4; then `
	for _, c := range []struct {
		name, script   string
		args           []string
		status, runs   int
		stdout, signal string
		timedOut       bool
	}{
		{"status", counted + "exit 7; fi", nil, 7, 4, "run 4\n", "", false},
		{"signal", counted + "kill -ABRT $$; fi", nil, 128 + 6, 4, "run 4\n", "SIGABRT", false},
		{"timeout", counted + "sleep 100; fi", []string{"--timeout", "1500ms"}, 124, 4, "run 4\n", "", true},
		{"none", "exit 0", []string{"-n", "5"}, 0, 5, "", "", false},
		{"left", counted + "exit 3; fi; setsid sleep 100 & sleep 0.05", nil, 3, 4, "run 4\n", "", false},
		{"chaos", counted + "exit 3; fi", []string{"--chaos", "10"}, 3, 4, "run 4\n", "", false},
		{"input", "read x && exit 1; exit 0", []string{"-n", "2"}, 0, 2, "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			status, stdout, r := untilFail(t, dir, append(append([]string{}, c.args...), "--", "sh", "-c", c.script)...)
			if status != c.status || stdout != c.stdout || r.UntilFail == nil || r.UntilFail.Runs != c.runs || r.UntilFail.TimedOut != c.timedOut {
				t.Fatalf("status %d, stdout %q, %+v, want status %d, stdout %q, %d runs", status, stdout, r, c.status, c.stdout, c.runs)
			}
			want := 1
			if c.status == 0 {
				want = 0
			}
			if n := traces(t, dir); n != want {
				t.Errorf("%d traces are left, want %d", n, want)
			}
			if want == 0 {
				if r.Run != nil || r.UntilFail.Failed {
					t.Errorf("a run is told of, and none failed: %+v", r)
				}
				return
			}
			if r.Run.Status != c.status || r.Run.Signal != c.signal || !r.UntilFail.Failed {
				t.Errorf("told %+v of the run that failed", r.Run)
			}
			if want := "replayd --trace " + r.Run.Trace; r.UntilFail.Replay != want {
				t.Errorf("it runs again by %q, want %q", r.UntilFail.Replay, want)
			}
			f := sound(t, r.Run.Trace)
			switch m := f.Trace.Meta; {
			case c.name != "chaos" && m.Options.Chaos != nil, c.name == "chaos" && (m.Options.Chaos == nil || *m.Options.Chaos != 13 || *r.UntilFail.Chaos != 13):
				t.Errorf("chaos is %v", m.Options.Chaos)
			}
			if c.name == "chaos" {
				out, err := exec.Command(built(t, "prophet"), "info", r.Run.Trace).Output()
				if err != nil || !strings.Contains(string(out), "chaos of seed 13") {
					t.Errorf("info says: %v\n%s", err, out)
				}
			}
		})
	}
}

// What cannot be is refused before anything runs.
func TestUntilFailUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--chaos", "x"}, {"--chaos", "-1"}, {"-n", "-1"}} {
		dir := t.TempDir()
		if status, _, r := untilFail(t, dir, append(args, "--", "true")...); status != 125 || r.Run != nil || r.Prophet.Error == "" {
			t.Errorf("%v: status %d, %+v", args, status, r)
		}
	}
	if status, _, r := untilFail(t, t.TempDir(), "--", "no-such-program"); status != 127 || r.Run != nil {
		t.Errorf("no such program: status %d, %+v", status, r)
	}
	cmd := exec.Command(built(t, "prophet"), "record", "-n", "5", "--", "true")
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 125 || !strings.Contains(string(out), "--until-fail") {
		t.Errorf("-n alone: %v, %s", cmd.ProcessState, out)
	}
}

// Interrupted, it ends by the same signal, kills the run that is on its way and removes the trace of it.
func TestUntilFailInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(built(t, "prophet"), "record", "--until-fail", "--", "sh", "-c", "echo $$ >pid; sleep 100")
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		b, _ := os.ReadFile(filepath.Join(dir, "pid"))
		if _, err := fmt.Sscan(string(b), &pid); err == nil && traces(t, dir) == 1 {
			break
		}
	}
	cmd.Process.Signal(syscall.SIGINT)
	cmd.Wait()
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != syscall.SIGINT {
		t.Errorf("it ended by %v", cmd.ProcessState)
	}
	if n := traces(t, dir); n != 0 {
		t.Errorf("%d traces are left", n)
	}
	if pid == 0 || syscall.Kill(pid, 0) == nil {
		t.Errorf("process %d is still there", pid)
	}
}

// Bounded output: the begin and the end of the failing run's.
func TestUntilFailOutput(t *testing.T) {
	t.Parallel()
	_, stdout, _ := untilFail(t, t.TempDir(), "--", "sh", "-c", "echo first; yes | head -c 5000000; echo last; exit 1")
	if !strings.HasPrefix(stdout, "first\n") || !strings.HasSuffix(stdout, "last\n") || !strings.Contains(stdout, " bytes left out]") || len(stdout) > 1100<<10 {
		t.Errorf("%d bytes, from %q to %q", len(stdout), stdout[:min(20, len(stdout))], stdout[max(0, len(stdout)-20):])
	}
}

// Chaos makes the seeded bugs at least three times as frequent as plain runs, taken together; and each is found by a search.
func TestChaosFindsBugs(t *testing.T) {
	const each = 25
	lib := built(t, "libprophet.so")
	var plain, chaos float64
	for _, name := range bugNames(t) {
		exe := bug(t, name)
		dir := t.TempDir()
		failed := func(env ...string) float64 {
			cmd := exec.Command(exe)
			cmd.Env = append(os.Environ(), env...)
			limit := time.AfterFunc(500*time.Millisecond, func() { cmd.Process.Kill() })
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			err := cmd.Wait()
			limit.Stop()
			if err != nil {
				return 1
			}
			return 0
		}
		var p, c float64
		for i := range each {
			p += failed()
			c += failed("LD_PRELOAD="+lib, fmt.Sprintf("PROPHET_TRACE=%s/%d.prophet", dir, i), fmt.Sprintf("PROPHET_OPTIONS=chaos=%d", i+1))
		}
		t.Logf("%-12s %3.0f of %d plain, %3.0f under chaos", name, p, each, c)
		plain, chaos = plain+p, chaos+c
	}
	// Three standard deviations of the difference are granted to luck.
	if slack := 3 * math.Sqrt(chaos+9*plain); chaos < 3*plain-slack || chaos < 20 {
		t.Errorf("%.0f failures under chaos, %.0f in plain runs", chaos, plain)
	}
}

// Under chaos programs do what they do without.
func TestChaosChangesNothing(t *testing.T) {
	t.Parallel()
	for _, argv := range [][]string{
		{prog(t, "processes")},
		{prog(t, "forks"), "100", "8", "exit"},
		{prog(t, "throw")},
		{prog(t, "many"), "50"},
		{"bash", "-c", "seq 1000 | sort -n | (sleep 0.1; cat) | tail -1; echo x | xargs -n1 sh -c 'exit 3'; echo $?"},
		{"python3", "-c", "import threading, subprocess, queue\nq = queue.Queue()\nts = [threading.Thread(target=lambda: [q.put(i) for i in range(50)]) for _ in range(4)]\n[t.start() for t in ts]\n[t.join() for t in ts]\nprint(q.qsize(), subprocess.run(['true']).returncode)"},
	} {
		for _, options := range []string{"chaos=1", "chaos=2", "chaos=3,serial"} {
			t.Run(filepath.Base(argv[0])+" "+options, func(t *testing.T) {
				t.Parallel()
				_, r := Same(t, Cmd{Argv: argv, Options: options, Timeout: time.Minute})
				undamaged(t, r.Trace)
			})
		}
	}
}

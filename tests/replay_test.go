package tests

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"prophet/runtime/replay"
)

// again re-executes a recorded run n times; each must be identical, with the same output.
func again(t *testing.T, c Cmd, rec Run, n int) {
	t.Helper()
	for i := range n {
		re := c.Reexecuted(t, rec)
		compare(t, "exit status of the re-execution", rec.Status, re.Status)
		compare(t, "standard output of the re-execution", rec.Stdout, re.Stdout)
		compare(t, "standard error of the re-execution", rec.Stderr, re.Stderr)
		if t.Failed() {
			t.Fatalf("re-execution %d of %d", i+1, n)
		}
	}
}

// Nothing that a re-execution writes stays, wherever the library lies: a directory that was shared because the library lay
// in it let writes through.
func TestReplayWritesNothing(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"libprophet.so", "replayd", "prophet"} {
		data, err := os.ReadFile(built(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(argv ...string) string {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir = work
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", argv, err, out)
		}
		return string(out)
	}
	program := []string{"sh", "-c", "echo written > f; cat f; mkdir d; echo more > d/g"}
	run(append([]string{"../prophet", "record", "-q", "-o", "../t.prophet", "--"}, program...)...)
	if err := errors.Join(os.Remove(filepath.Join(work, "f")), os.RemoveAll(filepath.Join(work, "d"))); err != nil {
		t.Fatal(err)
	}
	if out := run(append([]string{"../replayd", "--trace", "../t.prophet", "--"}, program...)...); !strings.Contains(out, "identical") {
		t.Error(out)
	}
	list, err := os.ReadDir(work)
	if err != nil || len(list) > 0 {
		t.Errorf("left outside: %v, %v", list, err)
	}
}

// Of several that wait for a queue's messages each receives when it did. Who came first took what another had got, and all stood where the
// next was sent after that: 10 of 10. Those of System V were named by who came first, and came before they had been sent.
func TestReplayQueued(t *testing.T) {
	t.Parallel()
	bin := compile(t, filepath.Join(top, "tests", "replay", "queued.c"))
	for _, who := range []string{"threads", "processes"} {
		for _, argv := range [][]string{{bin, who}, {bin, who, "sysv"}} {
			cmd := Cmd{Argv: argv}
			again(t, cmd, cmd.Recorded(t), 3)
		}
	}
}

// TestReplayTorture re-executes the program that uses every kind of object in random ways. The result that it prints
// depends on every order.
func TestReplayTorture(t *testing.T) {
	bin := compile(t, filepath.Join(top, "tests", "order", "torture.c"))
	rows := []struct{ seed, threads, ops, processes, times int }{
		{1, 2, 8000, 1, 10}, {2, 4, 4000, 1, 10}, {3, 16, 1500, 1, 10}, {4, 64, 320, 1, 5}, {7, 32, 400, 1, 5}, {5, 1, 3000, 3, 5}, {6, 4, 1500, 4, 5},
	}
	visited := 0
	for _, row := range rows {
		visited++
		t.Run(fmt.Sprintf("%d threads in %d processes, seed %d", row.threads, row.processes, row.seed), func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			cmd := Cmd{Argv: []string{bin, strconv.Itoa(row.seed), strconv.Itoa(row.threads), strconv.Itoa(row.ops), strconv.Itoa(row.processes), log}}
			rec := cmd.Recorded(t)
			if rec.Status != "exit status 0" || rec.Stderr != "" || len(rec.Stdout) != 17 {
				t.Fatalf("%s: %q %q", rec.Status, rec.Stdout, rec.Stderr)
			}
			again(t, cmd, rec, row.times)
		})
	}
	if visited != len(rows) {
		t.Fatal("not all rows visited")
	}
}

// Locks that nobody else holds are compared where they lie in the trace: that is what makes them cheap. So are those whose places in
// the order are told, as two places of the program take turns.
func TestReplayQuick(t *testing.T) {
	t.Parallel()
	for _, argv := range [][]string{{compile(t, filepath.Join(top, "bench", "progs", "locks.c")), "1", "200000"}, {prog(t, "sites")}} {
		t.Run(filepath.Base(argv[0]), func(t *testing.T) {
			trace := filepath.Join(t.TempDir(), "run.prophet")
			record := exec.Command(built(t, "prophet"), append([]string{"record", "-q", "-o", trace, "--"}, argv...)...)
			want, err := record.Output()
			if err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			cmd := exec.Command(built(t, "replayd"), "--json", "--trace", trace)
			cmd.Stderr = &said
			out, err := cmd.Output()
			if err != nil || string(out) != string(want) {
				t.Fatalf("%v: %q %s", err, out, clip(said.String()))
			}
			var r replay.Result
			if err := json.Unmarshal([]byte(said.String()), &r); err != nil || !r.Identical || r.Events < 300000 {
				t.Fatalf("%v: %s", err, clip(said.String()))
			}
			if r.Quick < r.Events*9/10 {
				t.Errorf("of %d events only %d were compared where they lie", r.Events, r.Quick)
			}
		})
	}
}

// What threads of timers do comes where it came, though no lock says so, and no timer runs: in the order in which they began and
// were over, as far as whoever set the timer could know.
func TestReplayFired(t *testing.T) {
	t.Parallel()
	bin := compile(t, filepath.Join(top, "tests", "replay", "fired.c"))
	for _, options := range []string{"", "serial"} {
		t.Run(options, func(t *testing.T) {
			cmd := Cmd{Argv: []string{bin}, Options: options}
			rec := cmd.Recorded(t)
			if !strings.Contains(rec.Stdout, "timer 2, tick ") || !strings.Contains(rec.Stdout, "timer 7, tick ") || !strings.Contains(rec.Stdout, "timer 5, tick ") {
				t.Fatalf("%s: %q %s", rec.Status, rec.Stdout, clip(rec.Stderr))
			}
			again(t, cmd, rec, 5)
		})
	}
}

// Ten thousand threads are executed again, some hundreds of them alive at once, or all: in time that grows with their number
// and not with its square, as it did when each place of a lock woke all that waited for one.
func TestReplayCrowd(t *testing.T) {
	bin := compile(t, filepath.Join(top, "tests", "replay", "crowd.c"))
	for _, alive := range []string{"500", "10000"} {
		cmd := Cmd{Argv: []string{bin, "10000", alive}}
		rec := cmd.Recorded(t)
		if rec.Status != "exit status 0" || !strings.HasPrefix(rec.Stdout, "10000 made, 10000 came, ") {
			t.Fatalf("%s alive: %s: %q %s", alive, rec.Status, rec.Stdout, clip(rec.Stderr))
		}
		compare(t, "standard output", rec.Stdout, cmd.Reexecuted(t, rec).Stdout)
	}
}

// Sleeps take no time, but what others did meanwhile is done.
func TestReexecuteSlept(t *testing.T) {
	t.Parallel()
	script := "rm -f there; exec " + compile(t, filepath.Join(top, "tests", "replay", "slept.c"))
	var err error
	for range 3 {
		// Where the machine held a thread up between its waking and its look, the trace cannot tell what it saw.
		if err = reruns(t, 5, script, nil); err == nil {
			return
		}
	}
	t.Fatal(err)
}

package tests

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prophet/cabi"
	"prophet/runtime/demand"
	"prophet/runtime/issued"
	"prophet/runtime/target"
)

// The real replayd as a target, through each kind that needs nobody else: what it says of itself, a file there and back, and
// nothing left. Faults and ssh are package replayd/far's tests.
func TestTarget(t *testing.T) {
	replayd := built(t, "replayd")
	t.Setenv("PROPHET_REPLAYD", replayd)
	for _, form := range []string{"local,cpus=1,dir=HERE", "exec:TMPDIR=HERE sh", "exec:" + replayd + " target --dir HERE --cpus 1"} {
		t.Run(form[:5], func(t *testing.T) {
			dir := t.TempDir()
			s, err := target.Parse(strings.ReplaceAll(form, "HERE", dir))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			far, err := target.Open(ctx, s)
			if err != nil {
				t.Fatal(err)
			}
			defer far.Close()
			info, err := far.Hello(ctx, true, nil)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(form, "cpus") && (info.CPUs != 1 || info.Machine.CPUs != 1) {
				t.Errorf("%d and %d CPUs", info.CPUs, info.Machine.CPUs)
			}
			if info.Machine.Disk == nil || !strings.HasPrefix(info.Machine.Disk.Dir, dir) {
				t.Errorf("its disk: %+v", info.Machine.Disk)
			}
			if err := far.Put(ctx, "x", bytes.NewReader([]byte("hello"))); err != nil {
				t.Fatal(err)
			}
			back := filepath.Join(t.TempDir(), "x")
			if err := far.Get(ctx, "x", back, 1<<20); err != nil {
				t.Fatal(err)
			}
			if b, _ := os.ReadFile(back); string(b) != "hello" {
				t.Errorf("%q came back", b)
			}
			logged(t, far)
			if err := far.Close(); err != nil {
				t.Error(err)
			}
			if list, _ := os.ReadDir(dir); len(list) != 0 {
				t.Errorf("it left %v", list)
			}
		})
	}
}

// logged issues a program there and brings its log home.
func logged(t *testing.T, far *target.Target) {
	t.Helper()
	dir := t.TempDir()
	program, back := filepath.Join(dir, "program"), filepath.Join(dir, "log")
	if out, err := exec.Command(built(t, "replayd"), "issue", "--trace", recordedProgram(t, "barrier", "2", "20"), "--keep", program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := far.Put(t.Context(), "program", f); err != nil {
		t.Fatal(err)
	}
	r, err := far.Issue(t.Context(), target.Request{Args: []string{"--program", "program", "--dir", ".", "--log", "log"}}, nil)
	if err != nil || r.Status != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := far.Get(t.Context(), "log", back, issued.LogMax); err != nil {
		t.Fatal(err)
	}
	log, err := issued.Open(back)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if sum, err := demand.Sum(program); err != nil || sum != log.Program {
		t.Errorf("it is of %x, not %x: %v", log.Program, sum, err)
	}
	ops, last := 0, uint64(0)
	for i := range log.Threads {
		var op cabi.ProgLog
		it := log.Iter(i)
		for it.Next(&op) == nil {
			ops++
			last = max(last, op.End)
		}
	}
	if len(log.Threads) != 3 || ops < 2*20*3 || log.Nanos == 0 || last < log.Begin || last > log.End {
		t.Errorf("%d threads, %d operations, %+v", len(log.Threads), ops, log.Head)
	}
}

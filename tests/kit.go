// Package tests runs programs bare and recorded and compares what can be seen of them. This file is the kit; calls/
// holds a program for each intercepted function, apps_test.go runs what Debian ships, faults_test.go breaks things.
package tests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Run is what a program did.
type Run struct {
	Stdout, Stderr string
	Status         string // "exit status 0", "signal: aborted", …
	Trace          string // "" of a bare run
	Dir            string // where it ran
}

// top is the source tree's top.
var top = func() string {
	dir, _ := os.Getwd()
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}()

// built is a product of make; a test that needs one that is not there fails and says so.
func built(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(top, "build", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is missing: run 'make' first", path)
	}
	return path
}

// Cmd is a command to be run in a directory of its own.
type Cmd struct {
	Argv    []string
	Env     []string // added
	Stdin   string
	Timeout time.Duration // 60 s when 0
	Options string        // PROPHET_OPTIONS of a recorded run
	Setup   func(dir string) error
	dir     string // "": one of its own
}

func (c Cmd) run(t testing.TB, env []string) Run {
	t.Helper()
	dir := c.dir
	if dir == "" {
		dir = t.TempDir()
	}
	if c.Setup != nil {
		if err := c.Setup(dir); err != nil {
			t.Fatalf("setting up: %v", err)
		}
	}
	limit := c.Timeout
	if limit == 0 {
		limit = 60 * time.Second
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), c.Env...), env...)
	cmd.Stdin = strings.NewReader(c.Stdin)
	cmd.WaitDelay = 5 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	r := Run{Stdout: out.String(), Stderr: errs.String(), Dir: dir}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		r.Status = fmt.Sprintf("still running after %v", limit)
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		r.Status = "exit status 0"
	case errors.As(err, &exit):
		r.Status = exit.String()
	default:
		t.Fatalf("%s: %v (is it installed? see tests/packages)", c.Argv[0], err)
	}
	// The directory has another name in each run.
	r.Stdout = strings.ReplaceAll(r.Stdout, dir, "DIR")
	r.Stderr = strings.ReplaceAll(r.Stderr, dir, "DIR")
	return r
}

// Bare runs the command without the library.
func (c Cmd) Bare(t testing.TB) Run { t.Helper(); return c.run(t, nil) }

// Recorded runs it with the library preloaded.
func (c Cmd) Recorded(t testing.TB) Run {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "run.prophet")
	r := c.run(t, []string{"LD_PRELOAD=" + built(t, "libprophet.so"), "PROPHET_TRACE=" + trace, "PROPHET_OPTIONS=" + c.Options})
	r.Trace = trace
	return r
}

// Reexecuted runs it again under replayd with the trace of a recorded run, where that ran, and fails unless it was
// identical. Its stderr is without replayd's line.
func (c Cmd) Reexecuted(t testing.TB, rec Run) Run {
	t.Helper()
	list, err := os.ReadDir(rec.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		os.RemoveAll(filepath.Join(rec.Dir, e.Name()))
	}
	c.dir = rec.Dir
	c.Argv = append([]string{built(t, "replayd"), "--trace", rec.Trace, "--"}, c.Argv...)
	r := c.run(t, nil)
	var rest []string
	identical := false
	for _, l := range strings.SplitAfter(r.Stderr, "\n") {
		if strings.HasPrefix(l, "replayd: identical: ") {
			identical = true
		} else {
			rest = append(rest, l)
		}
	}
	r.Stderr = strings.Join(rest, "")
	if !identical {
		t.Errorf("the re-execution is not identical: %s: %s", r.Status, clip(r.Stderr))
	}
	return r
}

// Same runs the command both ways and fails where anything that can be seen differs.
func Same(t testing.TB, c Cmd) (bare, recorded Run) {
	t.Helper()
	bare, recorded = c.Bare(t), c.Recorded(t)
	compare(t, "exit status", bare.Status, recorded.Status)
	compare(t, "standard output", bare.Stdout, recorded.Stdout)
	compare(t, "standard error", bare.Stderr, recorded.Stderr)
	return bare, recorded
}

func compare(t testing.TB, what, bare, recorded string) {
	t.Helper()
	if bare != recorded {
		t.Errorf("%s differs\nbare:     %s\nrecorded: %s", what, clip(bare), clip(recorded))
	}
}

func clip(s string) string {
	if len(s) > 2000 {
		return s[:1000] + "\n…\n" + s[len(s)-1000:]
	}
	return s
}

// lateness watches by how much the machine is late with what is asked of it, until it is asked: a bound on time that a
// program must keep is a bound on what remains of the time without that.
func lateness() func() time.Duration {
	stop, late := make(chan struct{}), make(chan time.Duration)
	go func() {
		const nap = 2 * time.Millisecond
		var sum time.Duration
		for {
			began := time.Now()
			select {
			case <-stop:
				late <- sum
				return
			case <-time.After(nap):
			}
			if d := time.Since(began) - nap; d > time.Millisecond { // a quiet machine is not as late
				sum += d
			}
		}
	}()
	return func() time.Duration {
		close(stop)
		return <-late
	}
}

package tests

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prophet/runtime/pause"
)

// paused is a program that is being recorded and gets paused.
type paused struct {
	*exec.Cmd
	out  *bufio.Reader
	path string
	run  *pause.Run
}

// pausable starts a program and waits until it says that it is ready.
func pausable(t *testing.T, argv ...string) *paused {
	t.Helper()
	p := &paused{Cmd: exec.Command(argv[0], argv[1:]...), path: filepath.Join(t.TempDir(), "run.prophet")}
	p.Env = append(os.Environ(), "LD_PRELOAD="+built(t, "libprophet.so"), "PROPHET_TRACE="+p.path)
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Process.Kill(); p.Wait() })
	if s, err := p.out.ReadString('\n'); s != "ready\n" {
		t.Fatalf("it said %q (%v)", s, err)
	}
	if p.run, err = pause.Open(p.path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.run.Close() })
	return p
}

func (p *paused) pause(t *testing.T) *pause.Report {
	t.Helper()
	rep, err := p.run.Pause()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range rep.Moving {
		t.Errorf("thread %d of process %d still moves after %v", m.TID, m.PID, rep.Took)
	}
	if rep.Took > 310*time.Millisecond {
		t.Errorf("the pause took %v", rep.Took)
	}
	return rep
}

func (p *paused) resume(t *testing.T) *pause.Report {
	t.Helper()
	rep, err := p.run.Resume()
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// ends reads what else it says, and how it ends.
func (p *paused) ends(t *testing.T) string {
	t.Helper()
	b, err := io.ReadAll(p.out)
	if err != nil {
		t.Error(err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("%v: %s", err, b)
	}
	return string(b)
}

// Every kind of wait is paused in the middle, for longer than what it has left, with and without threads that make the
// pause stop the process by a signal: each behaves as if nothing had happened, in virtual time.
func TestPauseWaits(t *testing.T) {
	for _, spinners := range []int{0, 1, 4} {
		for group := range 6 {
			t.Run(fmt.Sprintf("%d-%d", spinners, group), func(t *testing.T) {
				p := pausable(t, prog(t, "pausing"), fmt.Sprint(spinners), fmt.Sprint(group))
				time.Sleep(80 * time.Millisecond)
				rep := p.pause(t)
				if group != 5 && (spinners > 0) != (rep.Halted > 0) {
					t.Errorf("%d processes were stopped by a signal", rep.Halted)
				}
				time.Sleep(600 * time.Millisecond)
				p.resume(t)
				if s := p.ends(t); !strings.HasPrefix(s, "0 wrong in ") {
					t.Error(s)
				}
				undamaged(t, p.path)
			})
		}
	}
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The ways to run a program.
const (
	wayBare    = "bare"
	wayNone    = "none"    // recorded with inputs=none
	wayDefault = "default" // recorded with the inputs that are kept by default
	wayStacks  = "stacks=" // and a rate: the same, with stacks at that rate
)

// env is what a program gets: its own environment, and the library unless it runs bare. The trace's path is returned.
func (b *bench) env(way string) (env []string, trace string) {
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "LD_PRELOAD=") && !strings.HasPrefix(e, "PROPHET_") {
			env = append(env, e)
		}
	}
	env = append(env, "LC_ALL=C.UTF-8")
	if way == wayBare {
		return env, ""
	}
	b.traces++
	trace = filepath.Join(b.work, "trace", fmt.Sprintf("%d.prophet", b.traces))
	_ = os.MkdirAll(filepath.Dir(trace), 0o777)
	_ = os.Chmod(filepath.Dir(trace), 0o777)
	options := "inputs=" + way
	if rate, ok := strings.CutPrefix(way, wayStacks); ok {
		options = "stacks=" + rate
	}
	return append(env, "LD_PRELOAD="+b.lib, "PROPHET_TRACE="+trace, "PROPHET_OPTIONS="+options), trace
}

// proc is one run of a program.
type proc struct {
	cmd   *exec.Cmd
	errs  bytes.Buffer
	trace string
}

// command prepares a run; its output is dropped.
func (b *bench) command(way, dir string, argv ...string) *proc {
	p := &proc{cmd: exec.Command(argv[0], argv[1:]...)}
	p.cmd.Env, p.trace = b.env(way)
	// ext4 passes over the inodes that were freed in the last minute, so that each run's short-lived files would make those of
	// the next one dearer: 31 to 44 us for one of Python's, a tenth of its CPU time.
	p.cmd.Env = append(p.cmd.Env, "TMPDIR="+dir)
	p.cmd.Dir = dir
	p.cmd.Stderr = &p.errs
	p.cmd.WaitDelay = 5 * time.Second
	return p
}

func (p *proc) failed(err error) error {
	return fmt.Errorf("%s: %w\n%s", strings.Join(p.cmd.Args, " "), err, lastLines(p.errs.String(), 10))
}

func lastLines(s string, n int) string {
	l := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(l[max(0, len(l)-n):], "\n")
}

// wait ends a run and returns the CPU seconds that the program and all children it waited for have used.
func (p *proc) wait() (float64, error) {
	err := p.cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	if err != nil {
		return 0, p.failed(err)
	}
	s := p.cmd.ProcessState
	return (s.UserTime() + s.SystemTime()).Seconds(), nil
}

// run runs a program to its end.
func (p *proc) run() (float64, error) {
	if err := p.cmd.Start(); err != nil {
		return 0, p.failed(err)
	}
	return p.wait()
}

// stop ends a server that was started.
func (p *proc) stop(sig syscall.Signal) (float64, error) {
	_ = p.cmd.Process.Signal(sig)
	done := time.AfterFunc(20*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer done.Stop()
	cpu, err := p.wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == sig {
		s := p.cmd.ProcessState
		return (s.UserTime() + s.SystemTime()).Seconds(), nil
	}
	return cpu, err
}

// output runs a helper bare and returns what it says.
func (b *bench) output(dir string, argv ...string) (string, error) {
	p := b.command(wayBare, dir, argv...)
	var out bytes.Buffer
	p.cmd.Stdout = &out
	_, err := p.run()
	return out.String(), err
}

// build compiles one of our C programs.
func (b *bench) build(name string, flags ...string) (string, error) {
	exe := filepath.Join(b.work, name)
	argv := append([]string{"gcc", "-O1", "-g0", "-D_GNU_SOURCE", "-pthread", "-o", exe, filepath.Join(b.src, "progs", name+".c")}, flags...)
	_, err := b.output(b.work, argv...)
	return exe, err
}

// need reports which programs are not installed.
func need(programs ...string) error {
	var missing []string
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			missing = append(missing, p)
		}
	}
	if missing != nil {
		return fmt.Errorf("not installed: %s", strings.Join(missing, ", "))
	}
	return nil
}

// until waits for something that a server does when it is ready.
func until(what string, ok func() bool) error {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return nil
		}
	}
	return fmt.Errorf("waited 20 s for %s", what)
}

func writeFile(path string, fill func(w io.Writer)) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	fill(f)
	return f.Close()
}

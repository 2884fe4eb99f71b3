package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"prophet/cabi"
	"prophet/runtime/recovery"
	"prophet/runtime/replay"
	"prophet/runtime/run"
	"prophet/runtime/trace"
)

// reexec is one re-execution.
type reexec struct {
	trace    string // as the user named it
	args     []string
	realtime bool

	t     *trace.Trace
	dir   string // where the stream files are
	work  string // ours, removed at the end
	index *os.File
	cmd   *exec.Cmd
}

// tidMax is the largest number that the kernel gives.
const tidMax = 1 << 22

// stallAfter is how long nothing may happen in a world in which every thread waits.
const stallAfter = 3 * time.Second

func (r *reexec) run(ctx context.Context) (int, error) {
	if err := r.open(); err != nil {
		return run.StatusOurs, err
	}
	defer r.close()
	if err := r.start(); err != nil {
		return run.StatusOurs, err
	}
	return r.watch(ctx)
}

func (r *reexec) open() error {
	t, live, _, err := recovery.Open(r.trace, nil)
	if err != nil {
		return err
	}
	r.t = t
	if live {
		return fmt.Errorf("%s is being recorded; its run has to end first", r.trace)
	}
	if r.work, err = os.MkdirTemp("", "replayd-"); err != nil {
		return err
	}
	if r.dir, err = filepath.Abs(r.trace); err != nil {
		return err
	}
	if t.Packed {
		r.dir = filepath.Join(r.work, "trace")
		var bad error
		if err := t.Unpack(r.dir, func(e error) { bad = e }, nil); err != nil {
			return err
		}
		if bad != nil {
			return bad
		}
		t.Close()
		if r.t, err = trace.Open(r.dir); err != nil {
			return err
		}
	}
	if len(r.args) == 0 {
		r.args = r.t.Meta.Command
	}
	if len(r.args) == 0 {
		return errors.New("the trace does not say which command it is of: name it behind --")
	}
	flags := uint32(0)
	if r.realtime {
		flags |= cabi.ReplayRealtime
	}
	b, err := replay.Build(r.t, r.dir, flags)
	if err != nil {
		return err
	}
	path := filepath.Join(r.work, "index")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		return err
	}
	r.index, err = os.OpenFile(path, os.O_RDWR, 0)
	return err
}

func (r *reexec) close() {
	if r.index != nil {
		r.index.Close()
	}
	if r.t != nil {
		r.t.Close()
	}
	if r.work != "" {
		os.RemoveAll(r.work)
	}
}

func (r *reexec) start() error {
	lib, err := run.FindLibrary()
	if err != nil {
		return err
	}
	exe, err := exec.LookPath(r.args[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return err
	}
	preload := lib
	var env []string
	for _, e := range os.Environ() {
		switch k, v, _ := strings.Cut(e, "="); k {
		case "LD_PRELOAD":
			if v != "" {
				preload += ":" + v
			}
		case "PROPHET_TRACE", "PROPHET_OPTIONS", "PROPHET_RUN":
		default:
			env = append(env, e)
		}
	}
	level := r.t.Meta.Options.Level
	if level == "" {
		level = "full"
	}
	env = append(env, "LD_PRELOAD="+preload, "PROPHET_TRACE="+filepath.Join(r.work, "run.prophet"),
		"PROPHET_OPTIONS=level="+level+",replay="+filepath.Join(r.work, "index"))
	r.cmd = &exec.Cmd{Path: exe, Args: r.args, Env: env, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	return r.cmd.Start()
}

// state reads the index as it is now.
func (r *reexec) state() (*replay.State, error) {
	st, err := r.index.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, st.Size())
	if _, err := r.index.ReadAt(b, 0); err != nil {
		return nil, err
	}
	return replay.Parse(b)
}

var reportedAt = func() int64 {
	var h cabi.Replay
	// Offsets follow from sizes: Reported is the word behind Diverged, which is behind Events.
	return int64(binary.Size(h.Magic) + 6*4 + 7*8 + 4)
}()

func (r *reexec) reported() bool {
	var b [4]byte
	_, err := r.index.ReadAt(b[:], reportedAt)
	return err == nil && binary.LittleEndian.Uint32(b[:]) != 0
}

func (r *reexec) watch(ctx context.Context) (int, error) {
	ended := make(chan struct{})
	go func() {
		r.cmd.Wait() // its error repeats what the state says
		close(ended)
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var before uint64
	since := time.Now()
	for {
		select {
		case <-ended:
			return r.verdict()
		case <-ctx.Done():
			s, err := r.state()
			r.kill(ended)
			if err != nil {
				return run.StatusOurs, err
			}
			return run.StatusOurs, errors.New("interrupted: " + s.Stall(r.t))
		case <-tick.C:
		}
		if r.reported() {
			r.kill(ended)
			return r.verdict()
		}
		if time.Since(since) < stallAfter {
			continue
		}
		s, err := r.state()
		if err != nil {
			return run.StatusOurs, err
		}
		if n := s.Events(); n != before || !s.AllWait() {
			before = n
			since = time.Now()
			continue
		}
		r.kill(ended)
		return run.StatusOurs, errors.New("stalled: " + s.Stall(r.t))
	}
}

func (r *reexec) kill(ended <-chan struct{}) {
	if s, err := r.state(); err == nil {
		for i := range s.Threads {
			if tid := s.Threads[i].Now; tid > 1 && tid <= tidMax { // what else stands there is no thread: never -1
				unix.Kill(int(tid), unix.SIGKILL)
			}
		}
	}
	r.cmd.Process.Kill()
	<-ended
}

// verdict says how it went once the first process is gone.
func (r *reexec) verdict() (int, error) {
	s, err := r.state()
	if err != nil {
		return run.StatusOurs, err
	}
	if s.Head.Diverged != 0 {
		return run.StatusOurs, errors.New(s.Report(r.t))
	}
	if less := s.Missing(r.t); less != "" {
		return run.StatusOurs, errors.New(less)
	}
	fmt.Fprintf(os.Stderr, "replayd: identical: %d events, %d threads, %d processes\n", s.Events(), len(r.t.Threads), len(r.t.Procs))
	ws := r.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal()), nil
	}
	return ws.ExitStatus(), nil
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"prophet/cabi"
	"prophet/runtime/inside"
	"prophet/runtime/pause"
	"prophet/runtime/replay"
	"prophet/runtime/scratch"
	"prophet/runtime/shm"
	"prophet/runtime/trace"
)

// outlived is a re-execution whose daemon may die: who watches over it then does what is left to be done, and says how it
// ended.
type outlived struct {
	dir   string // of its control file
	work  string
	held  *scratch.Dir // the same: ours when the daemon is killed
	index *shm.Index
	init  int // pidfd of the world's process 1
}

// outliving is told the pid of the world's process 1 while its parent, the daemon, lives.
func outliving(dir, work, line string) (*outlived, error) {
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return nil, err
	}
	o := &outlived{dir: dir, work: work}
	if o.held, err = scratch.Hold(work); err != nil {
		return nil, err
	}
	if o.init, err = unix.PidfdOpen(pid, 0); errors.Is(err, unix.ESRCH) {
		o.init = -1
	} else if err != nil {
		return nil, fmt.Errorf("process %d cannot be watched: %w", pid, err)
	}
	o.index, err = shm.OpenIndex(filepath.Join(work, "index"))
	return o, err
}

// gone reports whether the world has ended.
func (o *outlived) gone(wait time.Duration) bool {
	if o.init < 0 {
		return true
	}
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(o.init), Events: unix.POLLIN}}, int(wait.Milliseconds()))
	return err == nil && n > 0
}

func (o *outlived) kill() {
	if o.init >= 0 {
		unix.PidfdSendSignal(o.init, unix.SIGKILL, nil, 0)
	}
	for !o.gone(time.Second) {
	}
}

// take is called when the daemon has been killed.
func (o *outlived) take(stay bool) error {
	if o.gone(0) {
		fmt.Fprintln(os.Stderr, "replayd: it was killed; the re-execution has ended, too")
	} else if err := o.leave(stay); err != nil {
		o.kill()
		o.clear()
		return err
	}
	t, err := trace.Open(o.traceDir())
	if err != nil {
		o.kill()
		o.clear()
		return err
	}
	defer t.Close()
	defer o.clear()
	r := &reexec{t: t, args: t.Meta.Command}
	var before uint64
	for since := time.Now(); !o.gone(100 * time.Millisecond); {
		s, err := replay.Parse(o.index.Bytes())
		if err != nil {
			return err
		}
		if o.index.Reported() {
			o.kill()
			break
		}
		runs := slices.ContainsFunc(s.Threads, func(t cabi.ReplayThread) bool { return t.State == cabi.TurnRuns })
		if n := s.Events(); n != before || runs || o.stands() {
			before, since = n, time.Now()
		} else if time.Since(since) > stallAfter {
			d := s.Stall(t, r.outside(s), nil)
			o.kill()
			return errors.New(d.Text())
		}
	}
	s, err := replay.Parse(o.index.Bytes())
	if err == nil {
		_, err = r.judge(s, nil)
	}
	return err
}

// stands reports whether a pause is in force, or threads stand by what the daemon had set.
func (o *outlived) stands() bool {
	c, err := shm.OpenControl(o.dir)
	if err != nil {
		return false
	}
	defer c.Close()
	return c.Pause()&1 != 0
}

func (o *outlived) traceDir() string {
	s, err := replay.Parse(o.index.Bytes())
	if err != nil {
		return ""
	}
	dir, _, _ := strings.Cut(string(s.Head.Dir[:]), "\x00")
	return dir
}

// leave lets the world go on, or keeps it paused, and says so.
func (o *outlived) leave(stay bool) error {
	r, err := pause.Open(o.dir)
	for begin := time.Now(); err != nil && time.Since(begin) < time.Second; time.Sleep(5 * time.Millisecond) { // it has just been started
		r, err = pause.Open(o.dir)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	held := false
	for _, t := range o.index.Threads() {
		held = held || t.Until != cabi.NoLimit
	}
	if stay && (r.Paused() || held) {
		if _, err := r.Pause(); err != nil {
			return err
		}
		o.index.Free() // so that a resume is one
		fmt.Fprintf(os.Stderr, "replayd: it was killed; the re-execution stays paused: prophet ctl %s resume\n", trace.Clean(o.dir))
		return nil
	}
	o.index.Free()
	from := ""
	if r.Paused() || held {
		from = " from its pause"
	}
	if _, err := r.Resume(); err != nil && !errors.Is(err, pause.ErrNotPaused) {
		return err
	}
	fmt.Fprintf(os.Stderr, "replayd: it was killed; the re-execution goes on%s\n", from)
	return nil
}

// clear removes what the daemon would have removed.
func (o *outlived) clear() {
	o.index.Close()
	forget(o.work)
	o.held.Close()
	inside.Sweep()
}

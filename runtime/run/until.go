package run

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"prophet/runtime/ignored"
	"prophet/runtime/recovery"
	"prophet/runtime/shm"
	"prophet/runtime/term"
)

// StatusTimeout is the status of a run that its time limit ended, as timeout(1) has it.
const StatusTimeout = 124

const (
	outputKept = 512 << 10       // of the begin of a run's output, and of its end
	leftGrace  = time.Second     // what a run's first process may leave behind has this long to end
	killGrace  = 5 * time.Second // for killed processes to be gone
)

// Search is a hunt for a run that fails.
type Search struct {
	Options
	Runs    int           // at most; 0: until one fails
	Timeout time.Duration // a run that takes longer has failed; 0: none does
}

// Catch is what a Search found.
type Catch struct {
	Runs     int           // how many there were
	Took     time.Duration // all of them
	Result   *Result       // of the run that failed; nil: none did
	TimedOut bool          // it took too long, and was killed
	Seed     *uint64       // its chaos
	Signal   os.Signal     // we were told to end; Result is nil
	out      [2]excerpt
}

// Rate is runs per second.
func (c *Catch) Rate() float64 { return float64(c.Runs) / max(c.Took.Seconds(), 1e-9) }

// excerpt keeps the begin and the end of what is written to it.
type excerpt struct {
	head, tail []byte
	left       int64 // out between them
}

func (e *excerpt) Write(p []byte) (int, error) {
	n := len(p)
	k := min(n, outputKept-len(e.head))
	e.head = append(e.head, p[:k]...)
	e.tail = append(e.tail, p[k:]...)
	if over := len(e.tail) - outputKept; over > outputKept { // seldom, so that bytes are moved once on average
		e.tail = append(e.tail[:0], e.tail[over:]...)
		e.left += int64(over)
	}
	return n, nil
}

func (e *excerpt) print(f *os.File) {
	f.Write(e.head)
	if over := len(e.tail) - outputKept; over > 0 {
		e.tail = e.tail[over:]
		e.left += int64(over)
	}
	if e.left > 0 {
		fmt.Fprintf(f, "\n[%d bytes left out]\n", e.left)
	}
	f.Write(e.tail)
}

// Find runs the program again and again, each time recorded into a fresh trace, until a run fails: its trace is kept,
// those of the others are removed. A run's standard input is empty, its output is kept in memory. A run is over when its
// first process has ended; what that leaves behind is killed after a second. A *Failed says that nothing was started.
func (s Search) Find() (*Catch, error) {
	cmd, path, err := prepare(&s.Options)
	if err != nil {
		return nil, err
	}
	signals := make(chan os.Signal, 8)
	ignored.Keep()
	for _, n := range []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM} {
		if !signal.Ignored(n) {
			signal.Notify(signals, n)
		}
	}
	defer signal.Stop(signals)
	p := term.NewProgress("until one fails")
	defer p.Done()
	c := &Catch{}
	begin := time.Now()
	for s.Runs == 0 || c.Runs < s.Runs {
		o := s.Options
		if s.Chaos != nil {
			seed := *s.Chaos + uint64(c.Runs)
			o.Chaos, c.Seed = &seed, &seed
		}
		run := &exec.Cmd{Path: cmd.Path, Args: cmd.Args, Env: append(slices.Clone(cmd.Env), options(&o))} // the last one counts
		over, err := s.once(run, path, c, signals)
		c.Runs++
		c.Took = time.Since(begin)
		if err != nil {
			return nil, err
		}
		if over {
			return c, nil
		}
		p.Say(func() string { return fmt.Sprintf("%d runs, %.1f/s, none failed", c.Runs, c.Rate()) })
	}
	c.Seed = nil
	return c, nil
}

// once makes one run; over: there need be no other.
func (s *Search) once(cmd *exec.Cmd, path string, c *Catch, signals <-chan os.Signal) (over bool, err error) {
	c.out = [2]excerpt{}
	cmd.Stdout, cmd.Stderr = &c.out[0], &c.out[1]
	cmd.WaitDelay = leftGrace
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that all of it can be killed; a terminal's signals reach us alone
	if err := start(cmd, s.ASLR); err != nil {
		return true, notStarted(err)
	}
	group := -cmd.Process.Pid
	grace := leftGrace
	done := make(chan struct{})
	go func() {
		// Its other errors repeat what the state says.
		if errors.Is(cmd.Wait(), exec.ErrWaitDelay) {
			grace = 0
		}
		close(done)
	}()
	var limit <-chan time.Time
	if s.Timeout > 0 {
		t := time.NewTimer(s.Timeout)
		defer t.Stop()
		limit = t.C
	}
	timedOut := false
	select {
	case <-done:
	case <-limit:
		timedOut = true
	case c.Signal = <-signals:
	}
	if timedOut || c.Signal != nil {
		killAll(group, path)
		<-done
	}
	res := ended(path, cmd.ProcessState)
	if c.Signal != nil {
		_, err := discard(group, path, grace)
		return true, err
	}
	if timedOut {
		res.Status, res.Signal = StatusTimeout, 0
	}
	if res.Status == 0 {
		recorded, err := discard(group, path, grace)
		if err == nil && !recorded {
			err = errNothing
		}
		return false, err
	}
	if err := leave(group, path, grace); err != nil {
		return true, err
	}
	c.Result, c.TimedOut = res, timedOut
	killed := *res
	if timedOut {
		killed.Signal = unix.SIGKILL
	}
	res.Err = finish(&killed, s.Prog)
	res.Meta, res.Live = killed.Meta, killed.Live
	return true, nil
}

// killAll kills a run's process group and those of its processes that have left it.
func killAll(group int, path string) {
	unix.Kill(group, unix.SIGKILL)
	if c, err := shm.OpenControl(path); err == nil {
		for _, pid := range recovery.LivePids(c) {
			unix.Kill(pid, unix.SIGKILL)
		}
		c.Close()
	}
}

// leave waits until no process of a run is live, and kills them after the grace.
func leave(group int, path string, grace time.Duration) error {
	for begin := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		c, err := shm.OpenControl(path)
		if err != nil {
			return nil // completed, or nothing is there: whoever reads it says so
		}
		live := recovery.LivePids(c)
		c.Close()
		switch took := time.Since(begin); {
		case len(live) == 0:
			return nil
		case took > grace+killGrace:
			return fmt.Errorf("process %d of the run cannot be killed", live[0])
		case took > grace:
			killAll(group, path)
		}
	}
}

// discard removes the trace of a run; recorded: there was one.
func discard(group int, path string, grace time.Duration) (recorded bool, err error) {
	if err := leave(group, path, grace); err != nil {
		return false, err
	}
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	_, err = recovery.Discard(path)
	return true, err
}

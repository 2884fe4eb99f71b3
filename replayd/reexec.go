package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"prophet/cabi"
	"prophet/replayd/control"
	"prophet/runtime/inside"
	"prophet/runtime/recovery"
	"prophet/runtime/replay"
	"prophet/runtime/run"
	"prophet/runtime/scratch"
	"prophet/runtime/shm"
	"prophet/runtime/trace"
)

// reexec is one re-execution.
type reexec struct {
	trace    string // as the user named it
	args     []string
	realtime bool
	writes   string // inside.Spec.Writes
	stall    time.Duration
	json     bool
	control  controlFlags
	hold     bool // before the first event
	output   string
	learn    string // the trace to make of a run that differs; "": a difference ends it

	t       *trace.Trace
	dir     string // where the stream files are
	work    string // ours, removed at the end
	cwd     string
	scratch *scratch.Dir // work's
	index   *os.File
	world   *inside.World
	err     error    // of the world
	env     []string // given to the program; nil: the recorded one

	deaths replay.Deaths
	result replay.Result
	gone   chan struct{} // closed when the program has ended

	steer  *control.Again // nil without --control
	served *served
	parted *parted // once it has differed and goes on, with --learn
}

// Of the watchdog: how long nothing may happen in a world in which every thread waits, how much CPU time a thread may use
// without an event (--stall), and how often it looks.
const (
	stallAfter = 3 * time.Second
	stallSpin  = 10 * time.Second
	lookEvery  = 250 * time.Millisecond
)

// standsAfter is how long nothing may happen in a world whose recorded run was ended from outside, once it is where that was.
const standsAfter = 100 * time.Millisecond

func (r *reexec) run(ctx context.Context) (int, error) {
	r.gone = make(chan struct{})
	if err := r.open(); err != nil {
		return run.StatusOurs, err
	}
	defer r.close()
	if r.hold && r.control.socket == "" {
		return run.StatusOurs, errors.New("--pause: nobody could let it go on without --control")
	}
	if err := r.learns(); err != nil {
		return run.StatusOurs, err
	}
	if r.control.socket != "" {
		if err := r.serve(); err != nil {
			return run.StatusOurs, err
		}
	}
	if err := r.start(ctx); err != nil {
		close(r.gone) // who has asked for something is told
		return run.StatusOurs, err
	}
	if r.served != nil {
		fmt.Fprintf(r.served.bye, "%d\n", r.world.Process1())
	}
	ended := r.ended()
	if r.hold {
		if err := r.steer.Begin(); err != nil {
			return run.StatusOurs, err
		}
	}
	return r.watch(ctx, ended)
}

// serve makes the control socket, and starts who outlives us.
func (r *reexec) serve() error {
	if err := r.control.check(); err != nil {
		return err
	}
	if err := r.steers(); err != nil {
		return err
	}
	if r.hold {
		r.steer.Hold()
	}
	var err error
	r.served, err = watched(r.steer, &r.control, "--work", r.work, filepath.Join(r.work, "run.prophet"))
	return err
}

// steers makes who can pause the world and take the harness off.
func (r *reexec) steers() error {
	if r.steer != nil {
		return nil
	}
	index, err := shm.OpenIndex(r.index.Name())
	if err != nil {
		return err
	}
	r.steer = control.NewAgain(r.t, r.trace, filepath.Join(r.work, "run.prophet"), index, r.control.onDeath == "stay", r.realtime, r.gone)
	return nil
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
	if err := t.Meta.Whole(); err != nil {
		return fmt.Errorf("%s: %w", r.trace, err)
	}
	if r.scratch, err = scratch.Make("", scratch.Replay); err != nil {
		return err
	}
	r.work = r.scratch.Path
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
	if r.cwd, err = os.Getwd(); err != nil {
		return err
	}
	if len(r.args) == 0 {
		r.args = r.t.Meta.Command
		if r.t.Meta.Cwd != "" {
			r.cwd = r.t.Meta.Cwd
		}
	}
	if len(r.args) == 0 {
		return errors.New("the trace does not say which command it is of: name it behind --")
	}
	flags := uint32(0)
	if r.realtime {
		flags |= cabi.ReplayRealtime
	}
	if r.learn != "" {
		flags |= cabi.ReplayLearn
		if x := r.t.Meta.Issued; x != nil && x.Cut > 0 {
			flags |= cabi.ReplayCut
		}
	}
	b, err := replay.Build(r.t, r.dir, flags)
	if err != nil {
		return err
	}
	if r.deaths, err = replay.FindDeaths(b); err != nil {
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
	if r.served != nil {
		r.served.end()
	}
	if r.world != nil {
		changes, err := r.world.Close()
		if err != nil {
			fmt.Fprintln(os.Stderr, "replayd:", err)
		}
		for _, c := range changes {
			if c.Removed {
				fmt.Fprintln(os.Stderr, "replayd: removed:", trace.Clean(c.Path))
			}
		}
	}
	if r.index != nil {
		r.index.Close()
	}
	if r.t != nil {
		r.t.Close()
	}
	if r.work != "" {
		forget(r.work)
		r.scratch.Close()
	}
}

// forget removes what a re-execution has left: its directory, and the rings of processes that were killed.
func forget(work string) {
	if c, err := shm.OpenControl(filepath.Join(work, "run.prophet")); err == nil {
		for _, name := range []string{shm.RingsName(c.Tag()), shm.FlightName(c.Tag()), shm.LinkName(c.Tag())} {
			os.Remove(filepath.Join(shm.Dir(), name))
		}
		c.Close()
	}
	os.RemoveAll(work)
}

// environment puts our variables where the recorded ones stood; what had none comes last. The library gives the program
// the recorded ones.
func environment(given, ours []string) []string {
	var env []string
	left := slices.Clone(ours)
	for _, e := range given {
		name, _, ok := strings.Cut(e, "=")
		if !ok || name == "PROPHET_RUN" {
			continue
		}
		if i := slices.IndexFunc(left, func(o string) bool { return strings.HasPrefix(o, name+"=") }); i >= 0 {
			e = left[i]
			left = slices.Delete(left, i, i+1)
		}
		env = append(env, e)
	}
	return append(env, left...)
}

// recorded is what our variables took of the program's stack.
func recorded(given []string) int {
	var ours []string
	for _, e := range given {
		if name, _, _ := strings.Cut(e, "="); name == "LD_PRELOAD" || name == "PROPHET_TRACE" || name == "PROPHET_OPTIONS" {
			ours = append(ours, e)
		}
	}
	return max(1, run.Bytes(ours))
}

// program is how the program was named when it was started, as far as that can be told: its name lies on its stack.
func program(again *inside.Spec, cwd string) string {
	name := again.Argv[0]
	if !strings.Contains(name, "/") {
		var err error
		if name, err = exec.LookPath(name); err != nil {
			return again.Path
		}
	}
	at := name
	if !filepath.IsAbs(at) {
		at = filepath.Join(cwd, at)
	}
	if file, err := filepath.EvalSymlinks(at); err != nil || file != again.Path {
		return again.Path
	}
	return name
}

// start builds the surroundings that the recorded run began in and starts the program there.
func (r *reexec) start(ctx context.Context) error {
	lib, err := run.FindLibrary()
	if err != nil {
		return err
	}
	again, lost := inside.Again(r.t)
	exe := again.Path
	if exe == "" || !slices.Equal(r.args, again.Argv) { // argv[0] need not be its name
		if exe, err = exec.LookPath(r.args[0]); err != nil && !errors.Is(err, exec.ErrDot) {
			return err
		}
	} else {
		exe = program(&again, r.cwd)
	}
	given := r.t.Meta.Env
	if again.Limits == nil { // of an early version: the trace has the variables' names alone
		given = os.Environ()
		r.env = given
	} else if lost > 0 {
		fmt.Fprintf(os.Stderr, "replayd: %d variables of the environment were too long for the trace: the program starts without them\n", lost)
	}
	preload := lib
	for _, e := range given {
		if v, ok := strings.CutPrefix(e, "LD_PRELOAD="); ok && inside.WithoutLibrary(v) != "" {
			preload += ":" + inside.WithoutLibrary(v)
		}
	}
	level := r.t.Meta.Options.Level
	if level == "" {
		level = "full"
	}
	pids := filepath.Join(r.work, "pids")
	if err := shm.MakePids(pids); err != nil {
		return err
	}
	serial := ""
	if r.t.Meta.Options.Serial {
		serial = ",serial"
	}
	if r.learn != "" {
		serial = ",stacks=0"
	}
	if n := r.t.Meta.Options.Told; n != nil { // what it asks for once its harness is off
		serial += ",cpus=" + n.String()
	}
	env := environment(given, run.Padded([]string{"LD_PRELOAD=" + preload, "PROPHET_TRACE=" + filepath.Join(r.work, "run.prophet"),
		"PROPHET_OPTIONS=level=" + level + serial + ",replay=" + filepath.Join(r.work, "index") + ",pids=" + pids}, recorded(given)))
	s := inside.Spec{Path: exe, Argv: r.args, Env: env, Dir: r.cwd, Files: [3]*os.File{os.Stdin, os.Stdout, os.Stderr}, Pids: pids,
		Share: []string{r.work, r.dir, shm.Dir()}, Writes: r.writes, Limits: again.Limits, Handed: again.Handed, Outlives: r.served != nil}
	for _, p := range r.t.Procs {
		if p.How == cabi.ProcRoot {
			s.PID = int(p.PID)
		}
	}
	if r.writes != inside.WritesReal {
		if s.Plan, err = inside.FromTrace(r.t, inside.Live{}); err != nil {
			return err
		}
		s.Plan.Maps(lib) // which may not be where the recorded run had it
		for _, m := range s.Plan.Missing {
			fmt.Fprintf(os.Stderr, "replayd: %s is not as before the run: %s\n", trace.Clean(m.Path), m.Why)
		}
	}
	if r.world, err = inside.Start(ctx, s); err != nil {
		return err
	}
	for _, n := range r.world.Notes {
		fmt.Fprintln(os.Stderr, "replayd:", trace.Clean(n))
	}
	r.world.Forward(run.FromTerminal)
	return nil
}

// state reads the index as it is now, up to where the threads stand.
func (r *reexec) state() (*replay.State, error) {
	b := make([]byte, replay.HeadSize)
	if _, err := r.index.ReadAt(b, 0); err != nil {
		return nil, err
	}
	n, err := replay.Prefix(b)
	if err != nil {
		return nil, err
	}
	b = make([]byte, n)
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

// ended tells of the end of the first process, and then of all of them.
func (r *reexec) ended() <-chan inside.Status {
	c := make(chan inside.Status, 1)
	go func() {
		s, err := r.world.Wait()
		<-r.world.Done()
		r.err = err
		close(r.gone)
		c <- s
	}()
	return c
}

func (r *reexec) watch(ctx context.Context, ended <-chan inside.Status) (int, error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	idle := stallAfter
	if r.learn != "" {
		idle = learnAfter
	}
	dog := &replay.Watchdog{Idle: idle, Spin: r.stall, Loose: r.realtime}
	var events, eventsAtEnd uint64
	looked, lookedAtEnd := time.Now(), time.Now()
	killed := replay.Killed(r.t)
	var end replay.Ending
	for {
		select {
		case status := <-ended:
			if r.err != nil {
				return run.StatusOurs, r.err
			}
			if r.steer != nil && r.steer.Detached() != nil {
				return r.freed(status)
			}
			return r.verdict(status)
		case <-ctx.Done():
			s, err := r.state()
			if err != nil {
				return run.StatusOurs, err
			}
			r.count(s)
			return run.StatusOurs, errors.New("interrupted; " + s.Where(r.t))
		case <-tick.C:
		}
		if r.parted == nil && r.reported() {
			s, err := r.state()
			if err != nil {
				return run.StatusOurs, err
			}
			d := s.Differ(r.t, r.outside(s))
			if s.Head.Parted != 0 && s.Head.Diverged == 0 {
				if err := r.part(ctx, d); err == nil {
					continue
				}
			}
			r.world.Kill()
			<-ended
			return r.differs(s, d)
		}
		if r.parted != nil {
			if err := r.parted.look(r); err != nil {
				r.world.Kill()
				<-ended
				return run.StatusOurs, err
			}
		}
		if r.steer != nil {
			if err := r.steer.Poll(); err != nil {
				return run.StatusOurs, err
			}
			if r.steer.Detached() != nil || r.steer.Stands() {
				dog.Moved()
				looked, lookedAtEnd = time.Now(), time.Now()
				continue
			}
		}
		if killed != 0 && time.Since(lookedAtEnd) >= standsAfter {
			lookedAtEnd = time.Now()
			s, err := r.state()
			if err != nil {
				return run.StatusOurs, err
			}
			n := s.Events()
			if reached, deadlock := end.Reached(s, r.t); reached && n == eventsAtEnd {
				r.world.Kill()
				<-ended
				return r.stood(killed, deadlock)
			}
			eventsAtEnd = n
		}
		if r.endless() && time.Since(lookedAtEnd) >= standsAfter {
			lookedAtEnd = time.Now()
			s, err := r.state()
			if err != nil {
				return run.StatusOurs, err
			}
			if asked(s) && !r.reported() && r.part(ctx, s.Stall(r.t, r.outside(s), nil)) == nil {
				continue
			}
		}
		if time.Since(looked) < lookEvery {
			continue
		}
		looked = time.Now()
		s, err := r.state()
		if err != nil {
			return run.StatusOurs, err
		}
		if n := s.Events(); n != events {
			events = n
			dog.Moved()
			continue
		}
		c := r.crowd(s)
		for uid, sig := range r.deaths.Doomed(s) {
			if r.endless() && r.t.Meta.Issued.Cut > 0 {
				break // where its events end is not where it was killed
			}
			if pid := c.pid[uid]; pid > 1 {
				syscall.Kill(pid, sig)
			}
		}
		switch dog.Look(looked, s, c.sample, func(uid uint32) time.Duration { return s.Gap(r.t, uid) }) {
		case replay.Goes:
		case replay.Spins:
			d := s.Spin(r.t, r.outside(s), dog.UID, dog.Used(c.sample, dog.UID), s.Gap(r.t, dog.UID))
			if r.part(ctx, d) == nil {
				continue
			}
			r.world.Kill()
			<-ended
			return r.differs(s, d)
		case replay.Stands:
			if r.reported() {
				continue
			}
			d := s.Stall(r.t, r.outside(s), c.sample.CPU)
			if r.part(ctx, d) == nil {
				continue
			}
			r.world.Kill()
			<-ended
			return r.differs(s, d)
		}
	}
}

// stood ends a re-execution of a run that was ended from outside as that was.
func (r *reexec) stood(sig syscall.Signal, deadlock bool) (int, error) {
	status, err := r.verdict(inside.Status{Code: -1, Signal: int(sig)})
	if err != nil {
		return status, err
	}
	how := "stands where the recorded run did"
	if deadlock {
		how = "deadlocked as recorded"
	}
	r.result.Stood = how
	if !r.json {
		fmt.Fprintf(os.Stderr, "replayd: %s; ended as that was, by %s\n", how, r.t.Meta.Ended.Signal)
	}
	if r.t.Meta.Ended.TimedOut {
		return run.StatusTimeout, nil
	}
	return status, nil
}

// freed keeps the trace of what the program did once its harness was off.
func (r *reexec) freed(status inside.Status) (int, error) {
	s, err := r.state()
	if err != nil {
		return run.StatusOurs, err
	}
	if s.Head.Diverged != 0 {
		return r.differs(s, s.Differ(r.t, r.outside(s)))
	}
	dir := filepath.Join(r.work, "run.prophet")
	exit := status.Exit()
	code := int64(exit)
	o := recovery.Options{Status: &code}
	if status.Signal != 0 {
		o.Signal = trace.SignalName(uint64(status.Signal))
	}
	if _, err := recovery.Recover(dir, o); err != nil {
		return run.StatusOurs, fmt.Errorf("the trace of what came after: %w", err)
	}
	if r.parted != nil {
		return exit, r.learnt(s, dir)
	}
	out := r.output
	if out == "" {
		out = strings.TrimSuffix(strings.TrimRight(r.trace, "/"), ".prophet") + "-free.prophet"
	}
	if _, err := os.Lstat(out); err == nil {
		return run.StatusOurs, fmt.Errorf("%s is there already: the trace of what came after is not kept", out)
	}
	if os.Rename(dir, out) != nil { // on another file system
		if err := os.CopyFS(out, os.DirFS(dir)); err != nil {
			return run.StatusOurs, err
		}
	}
	fmt.Fprintf(os.Stderr, "replayd: identical for %d events, then free: what came after is in %s\n", s.Events(), trace.Clean(out))
	return exit, nil
}

func (r *reexec) count(s *replay.State) {
	r.result.Events, r.result.Threads, r.result.Processes = s.Events(), len(r.t.Threads), len(r.t.Procs)
	for i := range s.Threads {
		r.result.Quick += s.Threads[i].Quick
	}
	r.result.Signals, r.result.Placed, r.result.Pids = s.Head.Signals, s.Head.Placed, s.Head.Pids
}

// differs ends a re-execution with what was different.
func (r *reexec) differs(s *replay.State, d *replay.Difference) (int, error) {
	r.count(s)
	r.result.Difference = d
	return run.StatusOurs, errors.New(d.Text())
}

// verdict says how it went once all processes are gone.
func (r *reexec) verdict(status inside.Status) (int, error) {
	s, err := r.state()
	if err != nil {
		return run.StatusOurs, err
	}
	return r.judge(s, &status)
}

// judge is verdict; status nil: nobody knows how the program ended.
func (r *reexec) judge(s *replay.State, status *inside.Status) (int, error) {
	o := r.outside(s)
	if s.Head.Diverged != 0 {
		return r.differs(s, s.Differ(r.t, o))
	}
	if d := s.Missing(r.t, o, nil, true); d != nil {
		return r.differs(s, d)
	}
	exit := 0
	if status != nil {
		if d := s.Status(r.t, o, status.Code, trace.SignalName(uint64(status.Signal))); d != nil {
			return r.differs(s, d)
		}
		exit = status.Exit()
	}
	r.count(s)
	r.result.Identical = true
	if x := r.t.Meta.Issued; x != nil {
		r.result.Cut = x.Cut
	}
	if r.json {
		return exit, nil
	}
	if n := s.Head.Missed; n > 0 {
		fmt.Fprintf(os.Stderr, "replayd: %d turns were taken late, their calls got lost: please report it\n", n)
	}
	fmt.Fprintf(os.Stderr, "replayd: identical: %d events, %d threads, %d processes\n", s.Events(), len(r.t.Threads), len(r.t.Procs))
	if r.result.Cut > 0 {
		fmt.Fprintf(os.Stderr, "replayd: %d operations that were issued are not in the trace, as nobody knows what the program does there\n", r.result.Cut)
	}
	return exit, nil
}

// tell prints the result for programs.
func (r *reexec) tell(status int, err error) {
	r.result.Status = status
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used) == nil {
		r.result.CPUNS = used.Utime.Nano() + used.Stime.Nano()
	}
	if err != nil && (r.result.Difference == nil || r.parted != nil) {
		r.result.Error = trace.Clean(err.Error())
	}
	e := json.NewEncoder(os.Stderr)
	e.SetEscapeHTML(false)
	e.Encode(&r.result)
}

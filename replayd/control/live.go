package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"prophet/replayd/proto"
	"prophet/runtime/pause"
	"prophet/runtime/run"
	"prophet/runtime/shm"
	"prophet/runtime/trace"
)

// Live is the world of a run that is being recorded: it can be looked at, paused and resumed. The run may begin later than its
// world.
type Live struct {
	dir  string
	mu   sync.Mutex
	run  *pause.Run
	w    *run.Watcher
	stay bool
}

// NewLive is the world of the run that records, or will, into this directory. stay: it stays paused when the daemon dies
// in a pause.
func NewLive(dir string, stay bool) *Live { return &Live{dir: dir, stay: stay} }

// Close lets go of the run.
func (l *Live) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run == nil {
		return nil
	}
	err := errors.Join(l.run.Close(), l.w.Close())
	l.run, l.w = nil, nil
	return err
}

// open maps the run when it is there. l.mu is held.
func (l *Live) open() error {
	if l.run != nil {
		return nil
	}
	if _, err := os.Stat(l.dir); err != nil {
		return &proto.Error{Code: proto.NotStarted, Text: "the program has not begun to record yet", Hint: "try again in a moment"}
	}
	r, err := pause.Open(l.dir)
	if errors.Is(err, shm.ErrNoControl) {
		return proto.Errorf(proto.Ended, "the run has ended")
	}
	if err != nil {
		return err
	}
	w, err := run.Attach(l.dir)
	if err != nil {
		r.Close()
		return err
	}
	r.SetOnDeath(l.stay)
	l.run, l.w = r, w
	return nil
}

// Hello is part of World.
func (l *Live) Hello() proto.Hello {
	return proto.Hello{Hello: "prophet", V: proto.Version, World: "recording", Trace: l.dir, PID: os.Getpid()}
}

// Status is part of World.
func (l *Live) Status() (*proto.Status, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.open(); err != nil {
		return nil, err
	}
	look, err := l.w.Look()
	if err != nil {
		return nil, err
	}
	states, err := l.run.Threads()
	if err != nil {
		return nil, err
	}
	by := map[uint32]*pause.Thread{} // by uid: the pids of a world of its own are others here
	for i := range states {
		if states[i].UID != 0 {
			by[states[i].UID] = &states[i]
		}
	}
	s := &proto.Status{World: "recording", Trace: l.dir, Paused: l.run.Paused(), Level: look.Level, Serial: look.Serial, Threads: []proto.Thread{}}
	for _, t := range look.Threads {
		th := proto.Thread{Name: t.Name, UID: t.UID, PID: t.PID, TID: t.TID, Event: t.Events, Call: t.Call, SinceNS: t.SinceNS, Last: t.Last, State: string(pause.Dead)}
		if p := by[t.UID]; p != nil {
			th.PID, th.TID, th.State = p.PID, p.TID, string(p.State)
		}
		s.Threads = append(s.Threads, th)
	}
	for i := range states { // that the recorder does not know
		if t := &states[i]; t.UID == 0 {
			s.Threads = append(s.Threads, proto.Thread{PID: t.PID, TID: t.TID, State: string(t.State)})
		}
	}
	return s, nil
}

// Clock is part of World.
func (l *Live) Clock() (*proto.Clock, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.open(); err != nil {
		return nil, err
	}
	mono, real, behind := l.run.Clock()
	return &proto.Clock{Paused: l.run.Paused(), MonoNS: mono, RealNS: real, BehindNS: behind, SinceNS: mono - min(l.run.Start(), mono)}, nil
}

// Pause is part of World.
func (l *Live) Pause(context.Context) (*proto.Stop, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.open(); err != nil {
		return nil, err
	}
	rep, err := l.run.Pause()
	if err != nil {
		return nil, err
	}
	s := &proto.Stop{Reason: "paused", TookNS: rep.Took.Nanoseconds(), Halted: rep.Halted}
	for _, t := range rep.Moving {
		s.Moving = append(s.Moving, int(t.TID))
	}
	return s, nil
}

// Resume is part of World.
func (l *Live) Resume(context.Context) (*proto.Stop, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.open(); err != nil {
		return nil, err
	}
	rep, err := l.run.Resume()
	if errors.Is(err, pause.ErrNotPaused) {
		return nil, proto.Errorf(proto.NotPaused, "the run is not paused")
	}
	if err != nil {
		return nil, err
	}
	return &proto.Stop{Reason: "resumed", TookNS: rep.Took.Nanoseconds(), Halted: rep.Halted}, nil
}

func only(what string) error {
	return &proto.Error{Code: proto.OnlyReexec, Text: "only a re-execution can " + what,
		Hint: "end this run, then: replayd --trace TRACE --control SOCKET"}
}

// Continue is part of World.
func (*Live) Continue(context.Context) (*proto.Stop, error) {
	return nil, only("come to a break")
}

// RunTo is part of World.
func (*Live) RunTo(context.Context, string, uint64, uint64, string) (*proto.Stop, error) {
	return nil, only("run to an event")
}

// Step is part of World.
func (*Live) Step(context.Context, string, uint64) (*proto.Stop, error) {
	return nil, only("be stepped")
}

// Break is part of World.
func (*Live) Break(context.Context, string, string, string, bool) (*proto.Stop, error) {
	return nil, only("break at an object or a call")
}

// Detach is part of World.
func (*Live) Detach(context.Context) (*proto.Stop, error) {
	return nil, only("be taken off its harness")
}

var _ World = (*Live)(nil)

// Locate is the live run that a person means: a trace directory or a pid.
func Locate(arg string) (*Live, error) {
	dir, err := run.Locate(arg)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("%s: %w", trace.Clean(arg), err)
	}
	r, err := pause.Open(dir)
	if err != nil {
		return nil, err
	}
	stay := r.StaysOnDeath() // as whoever started it said
	return NewLive(dir, stay), r.Close()
}

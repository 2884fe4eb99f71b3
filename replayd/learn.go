package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"prophet/cabi"
	"prophet/runtime/graft"
	"prophet/runtime/recovery"
	"prophet/runtime/replay"
	"prophet/runtime/trace"
)

// learnAfter is stallAfter where a difference does not end the run: less is lost by a look too early.
const learnAfter = time.Second

// How long a program may go on once its harness is off: without using CPU time, and in all, besides what the recorded run took, so many times.
const (
	freeIdle  = 5 * time.Second
	freeRun   = 60 * time.Second
	freeTimes = 20
)

// parted is a run that differed from its trace and goes on freely.
type parted struct {
	began, idle, looked time.Time
	cpu                 time.Duration
}

var errNoEnd = errors.New("the program came to no end")

// learns checks that a trace can be learnt from.
func (r *reexec) learns() error {
	if r.learn == "" {
		return nil
	}
	if r.t.Meta.Options.Serial {
		return errors.New("--learn: a serial run cannot go on freely: its threads go one at a time")
	}
	if _, err := os.Lstat(r.learn); err == nil {
		return fmt.Errorf("--learn: %s is there already", r.learn)
	}
	return r.steers()
}

// endless tells whether the trace may end before the program does: that of an issue that was cut. Then what comes after it is learnt.
func (r *reexec) endless() bool {
	return r.learn != "" && r.parted == nil && r.t.Meta.Issued != nil
}

// asked tells whether each thread has asked for more than the trace has: nothing can move then, and nobody has to wait until that
// has been so for a while.
func asked(s *replay.State) bool {
	some := false
	for i := range s.Threads {
		switch t := &s.Threads[i]; {
		case t.UID == 0 || t.State == cabi.TurnOver && t.Left == 0 || t.State == cabi.TurnNone && t.Chunks == 0:
		case t.State == cabi.TurnEnd:
			some = true
		default:
			return false
		}
	}
	return some
}

// part takes the harness off.
func (r *reexec) part(ctx context.Context, d *replay.Difference) error {
	if r.learn == "" || r.parted != nil {
		return errors.New("not to be learnt from")
	}
	if _, err := r.steer.Detach(ctx); err != nil {
		return err
	}
	r.result.Difference = d
	now := time.Now()
	r.parted = &parted{began: now, idle: now, looked: now}
	return nil
}

// look ends a run that goes on freely and does nothing any more, or for ever.
func (p *parted) look(r *reexec) error {
	now := time.Now()
	if now.Sub(p.looked) < lookEvery {
		return nil
	}
	p.looked = now
	s, err := r.state()
	if err != nil {
		return err
	}
	c := r.crowd(s)
	cpu := c.sample.Other
	for _, used := range c.sample.CPU {
		cpu += used
	}
	took := time.Duration(0)
	if e := r.t.Meta.Ended; e != nil {
		took = time.Duration(e.At)
	}
	if cpu != p.cpu {
		p.cpu, p.idle = cpu, now
	}
	switch {
	case now.Sub(p.idle) > freeIdle+took:
		return fmt.Errorf("%w: from where it differed it went on, and then nothing moved for %v: in this order its threads wait for one another, or for somebody who is not here (%s)", errNoEnd, (freeIdle + took).Round(time.Second), r.result.Difference.Headline)
	case now.Sub(p.began) > freeRun+freeTimes*took:
		return fmt.Errorf("%w: from where it differed it went on, for %v now (%s)", errNoEnd, now.Sub(p.began).Round(time.Second), r.result.Difference.Headline)
	}
	return nil
}

// learnt makes the trace of the whole run, of what was repeated and of what came after, which is in dir.
func (r *reexec) learnt(s *replay.State, dir string) error {
	rest, err := trace.Open(dir)
	if err != nil {
		return fmt.Errorf("the trace of what came after: %w", err)
	}
	defer rest.Close()
	cut := graft.Cut{Events: map[uint32]uint64{}, Inside: r.steer.Inside()}
	for i := range s.Threads {
		cut.Events[s.Threads[i].UID] = s.Threads[i].Event
	}
	if err := graft.Join(r.t, rest, cut, r.learn); err != nil {
		return err
	}
	o := recovery.Options{}
	if e := rest.Meta.Ended; e != nil {
		o.Status, o.Signal = &e.Status, e.Signal
	}
	if _, err := recovery.Recover(r.learn, o); err != nil {
		return err
	}
	// What the kernel counted of a run that was partly repeated tells nothing of the program.
	whole, err := trace.Open(r.learn)
	if err != nil {
		return err
	}
	defer whole.Close()
	whole.Meta.Cover = r.t.Meta.Cover
	if err := trace.WriteMeta(r.learn, whole.Meta); err != nil {
		return err
	}
	r.count(s)
	r.result.Learnt = r.learn
	if !r.json {
		fmt.Fprintf(os.Stderr, "replayd: %s\nreplayd: identical for %d events, then it went on: the whole run is in %s\n", r.result.Difference.Headline, s.Events(), trace.Clean(r.learn))
	}
	return nil
}

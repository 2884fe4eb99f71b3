package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"prophet/runtime/demand"
	"prophet/runtime/issued"
	"prophet/runtime/predict"
	"prophet/runtime/replay"
	"prophet/runtime/term"
	"prophet/runtime/trace"
)

// Strict rounds are what rounds are compared with: the issue ends at the first lock that comes in another order than the known path has
// it, or other result. The program is executed at home in the order up to there, let go, and what it does is the
// path that is known next. The next issue begins from the start: the part that is proven keeps its order, each lock
// waits for its turn there, and behind it the issue ends at the next such place. So each round proves a little more, and there are as
// many as there are places at which the target does not follow what home just did.

// strictMost is in how many strict rounds at most a path is to be proven, where --strict does not say it.
const strictMost = "100"

// strictIdle is how many rounds may prove nothing more before no more are made.
const strictIdle = 3

// strictly is what strict rounds came to.
type strictly struct {
	Rounds   int     `json:"rounds"`
	Most     int     `json:"most"` // bound
	Proven   bool    `json:"proven"`
	Unproven float64 `json:"unproven_share"` // of the path's events
	Seconds  float64 `json:"seconds"`        // that all of it took
	Stopped  string  `json:"stopped,omitempty"`
	List     []round `json:"each_round,omitempty"`
}

// proveStrict goes through strict rounds on a target.
func (p *predictor) proveStrict(ctx context.Context, at *issuer) (*strictly, error) {
	dir := filepath.Join(p.work, "strict")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	bar := term.NewProgress("proving strictly on " + at.Spec().Text).Keep()
	defer bar.Done()
	r, begin := &strictly{Most: p.strict, Unproven: 1}, time.Now()
	defer func() { r.Seconds = time.Since(begin).Seconds() }()
	known, close := p.trace, func() {}
	defer func() { close() }()
	best, idle := uint64(0), 0
	for i := 1; i <= p.strict && !r.Proven && r.Stopped == ""; i++ {
		said := fmt.Sprintf("round %d of at most %d", i, p.strict)
		if i > 1 {
			x := &r.List[i-2]
			said += fmt.Sprintf(" (%s; %.1f %% not proven)", x.What, r.Unproven*100)
		}
		bar.Say(func() string { return said })
		here := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(here, 0o700); err != nil {
			return nil, err
		}
		x, next, err := p.strictRound(ctx, at, known, here, i)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			r.Stopped = err.Error()
			break
		}
		r.List = append(r.List, *x)
		r.Rounds, r.Proven = i, next == nil
		if r.Unproven = 0; r.Proven {
			break
		}
		r.Unproven = predict.Unproven(x.Identical, x.Learnt)
		if x.Identical > best {
			best, idle = x.Identical, 0
		} else if idle++; idle == strictIdle {
			r.Stopped = fmt.Sprintf("%d rounds proved nothing more", idle)
		}
		close()
		known, close = next, func() { next.Close() }
		os.RemoveAll(filepath.Join(dir, fmt.Sprint(i-1)))
	}
	return r, nil
}

// strictRound issues the known path up to where it is left, and asks the program at home what it does there: next is the path that
// is known then; nil: it was not left, and the program does the same.
func (p *predictor) strictRound(ctx context.Context, at *issuer, known *trace.Trace, dir string, n int) (x *round, next *trace.Trace, err error) {
	program, mapped, log := filepath.Join(dir, "program"), filepath.Join(dir, "map"), filepath.Join(dir, "log")
	made, learnt := filepath.Join(dir, "issued.prophet"), filepath.Join(dir, "learnt.prophet")
	if _, err := demand.Compile(known, demand.Options{Record: demand.RecordCost, Map: mapped, Path: demand.PathStrict}, program); err != nil {
		return nil, nil, err
	}
	took, err := p.issueLogged(ctx, at, "strict", program, log)
	if err != nil {
		return nil, nil, err
	}
	res, err := issued.Make(issued.Source{Trace: known, Program: program, Map: mapped, Log: log, Target: at.Spec().Text}, made)
	if err != nil {
		return nil, nil, fmt.Errorf("the trace of the issue on %s: %w", at.Spec().Text, err)
	}
	x = &round{Round: n, Seconds: took.Seconds, Events: res.Events}
	if took.Diverged != nil {
		if err := x.where(made, known, took.Diverged.Thread); err != nil {
			return nil, nil, err
		}
	}
	v, err := validate(ctx, made, learnt)
	if err != nil {
		return nil, nil, err
	}
	x.Identical = v.Events
	if v.Identical {
		if took.Diverged != nil {
			return nil, nil, fmt.Errorf("the program came to its end where the issue had not")
		}
		return x, nil, nil
	}
	if d := v.Difference; took.Diverged == nil && d != nil {
		x.Thread, x.Event, x.Call, x.What = d.Thread, d.Event, d.Call, d.Headline
	}
	if next, err = trace.Open(learnt); err != nil {
		return nil, nil, err
	}
	for _, th := range next.Threads {
		x.Learnt += next.EventsBetween(th, 0, 1<<62)
	}
	return x, next, nil
}

// where says at which event of which thread a strict issue ended. n is the thread's number in the program, plus 1.
func (x *round) where(made string, known *trace.Trace, n uint32) error {
	if n == 0 {
		x.What = "nothing could move any more in the known order"
		return nil
	}
	t, err := trace.Open(made)
	if err != nil {
		return err
	}
	defer t.Close()
	streams := demand.Streams(known)
	if int(n) > len(streams) {
		return nil
	}
	for _, s := range streams[n-1] {
		th := t.ThreadByUID(s.UID)
		if th == nil {
			continue
		}
		if e := t.EventsBetween(th, 0, 1<<62); e > 0 {
			x.Thread, x.Event = th.Name, e-1
			if r := replay.NewCursor(t, th).Event(e - 1); r != nil {
				x.Call = trace.CallName(uint64(r.Call))
			}
		}
	}
	x.What = fmt.Sprintf("thread %s left the known path at its event %d, %s", x.Thread, x.Event, x.Call)
	return nil
}

// text says it for people.
func (r *strictly) text() string {
	how := "each of which ends at the first lock in another order, or other result"
	switch {
	case r.Proven:
		return fmt.Sprintf("proven in %s, %s", plural(r.Rounds, "round"), how)
	case r.Stopped != "":
		return fmt.Sprintf("not proven, after %s: %s; %.1f %% of the path is not proven", plural(r.Rounds, "round"), trace.Clean(r.Stopped), r.Unproven*100)
	}
	return fmt.Sprintf("not proven in %s, %s; %.1f %% of the path is not proven", plural(r.Rounds, "round"), how, r.Unproven*100)
}

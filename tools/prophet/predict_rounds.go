package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"prophet/runtime/demand"
	"prophet/runtime/issued"
	"prophet/runtime/predict"
	"prophet/runtime/replay"
	"prophet/runtime/run"
	"prophet/runtime/term"
	"prophet/runtime/trace"
)

// Rounds: one issue on the target and one re-execution of the program at home under the order of that issue. Where the program asks
// for the very events that were issued the path is proven. Where it does not it goes on freely from there, and the trace of that
// whole run is what the next round issues: it has what the program does in the target's order, which home had not shown.
// No order is kept on the target in any round: threads take their turns as they come, and what was proven before is
// proven by its events, which come again from the trace that was learnt.

// How long the issue of a path that was learnt may take, and how many times as long as the recorded one's besides.
const (
	roundLeast = 5 * time.Second
	roundTimes = 5
)

// round is what came of one.
type round struct {
	Round     int     `json:"round"`
	Seconds   float64 `json:"issue_seconds"`
	Events    uint64  `json:"events"`    // that were issued
	Identical uint64  `json:"identical"` // of these, that the program asked for
	Thread    string  `json:"thread,omitempty"`
	Event     uint64  `json:"event,omitempty"` // of the thread, where it differed
	Call      string  `json:"call,omitempty"`
	What      string  `json:"what,omitempty"`
	Learnt    uint64  `json:"events_learnt,omitempty"`
}

// proof is what the rounds came to.
type proof struct {
	program string // what was issued last, here, and by its name there
	name    string
	list    []round
	proven  bool
	seconds []float64 // of the issue of it that was validated
}

// prove goes through rounds on a target, until the path is proven or as many as are allowed.
func (p *predictor) prove(ctx context.Context, at *issuer, n int) (*proof, error) {
	dir := filepath.Join(p.work, fmt.Sprintf("rounds-%d", n))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // programs that go on being used are elsewhere
	bar := term.NewProgress("proving on " + at.Spec().Text)
	defer bar.Done()
	r := &proof{program: p.program, name: "program"}
	t, mapped := p.trace, p.mapFile()
	var first []float64
	for i := 1; i <= p.rounds; i++ {
		said := fmt.Sprintf("round %d", i)
		if l := len(r.list); l > 0 {
			x := &r.list[l-1]
			said += fmt.Sprintf(" (thread %s differed at its event %d, %s; %s events learnt)", x.Thread, x.Event, x.Call, grouped(x.Learnt))
		}
		bar.Say(func() string { return said })
		log, made, learnt := filepath.Join(dir, fmt.Sprint("log-", i)), filepath.Join(dir, fmt.Sprintf("issued-%d.prophet", i)), filepath.Join(dir, fmt.Sprintf("learnt-%d.prophet", i))
		most := ctx
		if i > 1 { // one that takes far longer than the recorded path stands in its own way
			var cancel context.CancelFunc
			most, cancel = context.WithTimeout(ctx, roundLeast+time.Duration(roundTimes*r.list[0].Seconds*float64(time.Second)))
			defer cancel()
		}
		took, err := p.issueLogged(most, at, r.name, r.program, log)
		if err != nil && ctx.Err() == nil && most.Err() != nil {
			break
		}
		if err != nil {
			return nil, err
		}
		res, err := issued.Make(issued.Source{Trace: t, Program: r.program, Map: mapped, Log: log, Target: at.Spec().Text}, made)
		if err != nil {
			return nil, fmt.Errorf("the trace of the issue on %s: %w", at.Spec().Text, err)
		}
		x := round{Round: i, Seconds: took.Seconds, Events: res.Events + res.Cut}
		if r.seconds = []float64{took.Seconds}; i == 1 {
			first = r.seconds
		}
		v, err := validate(ctx, made, learnt)
		if err != nil {
			return nil, err
		}
		x.Identical = v.Events
		if d := v.Difference; d != nil {
			x.Thread, x.Event, x.Call, x.What = d.Thread, d.Event, d.Call, d.Headline
		}
		if v.Identical {
			r.list, r.proven = append(r.list, x), res.Cut == 0
			return r, nil
		}
		if i == p.rounds {
			r.list = append(r.list, x)
			break
		}
		next, err := trace.Open(learnt)
		if err != nil {
			return nil, err
		}
		defer next.Close()
		t, mapped = next, filepath.Join(dir, fmt.Sprint("map-", i))
		r.program = filepath.Join(p.work, fmt.Sprintf("program-%d-%d", n, i))
		r.name = fmt.Sprint("program-", i)
		info, err := demand.Compile(t, demand.Options{Record: demand.RecordCost, Map: mapped}, r.program)
		if err != nil {
			return nil, err
		}
		x.Learnt = info.Events
		r.list = append(r.list, x)
	}
	// Not proven: what is predicted is the recorded path.
	r.program, r.name, r.seconds = p.program, "program", first
	return r, nil
}

// issueLogged issues a program once and brings the log home.
func (p *predictor) issueLogged(ctx context.Context, at *issuer, name, program, log string) (r *issueResult, err error) {
	if err = at.steady(ctx, func() error { return at.put(ctx, name, program) }); err != nil {
		return nil, err
	}
	return at.logged(ctx, name, log)
}

// validate re-executes the trace of an issue at home, and learns what the program does where it differs.
func validate(ctx context.Context, path, learnt string) (*replay.Result, error) {
	replayd, err := run.FindReplayd()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, replayd, "--json", "--trace", path, "--learn", learnt)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	var said bytes.Buffer
	cmd.Stderr = &said
	err = cmd.Run()
	text := strings.TrimSpace(said.String())
	line := text[strings.LastIndexByte(text, '\n')+1:]
	var r replay.Result
	if json.Unmarshal([]byte(line), &r) != nil {
		return nil, fmt.Errorf("executing the program under the target's order: %w: %.2000s", err, trace.Clean(text))
	}
	if r.Error != "" {
		return nil, fmt.Errorf("executing the program under the target's order: %s", trace.Clean(r.Error))
	}
	if !r.Identical && r.Learnt == "" {
		if r.Difference != nil {
			return nil, fmt.Errorf("executing the program under the target's order: %s, and it cannot go on from there", trace.Clean(r.Difference.Headline))
		}
		return nil, errors.New("executing the program under the target's order: it ended without a word")
	}
	return &r, nil
}

// tell puts what the rounds came to into an answer.
func (r *proof) tell(f *forecast) {
	f.Rounds, f.Proven, f.List = len(r.list), r.proven, r.list
	if len(r.list) > 0 && !r.proven {
		f.Unproven = predict.Unproven(r.list[0].Identical, r.list[0].Events)
	}
}

// provenText says it for people.
func (f *forecast) provenText() string {
	switch {
	case f.Proven:
		return fmt.Sprintf("yes, in %s: executed in the order of an issue the program asks for the very events that were issued", plural(f.Rounds, "round"))
	case len(f.List) == 0:
		return "no: not validated by a re-execution"
	}
	x := f.List[0] // whose path it is
	where := "events of which nobody knows what the program does there"
	if x.Thread != "" {
		where = fmt.Sprintf("thread %s differs at its event %d (%s)", trace.Clean(x.Thread), x.Event, trace.Clean(x.Call))
	}
	return fmt.Sprintf("no, after %s: %.1f %% of what was issued is not proven; %s", plural(f.Rounds, "round"), f.Unproven*100, where)
}

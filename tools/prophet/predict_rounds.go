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
	"slices"
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
// for the very events that were issued the path is proven. Where it does not it goes on freely from there, and what it does in the
// target's order, which home had not shown, lies beside the recorded run in the next round: contexts that were met once are known.
// Where threads wait for conditions the trace of that whole run is issued itself, as whom one waits for is learnt of a whole run.
// No order is kept on the target in any round: threads take their turns as they come, and what was proven before is
// proven by its events, which come again from the trace that was learnt.

// How long the issue of a path that was learnt may take, and how many times as long as the recorded one's besides.
const (
	roundLeast = 5 * time.Second
	roundTimes = 5
)

// How long executing the program under the target's order may take where --limit does not say it, and how many times as long as the recorded run besides.
const (
	validateLeast = 20 * time.Second
	validateTimes = 20
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
	bar := term.NewProgress("proving on " + at.Spec().Text).Keep()
	defer bar.Done()
	r := &proof{program: p.program, name: "program"}
	t, mapped := p.trace, p.mapFile()
	known := slices.Clone(p.known)
	if len(known) > 0 {
		var err error
		r.program, r.name, mapped = filepath.Join(p.work, fmt.Sprintf("program-%d", n)), "program-0", filepath.Join(dir, "map")
		if t, err = compileWith(p.trace, known, filepath.Join(dir, "known.prophet"), r.program, mapped); err != nil {
			return nil, err
		}
		defer t.Close()
	}
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
		if err != nil && ctx.Err() == nil && most.Err() != nil { // another one comes another way
			r.list = append(r.list, round{Round: i, Seconds: (roundLeast + time.Duration(roundTimes*r.list[0].Seconds*float64(time.Second))).Seconds(), What: "the issue came to no end"})
			continue
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
		v, err := p.validateWithin(ctx, made, learnt)
		if errors.Is(err, errNoEnd) {
			x.What = err.Error()
			r.list = append(r.list, x)
			break
		}
		if err != nil {
			return nil, err
		}
		x.Identical = v.Events
		if d := v.Difference; d != nil {
			x.Thread, x.Event, x.Call, x.What = d.Thread, d.Event, d.Call, d.Headline
		}
		if v.Identical {
			if r.list, r.proven = append(r.list, x), res.Cut == 0; r.proven {
				return r, nil
			}
			continue // what is missing nobody came to here
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
		for _, th := range next.Threads {
			x.Learnt += next.EventsBetween(th, 0, 1<<62)
		}
		x.Learnt -= min(x.Learnt, x.Identical)
		if err := p.keepLearnt(next); err != nil {
			return nil, err
		}
		// Where nobody waits for conditions the recorded path is issued again, and what was learnt lies beside it.
		main, others := p.trace, append(known, next)
		if known = others; p.info.Preds > 0 {
			main, others = next, append(slices.Clone(others[:len(others)-1]), p.trace)
		}
		mapped, r.program, r.name = filepath.Join(dir, fmt.Sprint("map-", i)), filepath.Join(p.work, fmt.Sprintf("program-%d-%d", n, i)), fmt.Sprint("program-", i)
		if t, err = compileWith(main, others, filepath.Join(dir, fmt.Sprintf("known-%d.prophet", i)), r.program, mapped); err != nil {
			return nil, err
		}
		defer t.Close()
		r.list = append(r.list, x)
	}
	// Not proven. Where nobody waits for conditions what is predicted is the recorded path still, with all that was learnt beside it: what
	// threads do where they meet what home never met is known better so. Otherwise it is the recorded path as it was.
	if last := len(r.list) - 1; p.info.Preds > 0 || last < 0 || r.list[last].Events == 0 {
		r.program, r.name, r.seconds = p.program, "program", first
	}
	return r, nil
}

// libraryMost is how many traces of a library are known at once: the latest.
const libraryMost = 64

// openLibrary opens the traces that lie in the library, and makes it where it is not there yet.
func (p *predictor) openLibrary() error {
	if p.library == "" {
		return nil
	}
	if err := os.MkdirAll(p.library, 0o700); err != nil {
		return err
	}
	paths, err := filepath.Glob(filepath.Join(p.library, "*.prophet"))
	if err != nil {
		return err
	}
	slices.Sort(paths) // by name: what was learnt is named by when
	for _, path := range paths[max(0, len(paths)-libraryMost):] {
		k, live, err := open(path)
		if err != nil {
			return err
		}
		if live || !slices.Equal(k.Meta.Command, p.trace.Meta.Command) {
			k.Close()
			return usage("%s is not a whole trace of the same command: it has no place in this library", path)
		}
		p.known = append(p.known, k)
	}
	return nil
}

// keepLearnt adds a trace to the library.
func (p *predictor) keepLearnt(t *trace.Trace) error {
	if p.library == "" {
		return nil
	}
	if _, err := t.Pack(filepath.Join(p.library, time.Now().UTC().Format("20060102-150405.000000000")+".prophet"), 2, nil); err != nil {
		return fmt.Errorf("the library: %w", err)
	}
	return nil
}

// compileWith compiles a trace with the ways of other runs of the program beside it, and opens the trace dir of all of them.
func compileWith(main *trace.Trace, others []*trace.Trace, dir, program, mapped string) (*trace.Trace, error) {
	if err := issued.Beside(main, others, dir); err != nil {
		return nil, err
	}
	t, err := trace.Open(dir)
	if err != nil {
		return nil, err
	}
	if _, err := demand.Compile(t, demand.Options{Record: demand.RecordCost, Map: mapped}, program); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// issueLogged issues a program once and brings the log home.
func (p *predictor) issueLogged(ctx context.Context, at *issuer, name, program, log string) (r *issueResult, err error) {
	if err = at.steady(ctx, func() error { return at.put(ctx, name, program) }); err != nil {
		return nil, err
	}
	return at.logged(ctx, name, log)
}

var errNoEnd = errors.New("executed at home under the target's order the program came to no end")

// validateWithin validates, and gives up after a time.
func (p *predictor) validateWithin(ctx context.Context, path, learnt string) (*replay.Result, error) {
	most := p.limit
	if most == 0 {
		most = validateLeast + validateTimes*p.info.Home
	}
	within, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	v, err := validate(within, path, learnt)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("%w in %v", errNoEnd, most)
	}
	return v, err
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
	if len(r.list) > 0 {
		f.of = *r.issued()
	}
	if len(r.list) > 0 && !r.proven {
		x := r.issued()
		f.Unproven = predict.Unproven(x.Identical, x.Events)
	}
}

// issued is the round whose path is predicted where none is proven.
func (r *proof) issued() *round {
	if r.name == "program" {
		return &r.list[0]
	}
	return &r.list[len(r.list)-1]
}

// provenText says it for people.
func (f *forecast) provenText() string {
	switch {
	case f.Proven:
		return fmt.Sprintf("yes, in %s: executed in the order of an issue the program asks for the very events that were issued", plural(f.Rounds, "round"))
	case len(f.List) == 0:
		return "no: not validated by a re-execution"
	}
	x := f.of // whose path it is
	where := "events of which nobody knows what the program does there"
	if x.Thread != "" {
		where = fmt.Sprintf("thread %s differs at its event %d (%s)", trace.Clean(x.Thread), x.Event, trace.Clean(x.Call))
	}
	return fmt.Sprintf("no, after %s: %.1f %% of what was issued is not proven; %s", plural(f.Rounds, "round"), f.Unproven*100, where)
}

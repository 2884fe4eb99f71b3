package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"prophet/replayd/issue"
	"prophet/runtime/breakdown"
	"prophet/runtime/demand"
	"prophet/runtime/issued"
	"prophet/runtime/recovery"
	"prophet/runtime/scratch"
	"prophet/runtime/trace"
)

// issuing is one call of the command.
type issuing struct {
	path, keep, record string
	known              []string
	order              string
	think              bool
	asJSON             bool
	parts              bool
	times              int
	q                  issue.Request
	work               string
	t                  *trace.Trace // nil: the program is of one that is elsewhere
}

// issueCommand issues the demand of a trace on this machine.
func issueCommand() *cobra.Command {
	var i issuing
	c := &cobra.Command{
		Use:   "issue --trace TRACE",
		Short: "Issue the demand of a trace on this machine, without its program",
		Long: `Each thread of the recorded run is issued by one of the engine's: CPU time, disk calls on files without content, locks,
waits, sleeps, pipes. It says how long that took. Files lie in a directory of their own below --dir and are removed after.

--record makes a trace of the issue, with the events that each thread went through, in the order in which they came here. Executed
again (replayd --trace), it shows whether the program does what was issued: then it says that all was identical.`,
		Example: `  replayd issue --trace app.prophet
  replayd issue --trace app.prophet --dir /mnt/disk --cpus 0 --times 5 --json
  replayd issue --trace app.prophet --cpus 0 --record issued.prophet && replayd --trace issued.prophet`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if (i.path == "") == (i.q.Program == "") || i.times < 1 {
				return &usageError{exitUsage, errors.New("which trace? (--trace TRACE, or --program FILE; and --times 1 or more)")}
			}
			way, err := wayOf(i.order, i.think)
			if err != nil || way != demand.PathFree && i.path == "" {
				return &usageError{exitUsage, errors.New("--order is free, home or strict; it and --think want a --trace, and exclude each other")}
			}
			if i.q.Most < 0 {
				return &usageError{exitUsage, errors.New("--limit wants a time, as 90s")}
			}
			if i.times > 1 && (i.q.Log != "" || i.record != "") {
				return &usageError{exitUsage, errors.New("--log and --record are of one issue: not with --times")}
			}
			if len(i.known) > 0 && (i.path == "" || way != demand.PathFree) {
				return &usageError{exitUsage, errors.New("--known wants a --trace, and locks in free order")}
			}
			if i.record != "" && (i.path == "" || way != demand.PathFree && way != demand.PathStrict) {
				return &usageError{exitUsage, errors.New("--record wants a --trace, and locks in free or strict order")}
			}
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return i.run(ctx, way)
		},
	}
	c.Flags().StringVar(&i.path, "trace", "", "the trace whose demand is issued")
	c.Flags().StringVar(&i.q.Dir, "dir", "", "a directory on the disk to use (default: that of temporary files)")
	c.Flags().Float64Var(&i.q.Scale, "scale", 1, "CPU time here for one second of the recorded machine's")
	c.Flags().IntSliceVar(&i.q.CPUs, "cpus", nil, "the processors to use, by number (default: all)")
	c.Flags().IntVar(&i.times, "times", 1, "how often")
	c.Flags().StringVar(&i.q.Program, "program", "", "issue this `file`, a trace that was compiled (--keep)")
	c.Flags().StringVar(&i.keep, "keep", "", "keep the compiled trace in this `file`")
	c.Flags().Uint64Var(&i.q.Walk, "walk", 0, "memory in `bytes` that the loop of each thread walks (prophet sense)")
	c.Flags().StringVar(&i.q.Loop, "loop", "", "take an iteration of the loop to take so many `ns`, and what it walks as long, as an earlier issue said (loop_as), and not what it takes now")
	c.Flags().DurationVar(&i.q.Most, "limit", 0, "end an issue that takes longer, and say who waits for whom in it (default: a minute, and 30 times the recorded run with its CPU time)")
	c.Flags().BoolVar(&i.parts, "parts", false, "say where each thread's time went")
	c.Flags().StringVar(&i.q.Log, "log", "", "write what each operation came to into this `file`")
	c.Flags().StringVar(&i.record, "record", "", "make this trace `directory` of the issue")
	c.Flags().StringVar(&i.order, "order", "free", "home: follow home's path, each lock in home's order, to see what a prediction gains by not doing that; strict: end at the first lock in another order, or other result")
	c.Flags().BoolVar(&i.think, "think", false, "no locks at all: each thread pauses between its calls as long as at home; for comparison, too")
	c.Flags().StringArrayVar(&i.known, "known", nil, "another `TRACE` of the same program: what it did there may be issued, too, where this issue leads to it")
	c.Flags().BoolVar(&i.asJSON, "json", false, "print one JSON object a time")
	return c
}

// run compiles the trace, if that is not done yet, and issues it.
func (i *issuing) run(ctx context.Context, way demand.Path) (err error) {
	if i.record != "" {
		if _, err := os.Lstat(i.record); err == nil {
			return fmt.Errorf("%s is there already", i.record)
		}
	}
	work, err := scratch.Make("", scratch.Program)
	if err != nil {
		return err
	}
	defer work.Close()
	i.work = work.Path
	opt := demand.Options{Record: demand.RecordCost, Path: way}
	if i.q.Log == "" && (i.parts || i.record != "") {
		i.q.Log = filepath.Join(i.work, "log")
	}
	if i.record != "" {
		opt.Map = filepath.Join(i.work, "map")
	}
	if i.path == "" {
		if err := demand.Verify(i.q.Program); err != nil {
			return err
		}
	} else {
		if i.q.Program = i.keep; i.keep == "" {
			i.q.Program = filepath.Join(i.work, "program")
		}
		t, err := i.open()
		if err != nil {
			return err
		}
		defer t.Close()
		i.t = t
		if _, err := demand.Compile(t, opt, i.q.Program); err != nil {
			return err
		}
		if i.record != "" {
			return i.recorded(ctx, issued.Source{Trace: t, Program: i.q.Program, Map: opt.Map, Log: i.q.Log})
		}
	}
	for range i.times {
		r, err := i.once(ctx)
		if err == nil {
			err = i.say(r, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// open opens the trace that is issued, with those beside it whose ways are known.
func (i *issuing) open() (*trace.Trace, error) {
	var list []*trace.Trace
	for _, path := range append([]string{i.path}, i.known...) {
		t, live, _, err := recovery.Open(path, nil)
		if err != nil {
			return nil, err
		}
		if live {
			t.Close()
			return nil, fmt.Errorf("%s is being recorded; its run has to end first", path)
		}
		if len(i.known) == 0 {
			return t, nil
		}
		defer t.Close()
		list = append(list, t)
	}
	dir := filepath.Join(i.work, "known.prophet")
	if err := issued.Beside(list[0], list[1:], dir); err != nil {
		return nil, err
	}
	return trace.Open(dir)
}

// once issues once. Who waits for whom in an issue that came to stand still is told programs, too.
func (i *issuing) once(ctx context.Context) (*issue.Result, error) {
	if i.q.Most == 0 {
		var err error
		if i.q.Most, err = demand.Limit(i.q.Program, i.q.Scale); err != nil {
			return nil, err
		}
	}
	r, err := issue.Run(ctx, i.q)
	var stuck *issued.Stuck
	if errors.As(err, &stuck) && i.asJSON {
		json.NewEncoder(os.Stdout).Encode(issue.Result{Wall: r.Wall, Stuck: stuck})
	}
	if stuck != nil && i.t != nil {
		return r, i.named(stuck)
	}
	if err == nil && i.parts {
		r.Parts, err = partsOf(i.q)
	}
	return r, err
}

// recorded issues once and makes a trace of that, also of one that came to stand still.
func (i *issuing) recorded(ctx context.Context, from issued.Source) error {
	r, err := i.once(ctx)
	if err != nil && !errors.Is(err, issued.ErrStuck) {
		return err
	}
	made, e := issued.Make(from, i.record)
	if e != nil || err != nil {
		return errors.Join(err, e)
	}
	return i.say(r, made)
}

// say prints what came of an issue, and of its record.
func (i *issuing) say(r *issue.Result, made *issued.Result) error {
	if i.asJSON {
		return json.NewEncoder(os.Stdout).Encode(struct {
			*issue.Result
			Record *issued.Result `json:"record,omitempty"`
		}{r, made})
	}
	fmt.Printf("%.6f s; %d operations, %d other ways, %d unknown\n", r.Wall.Seconds(), r.Done, r.Other, r.Unknown)
	switch d := r.Diverged; {
	case d == nil:
	case d.Thread == 0:
		fmt.Println("  ended where nothing could move in the known order")
	default:
		fmt.Println("  ended where a thread left the known path")
	}
	for _, p := range r.Parts {
		fmt.Printf("  thread %-6d %-6s %.6f s\n", p.UID, p.Class, p.Seconds)
	}
	if made == nil {
		return nil
	}
	fmt.Printf("%s: %d events\n", i.record, made.Events)
	for _, c := range made.Cuts {
		fmt.Printf("  thread %s is known up to its event %d (%s): what it did there nobody did at home\n", c.Thread, c.Event, c.Call)
	}
	if made.Cut > 0 {
		fmt.Printf("  missing are %.1f %% of the operations\n", 100*float64(made.Cut)/float64(max(made.Ops, 1)))
	}
	return nil
}

// named is why an issue came to stand still, with names: they are not looked for before.
func (i *issuing) named(s *issued.Stuck) error {
	info, err := demand.Compile(i.t, demand.Options{Home: io.Discard}, filepath.Join(i.work, "again"))
	if err != nil {
		return s
	}
	return s.Named(i.t, func(n uint32) string { return breakdown.Object(i.t, info, n) })
}

// partsOf is where the time of the issue went whose log was just written.
func partsOf(q issue.Request) ([]issue.Part, error) {
	log, err := issued.Open(q.Log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	return issue.Parts(q.Program, log, q.Scale)
}

// wayOf is which way an issue goes.
func wayOf(order string, think bool) (demand.Path, error) {
	switch {
	case order == "free" && think:
		return demand.PathThink, nil
	case order == "free":
		return demand.PathFree, nil
	case order == "home" && !think:
		return demand.PathHome, nil
	case order == "strict" && !think:
		return demand.PathStrict, nil
	}
	return 0, errors.New("no such way")
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"prophet/runtime/breakdown"
	"prophet/runtime/calibrate"
	"prophet/runtime/demand"
	"prophet/runtime/issued"
	"prophet/runtime/predict"
	"prophet/runtime/report"
	"prophet/runtime/run"
	"prophet/runtime/scratch"
	"prophet/runtime/sense"
	"prophet/runtime/target"
	"prophet/runtime/term"
	"prophet/runtime/trace"
)

// forecast is a prediction as it is printed: what reports read, and what only this command says.
type forecast struct {
	report.Prediction
	Refused  string      `json:"refused,omitempty"`
	Warnings []string    `json:"warnings,omitempty"` // why the answer may mean little
	Issues   int         `json:"issues"`
	Seconds  []float64   `json:"issues_seconds"` // what each took
	Factor   float64     `json:"cpu_factor"`
	Off      float64     `json:"home_issue_error"` // of issuing at home against the program there, as a share
	Checked  int         `json:"home_runs"`
	Unknown  uint64      `json:"unknown_ways"`
	Other    uint64      `json:"other_ways"`
	Forced   uint64      `json:"forced_waits"`
	Unlearnt int         `json:"unlearnt_loops"`
	Outside  float64     `json:"outside_seconds"`
	Unproven float64     `json:"unproven_share"` // of the issued events, those from where the program did another thing
	List     []round     `json:"each_round,omitempty"`
	Strict   *strictly   `json:"strict,omitempty"`
	Threads  int         `json:"threads"` // of the path that is issued
	Told     *trace.CPUs `json:"told_cpus,omitempty"`
	// What `replayd issue` is given beside the compiled trace (--keep), and what was tried at home: for who measures on.
	Args  []string     `json:"issue_args"`
	Tried predict.Home `json:"tried_at_home"`

	of round // whose path it is, where none is proven
}

// predictor is one call of the command.
type predictor struct {
	path, work, program string
	keep                string
	issues, homeRuns    int
	whatIfs             int
	rounds              int
	limit               time.Duration             // of an issue; 0: by what was recorded
	strict              int                       // rounds at most; 0: none
	told                *trace.CPUs               // that the program was told of; nil: those of home
	here                *trace.CPUs               // home's; nil: not asked yet
	shapes              map[trace.CPUs]*predictor // for targets with other CPUs
	targets             int                       // that have been asked
	split               *split
	force               bool
	trace               *trace.Trace
	library             string         // a directory of other runs of the program; "": none
	known               []*trace.Trace // those in it
	info                *demand.Info
	home                predict.Home
	machine             *calibrate.Machine
	mix                 calibrate.Mix
	walk                []string
	loop                string                // what an iteration of the loop, and of what it walks, took at home
	fewer               map[int]*predict.Home // what was tried there on so many CPUs only
}

func predictCmd() *cobra.Command {
	var (
		p       predictor
		targets []string
		mix     string
		asJSON  bool
	)
	c := &cobra.Command{
		Use:   "predict TRACE --target TARGET [--target TARGET]",
		Short: "How long the recorded program would take on another machine",
		Long: `Issues the demand of the recorded run on the target: its CPU time, disk calls, locks, waits and sleeps, with real threads
and processes, but without the program, its data or its names. Several targets make a table.

Before that the program itself is run at home, where files are as they were before the recorded run and nothing that it
writes stays, in turn with issues at home. Where those do not take what the program takes, the prediction is refused.
The demand of CPU time is what makes issues take the CPU time of the program; where the target has fewer CPUs, both are tried at home
on as few.

What is predicted is one path: threads take turns as they come on the target, wait loops and work queues included, and
results that home saw are followed as home followed them. Whether the program would take that path is then tried: it is executed at home
in the order of one of the issues. Where it asks for the very events that were issued the path is proven: that one, of
that issue, and no other. Where it does not, what it does is learnt, and issued in the next round. A library keeps that for later predictions of the same command. Where no round is proven the path is the recorded one, and
it is said which share of its events comes from where the program did another thing.` + predictJSON,
		Example: "  prophet predict app.prophet --target local,cpus=1\n  prophet predict app.prophet --target ssh://me@host --target local,dir=/mnt/disk --json",
		Args:    args(1, "a trace"),
	}
	c.Flags().StringArrayVarP(&targets, "target", "t", nil, "a `TARGET`:\n"+target.Forms)
	c.Flags().IntVarP(&p.issues, "issues", "n", 10, "how often the demand is issued")
	c.Flags().IntVar(&p.homeRuns, "home-runs", 3, "how often the program and an issue are tried at home, and up to four times as often where its CPU time differs from run to run; 0: they are not")
	c.Flags().IntVar(&p.whatIfs, "what-if", 3, "how often each change of a resource is issued; 0: what it could bring is taken from the critical path")
	c.Flags().IntVar(&p.rounds, "rounds", 3, "in how many rounds at most a path is to be proven; 0: none is")
	c.Flags().DurationVar(&p.limit, "limit", 0, "end an issue that takes longer, and say who waits for whom in it (default: a minute, and 30 times the recorded run with its CPU time)")
	c.Flags().StringVar(&p.library, "library", "", "a `directory` of traces of the same program: what it did there is known in the first round, and what rounds learn is added")
	c.Flags().IntVar(&p.strict, "strict", 0, "prove the path once more, for comparison, by issues that end at the first lock in another order or other result, each in a round of its own, in at most so many `rounds`")
	c.Flags().Lookup("strict").NoOptDefVal = strictMost
	c.Flags().BoolVar(&p.force, "force", false, "predict even where it would be refused")
	c.Flags().StringVar(&p.keep, "keep", "", "keep the compiled trace that was issued last in this `file`, for replayd issue --program")
	c.Flags().StringVar(&mix, "mix", "", "what kinds of work the program does, as integer=2,float=1 (see prophet calibrate)")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(_ *cobra.Command, a []string) error {
		if len(targets) == 0 {
			return usage("which target? --target, one of\n%s", target.Forms)
		}
		if p.issues < 1 || p.issues > 1000 || p.homeRuns < 0 || p.homeRuns > 1000 || p.whatIfs < 0 || p.whatIfs > 1000 || p.rounds < 0 || p.rounds > 1000 || p.strict < 0 || p.strict > 1_000_000 || p.limit < 0 {
			return usage("--issues wants 1 to 1000, --home-runs, --what-if and --rounds 0 to 1000, --strict 0 to 1000000, --limit a time, as 90s")
		}
		if p.keep != "" && len(targets) > 1 {
			return usage("--keep is of one target")
		}
		specs := make([]target.Spec, len(targets))
		for i, s := range targets {
			var err error
			if specs[i], err = target.Parse(s); err != nil {
				return &status{exitUsage, err}
			}
		}
		if mix != "" {
			var err error
			if p.mix, err = calibrate.ParseMix(mix); err != nil {
				return &status{exitUsage, err}
			}
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		p.path = a[0]
		list, err := p.run(ctx, specs)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil {
			return err
		}
		if asJSON {
			if len(list) == 1 {
				err = printJSON(list[0])
			} else {
				err = printJSON(list)
			}
		} else {
			p.say(os.Stdout, list)
		}
		for _, f := range list {
			if err == nil && f.Refused != "" {
				err = &status{exitDamaged, nil}
			}
		}
		return err
	}
	return c
}

// run compiles, tries at home, and asks each target.
func (p *predictor) run(ctx context.Context, specs []target.Spec) ([]*forecast, error) {
	t, live, err := open(p.path)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if live {
		return nil, usage("%s is being recorded; its run has to end first", p.path)
	}
	p.trace = t
	defer p.closeShapes()
	if err := p.openLibrary(); err != nil {
		return nil, err
	}
	defer func() {
		for _, k := range p.known {
			k.Close()
		}
	}()
	work, err := scratch.Make("", scratch.Predict)
	if err != nil {
		return nil, err
	}
	defer work.Close()
	p.work = work.Path
	if p.program = p.keep; p.program == "" {
		p.program = filepath.Join(p.work, "program")
	}
	if err := p.compile(); err != nil {
		return nil, err
	}
	if s, err := sense.Load(p.path); err == nil && s != nil && s.Walk != nil {
		p.walk = []string{"--walk", strconv.FormatUint(s.Walk.Bytes, 10)}
	}
	other := p.otherProgram()
	if other != nil && !p.force {
		return nil, other
	}
	there, err := reach(ctx, specs)
	defer func() {
		for _, t := range there {
			t.Close()
		}
	}()
	if err != nil {
		return nil, err
	}
	if err := p.atHome(ctx); err != nil {
		return nil, err
	}
	refused := p.home.Check()
	if other != nil {
		refused = other
	}
	if c := t.Meta.Cover; refused == nil && c != nil {
		refused = predict.Cover(c.CPUSeen, c.CPUNS)
	}
	if refused != nil && !p.force {
		return nil, refused
	}
	var list []*forecast
	for range specs {
		t := there[0]
		there = there[1:]
		f, err := p.ask(ctx, t)
		if err != nil {
			return nil, err
		}
		if refused != nil {
			f.Refused = refused.Error()
		}
		list = append(list, f)
	}
	return list, nil
}

// reach opens the targets before anything is tried at home: one that is not there says so at once. What it has opened it returns
// with an error, too.
func reach(ctx context.Context, specs []target.Spec) (there []*target.Target, err error) {
	for _, s := range specs {
		t, err := target.Open(ctx, s)
		if err != nil {
			return there, err
		}
		there = append(there, t)
		at := &issuer{Target: t}
		err = at.steady(ctx, func() error {
			_, err := t.Hello(ctx, false, nil)
			return err
		})
		if err != nil {
			return there, err
		}
	}
	return there, nil
}

// atHome runs the program and issues its demand in turn.
func (p *predictor) atHome(ctx context.Context) error {
	if p.homeRuns == 0 {
		return nil
	}
	bar := term.NewProgress("trying at home").Keep()
	defer bar.Done()
	at := &issuer{p: p}
	if err := at.open(ctx, target.Spec{Text: "local"}); err != nil {
		return err
	}
	defer at.Close()
	return p.turns(ctx, at, &p.home, run.CPUs(), bar.Set)
}

// unsureTimes is how many times as many turns as usual are made of a program whose CPU time is not known well enough then.
const unsureTimes = 4

// turns runs the program on so many of home's CPUs, issues its demand there and runs it again. What comes first finds caches cold and
// the demand as it was recorded: it does not count, but for the CPU time.
func (p *predictor) turns(ctx context.Context, at *issuer, h *predict.Home, cpus int, progress func(done, all int64)) error {
	done, all := int64(0), int64(3*p.homeRuns+2)
	step := func() { done++; progress(done, max(done, all)) }
	program := func() (t took, err error) {
		if t, err = p.program1(ctx, cpus); err == nil {
			step()
		}
		return t, err
	}
	issue := func(after took) (float64, error) {
		at.factor, at.loop = p.home.Demand(p.info.CPU.Seconds()), p.loop
		if len(h.CPU) > 0 {
			at.factor = h.Demand(p.info.CPU.Seconds())
		}
		r, err := at.issue(ctx, "program")
		if err != nil {
			return 0, fmt.Errorf("issuing at home: %w", err)
		}
		p.loop = r.LoopAs
		h.CPU = append(h.CPU, predict.CPU{Program: after.cpu, Issued: float64(r.CPU) / 1e9, Factor: at.factor})
		step()
		return r.Seconds, nil
	}
	cold, err := program()
	if err == nil {
		_, err = issue(cold)
	}
	if err != nil {
		return err
	}
	for n := 0; n < p.homeRuns || n < unsureTimes*p.homeRuns && !h.Sure(p.info.CPU.Seconds()); n++ {
		first, err := program()
		if err != nil {
			return err
		}
		issued, err := issue(first)
		if err != nil {
			return err
		}
		again, err := program()
		if err != nil {
			return err
		}
		c := &h.CPU[len(h.CPU)-1]
		c.Program = (c.Program + again.cpu) / 2
		h.First, h.Issued, h.Again = append(h.First, first.wall), append(h.Issued, issued), append(h.Again, again.wall)
	}
	return nil
}

// demandOn is what the recorded CPU demand is multiplied by on so many CPUs of home's. Threads that share a core share its caches, and wait
// less for what others have in theirs, so the program is run on as few at home, in turn with issues: their CPU times are compared, not
// how long they take.
func (p *predictor) demandOn(ctx context.Context, cpus int) (float64, error) {
	if p.told != nil {
		return 1, nil // it was recorded just now, and was not tried as it is there
	}
	if p.homeRuns == 0 || p.info.Threads < 2 || cpus >= run.CPUs() {
		return p.home.Demand(p.info.CPU.Seconds()), nil
	}
	h := p.fewer[cpus]
	if h == nil {
		name := fmt.Sprintf("local,cpus=%d", cpus)
		bar := term.NewProgress("trying at home on " + plural(cpus, "CPU")).Keep()
		defer bar.Done()
		at := &issuer{p: p}
		if err := at.open(ctx, target.Spec{Text: name, CPUs: cpus}); err != nil {
			return 0, err
		}
		defer at.Close()
		h = &predict.Home{}
		if err := p.turns(ctx, at, h, cpus, bar.Set); err != nil {
			return 0, err
		}
		if p.fewer == nil {
			p.fewer = map[int]*predict.Home{}
		}
		p.fewer[cpus] = h
	}
	return h.Demand(p.info.CPU.Seconds()), nil
}

// took is what a run of the program took, in seconds.
type took struct{ wall, cpu float64 }

// program1 runs the program once, on so many CPUs, where all is as before the recorded run.
func (p *predictor) program1(ctx context.Context, cpus int) (took, error) {
	var none took
	replayd, err := run.FindReplayd()
	if err != nil {
		return none, err
	}
	self, err := os.Executable()
	if err != nil {
		return none, err
	}
	if len(p.trace.Procs) == 0 || len(p.trace.Procs[0].Args) == 0 || p.trace.Procs[0].Exe == "" {
		return none, errors.New("the trace does not say what was run; --home-runs 0 predicts without trying it")
	}
	first := p.trace.Procs[0]
	abs, err := filepath.Abs(p.path)
	if err != nil {
		return none, err
	}
	cmd := exec.CommandContext(ctx, replayd, append([]string{"inside", abs, "--", self, stopwatchName, first.Cwd, first.Exe}, first.Args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	err = run.OnCPUs(cpus, cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return none, fmt.Errorf("running the program at home: %w: %s (--home-runs 0 predicts without trying it)", err, trace.Clean(strings.TrimSpace(said.String())))
	}
	var ns, cpu, status int64
	if _, err := fmt.Sscan(out.String(), &ns, &cpu, &status); err != nil || ns <= 0 || cpu < 0 {
		return none, fmt.Errorf("running the program at home: it is not said how long it took: %.80q", out.String())
	}
	if e := p.trace.Meta.Ended; e != nil && (e.How == "exit" || e.How == "quick") && status != e.Status {
		return none, fmt.Errorf("running the program at home: it ended with status %d, and with %d when it was recorded: what it needs is not there as it was (--home-runs 0 predicts without trying it)", status, e.Status)
	}
	return took{float64(ns) / 1e9, float64(cpu) / 1e9}, nil
}

const stopwatchName = "stopwatch"

// stopwatchCmd runs a program and says how long it took, how much CPU time with its children, and its status. It is what runs inside of the surroundings of a trace, so that making
// those is not counted.
func stopwatchCmd() *cobra.Command {
	return &cobra.Command{
		Use:                stopwatchName + " DIR EXE ARGS...",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, a []string) error {
			if len(a) < 3 {
				return usage("a directory, a program and its arguments")
			}
			cmd := &exec.Cmd{Dir: a[0], Path: a[1], Args: a[2:]}
			begin := time.Now()
			err := cmd.Run()
			took := time.Since(begin)
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				return err
			}
			fmt.Println(took.Nanoseconds(), (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Nanoseconds(), cmd.ProcessState.ExitCode())
			return nil
		},
	}
}

// issuer issues the program on a target.
type issuer struct {
	*target.Target
	p      *predictor
	factor float64
	loop   string            // what an iteration of the loop is taken to take; "": what it takes there
	files  map[string]string // that were put there: where they are here, by name; of all issuers of a target the same
}

func (i *issuer) open(ctx context.Context, s target.Spec) error {
	t, err := target.Open(ctx, s)
	if err != nil {
		return err
	}
	return i.take(ctx, t)
}

// take issues on a target that is open already, and is closed where that fails.
func (i *issuer) take(ctx context.Context, t *target.Target) error {
	i.Target, i.files = t, map[string]string{}
	err := i.steady(ctx, func() error { return i.put(ctx, "program", i.p.program) })
	if err != nil {
		t.Close()
	}
	return err
}

// put brings a file to the target.
func (i *issuer) put(ctx context.Context, name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := i.Put(ctx, name, f); err != nil {
		return err
	}
	i.files[name] = path
	return nil
}

// lostTries is how often a lost connection is made anew for one thing that is done there.
const lostTries = 3

// steady does something on the target. Where the connection is lost meanwhile it is made anew, what was there is brought there again,
// and it is done once more: what was measured and learnt before is here, and counts.
func (i *issuer) steady(ctx context.Context, do func() error) error {
	for try := 0; ; try++ {
		err := do()
		if !errors.Is(err, target.ErrLost) || ctx.Err() != nil || try == lostTries {
			return err
		}
		if again := i.Reconnect(ctx); again != nil {
			return fmt.Errorf("%w; and then: %w", err, again)
		}
		for name, path := range i.files {
			if err := i.put(ctx, name, path); err != nil && !errors.Is(err, target.ErrLost) {
				return err
			}
		}
	}
}

// issueResult is what `replayd issue --json` prints.
type issueResult struct {
	Wall    int64  `json:"wall_ns"`
	CPU     int64  `json:"cpu_ns"`
	LoopAs  string `json:"loop_as"`
	Other   uint64 `json:"other_ways"`
	Unknown uint64 `json:"unknown_ways"`
	Forced  uint64 `json:"forced_waits"`
	Outside int64  `json:"outside_ns"`

	Diverged *struct {
		Thread uint32 `json:"thread"`
	} `json:"diverged"`
	Stuck   *issued.Stuck `json:"stuck"`
	Seconds float64
}

// args are those that say how the demand is issued there.
func (i *issuer) args() []string {
	list := append([]string{"--scale", strconv.FormatFloat(i.factor, 'g', -1, 64)}, i.p.walk...)
	if i.loop != "" {
		list = append(list, "--loop", i.loop)
	}
	return list
}

// issue issues a program that is there.
func (i *issuer) issue(ctx context.Context, program string, more ...string) (r *issueResult, err error) {
	err = i.steady(ctx, func() error {
		r, err = i.once(ctx, program, more...)
		return err
	})
	return r, err
}

// logged issues a program that is there, and brings its log home.
func (i *issuer) logged(ctx context.Context, program, log string) (r *issueResult, err error) {
	err = i.steady(ctx, func() error {
		os.Remove(log)
		if r, err = i.once(ctx, program, "--log", "log"); err != nil {
			return err
		}
		return i.Get(ctx, "log", log, issued.LogMax)
	})
	return r, err
}

func (i *issuer) once(ctx context.Context, program string, more ...string) (*issueResult, error) {
	var r issueResult
	got := false
	args := slices.Concat([]string{"--program", program, "--json", "--dir", "."}, i.args(), more)
	if i.p.limit > 0 {
		args = append(args, "--limit", i.p.limit.String())
	}
	res, err := i.Issue(ctx, target.Request{Args: args}, func(line string) {
		if json.Unmarshal([]byte(line), &r) == nil && r.Wall > 0 {
			got = true
		}
	})
	if err != nil {
		return nil, err
	}
	if r.Stuck != nil {
		return nil, fmt.Errorf("issuing on %s: %w", i.Spec().Text, r.Stuck.Named(i.p.trace, func(n uint32) string {
			if program != "program" { // of what was learnt, which numbers objects as they come
				return ""
			}
			return breakdown.Object(i.p.trace, i.p.info, n)
		}))
	}
	if res.Signal != "" && !res.Stopped {
		return nil, fmt.Errorf("issuing on %s: it was ended there by %s", i.Spec().Text, res.Signal)
	}
	if res.Status != 0 || !got {
		return nil, fmt.Errorf("issuing on %s: %s", i.Spec().Text, trace.Clean(strings.TrimSpace(res.Stderr)))
	}
	r.Seconds = float64(r.Wall) / 1e9
	return &r, nil
}

// ask issues on one target and works out the answer.
func (p *predictor) ask(ctx context.Context, t *target.Target) (_ *forecast, err error) {
	s := t.Spec()
	at := &issuer{p: p}
	if err := at.take(ctx, t); err != nil {
		return nil, err
	}
	defer at.Close()
	var info *target.Info
	err = at.steady(ctx, func() (err error) {
		info, err = at.Hello(ctx, false, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	q, err := p.as(ctx, trace.CPUs{info.CPUs, info.Online, info.Configured})
	if err != nil {
		return nil, err
	}
	at.p = q
	if at.factor, err = q.demandOn(ctx, info.CPUs); err != nil {
		return nil, err
	}
	if s.Host != "" || s.Command != "" {
		f, err := q.speed(ctx, at)
		if err != nil {
			return nil, err
		}
		at.factor *= f
	} else {
		// It is this machine: as many iterations as at home, so that what slows it meanwhile slows them as it would the program.
		at.loop = p.loop
	}
	p = q
	f := &forecast{Issues: p.issues, Factor: at.factor, Checked: len(p.home.First), Unlearnt: p.info.Unlearnt, Threads: p.info.Threads, Told: p.told}
	if p.told != nil {
		f.Notes = append(f.Notes, fmt.Sprintf("the program asks how many CPUs there are: it was recorded anew at home, told of %d, of which it may use %d, and issued as it ran then, with %s", p.told[1], p.told[0], plural(p.info.Threads, "thread")))
	}
	f.Notes = append(f.Notes, notIssued(p.info)...)
	p.targets++
	proof, err := p.prove(ctx, at, p.targets)
	if err != nil {
		return nil, err
	}
	if err := at.steady(ctx, func() error { return at.put(ctx, proof.name, proof.program) }); err != nil {
		return nil, err
	}
	seconds := proof.seconds
	bar := term.NewProgress("issuing on " + s.Text).Keep()
	defer bar.Done()
	for n := len(seconds); n < p.issues; n++ {
		r, err := at.issue(ctx, proof.name)
		if err != nil {
			return nil, err
		}
		seconds = append(seconds, r.Seconds)
		f.Other, f.Unknown, f.Forced, f.Outside = r.Other, r.Unknown, r.Forced, float64(r.Outside)/1e9
		bar.Set(int64(n+1), int64(p.issues))
	}
	bar.Done()
	f.Target, f.Args, f.Tried = s.Text, at.args(), p.home
	proof.tell(f)
	if p.strict > 0 {
		if f.Strict, err = p.proveStrict(ctx, at); err != nil {
			return nil, err
		}
	}
	if proof.program != p.program {
		f.Notes = append(f.Notes, "where the time goes, and what would change it, is of the path that home recorded; the time is of the one that was learnt")
	}
	f.Predicted, f.Seconds = predict.Median(seconds), seconds
	f.Low, f.High = predict.Interval(seconds, &p.home)
	f.Home, f.Noise = p.info.Home.Seconds(), p.home.Noise()
	if p.homeRuns > 0 {
		f.Home, f.Off = p.home.Median(), p.home.Off()
	}
	f.Warnings = p.home.Doubts()
	defer func() { err = errors.Join(err, p.keepIssued(proof)) }()
	return f, p.explain(ctx, at, f, seconds)
}

// keepIssued puts what was issued in the end where it is to be kept.
func (p *predictor) keepIssued(r *proof) error {
	if p.keep == "" || r.program == p.keep {
		return nil
	}
	from, err := os.Open(r.program)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.Create(p.keep)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// speed is how much CPU time the target needs for a second of ours.
func (p *predictor) speed(ctx context.Context, at *issuer) (float64, error) {
	if p.machine == nil {
		here := &issuer{p: p}
		if err := here.open(ctx, target.Spec{Text: "local"}); err != nil {
			return 0, err
		}
		info, err := here.Hello(ctx, true, nil)
		here.Close()
		if err != nil {
			return 0, err
		}
		p.machine = info.Machine
	}
	var info *target.Info
	err := at.steady(ctx, func() (err error) {
		info, err = at.Hello(ctx, true, nil)
		return err
	})
	if err != nil {
		return 0, err
	}
	if p.machine == nil || info.Machine == nil {
		return 0, fmt.Errorf("target %s does not say how fast it is", at.Spec().Text)
	}
	return calibrate.Scale(p.machine, info.Machine, p.mix).Factor, nil
}

package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"prophet/cabi"
	"prophet/runtime/term"
	"prophet/runtime/trace"
)

// Command is the command line of `record`, the same in every program that has it. It ends the process itself, as
// the program that it ran ended.
func Command(program string) *cobra.Command {
	c, _ := CommandWith(program)
	return c
}

// CommandWith is Command, with the options that its flags set, for a program that has more of them.
func CommandWith(program string) (*cobra.Command, *Options) {
	o := &Options{}
	var flight string
	var chaos, cpus string
	var asJSON, quiet, untilFail bool
	var search Search
	c := &cobra.Command{
		Use:   "record [flags] [--] program [args]",
		Short: "Run a program and record what it does",
		Long: `Runs the program with libprophet.so loaded into it and its children, passes signals on to it, and ends as it ends.
The trace is complete when all processes of the run have ended; those that outlive the program go on recording.

With --until-fail the program is run again and again, each time into a fresh trace, until a run fails: ends with a status
other than 0, by a signal, or takes longer than --timeout. Only the trace of that run is kept, and only its output is
shown (of each of stdout and stderr the first and the last 512 KiB); standard input is empty. A run is over when its first
process has ended; what that leaves behind is killed after a second.

With --chaos threads are held up at their calls, by a seed, so that orders that are rare in plain runs become common;
with --until-fail the seed grows by one with each run.

Exit status: the program's own; when a signal ended it, the same signal, or 128 and its number. 125: Prophet itself
failed before the program was started. 126: the program cannot be executed. 127: it cannot be found. With --json, one
object on stderr tells the run's status from ours. With --until-fail: that of the run that failed, 124 when it took too
long; 0 when none failed; 125 too when a trace cannot be removed.`,
		Example: "  " + program + " record -o app.prophet -- ./app --threads 4\n  " + program + " record --flight 16M -- ./server\n  " + program + " record --until-fail --chaos auto --timeout 10s -- ./flaky-test",
		Args:    cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			o.Args = args
			err := o.check(flight)
			if err == nil {
				err = o.chaos(chaos)
			}
			if err == nil && cpus != "" {
				if o.CPUs, err = trace.ParseCPUs(cpus); err != nil {
					err = ours("--cpus: %w", err)
				}
			}
			if err == nil && !untilFail && (search.Runs != defaultRuns || search.Timeout != 0) {
				err = ours("--runs and --timeout belong to --until-fail")
			}
			if err == nil && search.Runs < 0 {
				err = ours("--runs %d: not a number of runs", search.Runs)
			}
			if err == nil && untilFail && o.Begin != nil {
				err = ours("--control does not go with --until-fail, whose runs come and go")
			}
			if err == nil && untilFail {
				search.Options = *o
				begin := time.Now()
				found, err := search.Find()
				tellSearch(found, err, time.Since(begin), asJSON, quiet, program)
				return nil
			}
			if err == nil && chaos == "auto" && !asJSON && !quiet {
				fmt.Fprintf(os.Stderr, "%s: chaos of seed %d\n", program, *o.Chaos)
			}
			var res *Result
			if err == nil {
				p := term.NewProgress("completing the trace")
				o.Prog = p.Set
				res, err = Record(*o)
				p.Done()
			}
			tell(res, err, asJSON, quiet, program)
			return nil
		},
	}
	f := c.Flags()
	f.SetInterspersed(false) // what follows the program's name is the program's
	f.StringVarP(&o.Out, "output", "o", "", "the trace to make (default <program>.<pid>.prophet here, else under TMPDIR)")
	f.StringVar(&o.Inputs, "inputs", "default", "input data to keep: none (sizes), hash, full, or default (hashes of files, the data of all else)")
	f.StringVar(&o.Level, "level", "full", "what to record first: off, order (locks, threads, signals, marks) or full; see '"+program+" level'")
	f.BoolVar(&o.Serial, "serial", false, "let one thread of the run go at a time")
	f.StringVar(&chaos, "chaos", "", "hold threads up at their calls by this seed, or by a new one: auto")
	f.BoolVar(&untilFail, "until-fail", false, "run it until a run fails, and keep that one's trace")
	f.IntVarP(&search.Runs, "runs", "n", defaultRuns, "with --until-fail: at most so many runs, 0: any number")
	f.DurationVar(&search.Timeout, "timeout", 0, "with --until-fail: a run that takes longer (as 10s) has failed")
	f.StringVar(&flight, "flight", "", "keep only the last part, of this size (16M), in memory")
	f.StringVar(&o.Stacks, "stacks", strconv.Itoa(cabi.StackRate), "take the stacks of each thread at its events up to `RATE` times a second, 0: none; cpu, or cpu:RATE: also by a timer of its CPU time")
	f.StringVar(&cpus, "cpus", "", "tell the program that the machine has so many `CPUS`, so that it starts as many threads as it would there; or, where these differ, how many it may use, are online and are there: 1:2:2")
	f.BoolVar(&o.ASLR, "aslr", false, "leave addresses random, as they are without Prophet")
	f.BoolVar(&o.Force, "force", false, "replace a trace of that name")
	f.BoolVar(&asJSON, "json", false, "print one JSON object about the run on stderr at the end")
	f.BoolVarP(&quiet, "quiet", "q", false, "say nothing when all went well")
	return c, o
}

const defaultRuns = 1000

// chaos reads a seed.
func (o *Options) chaos(s string) error {
	switch s {
	case "":
		return nil
	case "auto":
		seed := uint64(rand.Uint32())
		o.Chaos = &seed
		return nil
	}
	seed, err := strconv.ParseUint(s, 10, 62)
	if err != nil {
		return ours("--chaos %s: a number below 2^62, or auto", s)
	}
	o.Chaos = &seed
	return nil
}

func (o *Options) check(flight string) error {
	if len(o.Args) == 0 {
		return ours("no program is named: record [flags] -- program [args]")
	}
	if all := []string{"none", "hash", "full", "default"}; !slices.Contains(all, o.Inputs) {
		return ours("--inputs %s: one of %s", o.Inputs, strings.Join(all, ", "))
	}
	if _, ok := trace.LevelByName(o.Level); !ok {
		return ours("--level %s: one of off, order, full", o.Level)
	}
	if err := checkStacks(o.Stacks); err != nil {
		return err
	}
	if flight == "" {
		return nil
	}
	size, err := ParseSize(flight)
	if err != nil {
		return ours("--flight: %w", err)
	}
	if size < 64<<10 {
		return ours("--flight %s: at least 64K, as a thread's part is", flight)
	}
	o.Flight = size
	return nil
}

func checkStacks(s string) error {
	rate, cpu := strings.CutPrefix(s, "cpu")
	if cpu && rate != "" && !strings.HasPrefix(rate, ":") {
		rate = "?"
	}
	if rate = strings.TrimPrefix(rate, ":"); rate == "" && (cpu || s == "") {
		return nil
	}
	if n, err := strconv.ParseUint(rate, 10, 32); err != nil || n > cabi.StackRateMax {
		return ours("--stacks %s: a rate of up to %d a second, cpu, or cpu:RATE", s, cabi.StackRateMax)
	}
	return nil
}

// ParseSize reads 4096, 64K, 16M or 1G.
func ParseSize(s string) (int64, error) {
	num, unit := s, int64(1)
	if n := len(s); n > 0 {
		if i := strings.IndexByte("kmg", s[n-1]|0x20); i >= 0 {
			num, unit = s[:n-1], 1<<(10*(i+1))
		}
	}
	v, err := strconv.ParseInt(num, 10, 64)
	if err != nil || v < 0 || v > 1<<62/unit {
		return 0, fmt.Errorf("%q is not a size; write bytes, or a number with K, M or G", s)
	}
	return v * unit, nil
}

// report is what --json prints.
type report struct {
	Run     *runReport    `json:"run"` // null: the program was not started
	Prophet oursReport    `json:"prophet"`
	Search  *searchReport `json:"until_fail,omitempty"`
}

type searchReport struct {
	Failed   bool    `json:"failed"`
	Runs     int     `json:"runs"`
	Seconds  float64 `json:"seconds"`
	TimedOut bool    `json:"timed_out,omitempty"`
	Chaos    *uint64 `json:"chaos,omitempty"`  // the seed of the run that failed
	Replay   string  `json:"replay,omitempty"` // the command that re-executes it
}

type runReport struct {
	Status int     `json:"status"`
	Signal string  `json:"signal,omitempty"`
	Trace  string  `json:"trace"`
	Live   bool    `json:"live"` // processes of the run go on
	Events uint64  `json:"events,omitempty"`
	Chaos  *uint64 `json:"chaos,omitempty"` // its seed
}

type oursReport struct {
	Status int    `json:"status"`
	Error  string `json:"error,omitempty"`
}

// about is what there is to say about a run, or why there is none.
func about(res *Result, err error) (r report) {
	if err != nil {
		r.Prophet = oursReport{StatusOurs, err.Error()}
		var f *Failed
		if errors.As(err, &f) {
			r.Prophet.Status = f.Status
		}
	} else if res != nil {
		r.Run = &runReport{Status: res.Status, Trace: res.Trace, Live: res.Live}
		if res.Signal != 0 {
			r.Run.Signal = trace.SignalName(uint64(res.Signal))
		}
		if res.Meta != nil && res.Meta.Totals != nil {
			r.Run.Events = res.Meta.Totals.Events
			r.Run.Chaos = res.Meta.Options.Chaos
		}
		if res.Err != nil {
			r.Prophet = oursReport{StatusOurs, res.Err.Error()}
		}
	}
	return r
}

func (r *report) print() {
	b, _ := json.Marshal(r)
	fmt.Fprintf(os.Stderr, "%s\n", b)
}

// tell says how it went and ends this process.
func tell(res *Result, err error, asJSON, quiet bool, program string) {
	r := about(res, err)
	switch {
	case asJSON:
		r.print()
	case r.Prophet.Error != "":
		fmt.Fprintf(os.Stderr, "%s: %s\n", program, trace.Clean(r.Prophet.Error))
	case quiet || !term.IsTerminal(os.Stderr): // what the program writes is then all there is
	case res.Live:
		fmt.Fprintf(os.Stderr, "%s: recording to %s goes on in processes that outlive the program\n", program, res.Trace)
	default:
		fmt.Fprintf(os.Stderr, "%s: %d events in %s\n", program, r.Run.Events, res.Trace)
	}
	if res == nil {
		os.Exit(r.Prophet.Status)
	}
	Die(res)
}

// tellSearch says what a search found, and ends this process.
func tellSearch(c *Catch, err error, took time.Duration, asJSON, quiet bool, program string) {
	var res *Result
	if c != nil {
		res = c.Result
	}
	r := about(res, err)
	if c != nil {
		r.Search = &searchReport{Failed: res != nil, Runs: c.Runs, Seconds: took.Seconds(), TimedOut: c.TimedOut}
		if res != nil {
			r.Search.Chaos, r.Search.Replay = c.Seed, "replayd --trace "+quoted(res.Trace)
			c.out[0].print(os.Stdout)
			c.out[1].print(os.Stderr)
		}
	}
	switch {
	case asJSON:
		r.print()
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %s\n", program, trace.Clean(r.Prophet.Error))
	case res != nil:
		fmt.Fprintf(os.Stderr, "%s: run %d failed: %s\n", program, c.Runs, r.why(c))
		fmt.Fprintf(os.Stderr, "%s: its trace is %s; it runs again by\n  %s\n", program, trace.Clean(res.Trace), trace.Clean(r.Search.Replay))
		if r.Prophet.Error != "" {
			fmt.Fprintf(os.Stderr, "%s: %s\n", program, trace.Clean(r.Prophet.Error))
		}
	case !quiet:
		how := "none failed"
		if c.Signal != nil {
			how = "ended by " + trace.SignalName(uint64(c.Signal.(syscall.Signal)))
		}
		fmt.Fprintf(os.Stderr, "%s: %d runs in %.1f s, %s\n", program, c.Runs, took.Seconds(), how)
	}
	switch {
	case err != nil:
		os.Exit(r.Prophet.Status)
	case c.Signal != nil:
		s := c.Signal.(syscall.Signal)
		Die(&Result{Signal: s, Status: 128 + int(s)})
	case res == nil:
		os.Exit(0)
	}
	Die(res)
}

// why is how a run failed, and what was done to it.
func (r *report) why(c *Catch) string {
	s := fmt.Sprintf("exit status %d", r.Run.Status)
	switch {
	case c.TimedOut:
		s = "it took too long, and was killed"
	case r.Run.Signal != "":
		s = "ended by " + r.Run.Signal
	}
	if c.Seed != nil {
		s += fmt.Sprintf(" (chaos of seed %d)", *c.Seed)
	}
	return s
}

// quoted is s as a shell reads it.
func quoted(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+=:,@%", r)
	}
	if s != "" && strings.TrimFunc(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"prophet/runtime/term"
	"prophet/runtime/trace"
)

// Command is the command line of `record`, the same in every program that has it. It ends the process itself, as
// the program that it ran ended.
func Command(program string) *cobra.Command {
	var o Options
	var flight string
	var asJSON, quiet bool
	c := &cobra.Command{
		Use:   "record [flags] [--] program [args]",
		Short: "Run a program and record what it does",
		Long: `Runs the program with libprophet.so loaded into it and its children, passes signals on to it, and ends as it ends.
The trace is complete when all processes of the run have ended; those that outlive the program go on recording.

Exit status: the program's own; when a signal ended it, the same signal, or 128 and its number. 125: Prophet itself
failed before the program was started. 126: the program cannot be executed. 127: it cannot be found. With --json, one
object on stderr tells the run's status from ours.`,
		Example: "  " + program + " record -o app.prophet -- ./app --threads 4\n  " + program + " record --flight 16M -- ./server",
		Args:    cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			o.Args = args
			err := o.check(flight)
			var res *Result
			if err == nil {
				p := term.NewProgress("completing the trace")
				o.Prog = p.Set
				res, err = Record(o)
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
	f.StringVar(&o.Level, "level", "full", "what to record first: off, order (locks, threads, signals, marks) or full; see `"+program+" level`")
	f.BoolVar(&o.Serial, "serial", false, "let one thread of the run go at a time")
	f.StringVar(&flight, "flight", "", "keep only the last part, of this size (16M), in memory")
	f.BoolVar(&o.Force, "force", false, "replace a trace of that name")
	f.BoolVar(&asJSON, "json", false, "print one JSON object about the run on stderr at the end")
	f.BoolVarP(&quiet, "quiet", "q", false, "say nothing when all went well")
	return c
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
	Run     *runReport `json:"run"` // null: the program was not started
	Prophet oursReport `json:"prophet"`
}

type runReport struct {
	Status int    `json:"status"`
	Signal string `json:"signal,omitempty"`
	Trace  string `json:"trace"`
	Live   bool   `json:"live"` // processes of the run go on
	Events uint64 `json:"events,omitempty"`
}

type oursReport struct {
	Status int    `json:"status"`
	Error  string `json:"error,omitempty"`
}

// tell says how it went and ends this process.
func tell(res *Result, err error, asJSON, quiet bool, program string) {
	var r report
	if err != nil {
		r.Prophet = oursReport{StatusOurs, err.Error()}
		var f *Failed
		if errors.As(err, &f) {
			r.Prophet.Status = f.Status
		}
	} else {
		r.Run = &runReport{Status: res.Status, Trace: res.Trace, Live: res.Live}
		if res.Signal != 0 {
			r.Run.Signal = trace.SignalName(uint64(res.Signal))
		}
		if res.Meta != nil && res.Meta.Totals != nil {
			r.Run.Events = res.Meta.Totals.Events
		}
		if res.Err != nil {
			r.Prophet = oursReport{StatusOurs, res.Err.Error()}
		}
	}
	switch {
	case asJSON:
		b, _ := json.Marshal(r)
		fmt.Fprintf(os.Stderr, "%s\n", b)
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

// Command replayd attaches to live runs: it reads along their rings and switches their level. It shares `record` with
// prophet.
//
// Exit statuses: 0 good, 1 failed, 2 usage; `record` ends as the program it ran (125, 126, 127: see its help).
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"prophet/cabi"
	"prophet/runtime/inside"
	"prophet/runtime/manual"
	"prophet/runtime/run"
	"prophet/runtime/trace"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

// usageError asks for the status of wrong usage, or another.
type usageError struct {
	code int
	err  error
}

func (u *usageError) Error() string { return u.err.Error() }

func root() *cobra.Command {
	var re reexec
	c := &cobra.Command{
		Use:   "replayd --trace TRACE [-- program args]",
		Short: "Re-execute recorded runs, and attach to live ones",
		Long: `replayd --trace re-executes a recorded run: with the command that the trace names, or the one given, in the
surroundings that the run began in. What the program writes is removed at the end. Every event is compared with the
trace; the first difference ends the run and is reported. With --learn the program goes on freely from there instead, all of its
threads from one consistent cut, and that run becomes a trace of its own, which can be executed again, too.

The commands read along live runs without disturbing them, and switch what they record.

Exit status of a re-execution: the program's own when it was identical; 125 when it differed, or could not be started.
Otherwise: 0 good, 1 failed, 2 usage; record ends as the program it ran.`,
		Example:       "  replayd --trace app.prophet\n  replayd --trace app.prophet --control /tmp/app.sock -- ./app --threads 4",
		Version:       cabi.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if re.trace != "" {
				re.args = args
				ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
				defer stop()
				if re.stall <= 0 {
					return &usageError{exitUsage, fmt.Errorf("--stall wants a time, as 10s")}
				}
				status, err := re.run(ctx)
				if re.json {
					re.tell(status, err)
				} else if err != nil {
					fmt.Fprintln(os.Stderr, "replayd:", trace.CleanLines(err.Error()))
				}
				os.Exit(status)
			}
			return &usageError{exitUsage, fmt.Errorf("which command? (see `%s --help`)", c.CommandPath())}
		},
	}
	c.Flags().StringVar(&re.trace, "trace", "", "re-execute the run of this trace")
	c.Flags().BoolVar(&re.realtime, "realtime", false, "sleeps take their time")
	c.Flags().StringVar(&re.writes, "writes", "", "a `DIR` for what the program writes, or the word real; otherwise it is removed at the end")
	c.Flags().DurationVar(&re.stall, "stall", stallSpin, "CPU `time` that a thread may use without any event, where the recorded run took less than a tenth of it")
	c.Flags().BoolVar(&re.json, "json", false, "print one JSON object about the re-execution on stderr at the end")
	re.control.add(c)
	c.Flags().StringVarP(&re.output, "output", "o", "", "the trace of what comes after the harness is taken off (detach); default: beside TRACE, -free before its end")
	c.Flags().StringVar(&re.learn, "learn", "", "at the first difference take the harness off, let the program go on, and make `NEW` of both parts: the trace of that whole run")
	c.Flags().BoolVar(&re.hold, "pause", false, "stand before the first event, until the control protocol lets it go on")
	c.Flags().SetInterspersed(false)
	flagError := func(code int) func(*cobra.Command, error) error {
		return func(_ *cobra.Command, err error) error { return &usageError{code, err} }
	}
	c.SetFlagErrorFunc(flagError(exitUsage))
	record := recordCmd()
	record.SetFlagErrorFunc(flagError(run.StatusOurs))
	level := run.LevelCommand("replayd")
	level.Args = exactly(2, "a pid or a trace, and off, order or full")
	c.AddCommand(record, level, attachCmd(), insideCmd(), watchCmd(), calibrateCmd(), issueCommand())
	c.AddCommand(targetCmd(), serveCmd(), neighbourCmd(), walkCmd()) // of predictions
	c.AddCommand(manual.Command(c))
	return c
}

func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, a []string) error {
		if len(a) != n {
			return &usageError{exitUsage, fmt.Errorf("%s wants %s (see `%s --help`)", cmd.CommandPath(), what, cmd.CommandPath())}
		}
		return nil
	}
}

func main() {
	inside.Main()
	err := root().Execute()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "replayd:", trace.CleanLines(err.Error()))
	if u, ok := err.(*usageError); ok {
		os.Exit(u.code)
	}
	if strings.HasPrefix(err.Error(), "unknown command") {
		os.Exit(exitUsage)
	}
	os.Exit(exitFailed)
}

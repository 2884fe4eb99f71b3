package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"prophet/runtime/recovery"
	"prophet/runtime/run"
	"prophet/runtime/term"
	"prophet/runtime/trace"
)

func levelCmd() *cobra.Command {
	c := run.LevelCommand("prophet")
	c.Args = args(2, "a pid or a trace, and off, order or full")
	return c
}

func flightCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "flight PID|TRACE",
		Short: "Write what the flight recorder of a live run holds into its trace",
		Long: `A run recorded with --flight keeps only its last part, in memory. This writes that part into the trace now; the run
goes on. At the run's end, or after a crash, the next command that looks does the same.

Exit status: 0; 2 when the run is not live or has no flight recorder.`,
		Args: args(1, "a pid or a trace"),
		RunE: func(_ *cobra.Command, a []string) error {
			dir, err := run.Locate(a[0])
			if err != nil {
				return usage("%v", err)
			}
			n, err := run.Flight(dir)
			if err != nil {
				return usage("%v", err)
			}
			fmt.Printf("%s: %s written\n", trace.Clean(dir), plural(n, "chunk"))
			return nil
		},
	}
}

func recoverCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "recover TRACE",
		Short: "Save what killed processes left in shared memory",
		Long: `Appends the tails of threads whose process was killed to the trace, and completes the trace when no process of the run
is left. Every command that opens a trace whose run has ended does this first; while other processes of the run go
on, only this command does.

Exit status: 0; 1 when something could not be saved; 2 when it is no trace.`,
		Args: args(1, "one trace"),
		RunE: func(_ *cobra.Command, a []string) error {
			p := term.NewProgress("recovering " + a[0])
			rep, err := recovery.Recover(a[0], recovery.Options{Progress: p.Set})
			p.Done()
			if err != nil {
				return usage("%v", err)
			}
			for _, e := range rep.Errs {
				sayDamage([]error{e}, 1)
			}
			switch {
			case rep.Skipped:
				return usage("another command is recovering %s", a[0])
			case rep.Live > 0:
				fmt.Printf("%s is live (%s); %s of killed ones saved\n", trace.Clean(a[0]), plural(rep.Live, "thread"), plural(rep.Tails, "tail"))
			case rep.Was:
				fmt.Printf("%s was complete\n", trace.Clean(a[0]))
			default:
				fmt.Printf("%s is complete: %s saved (%s)\n", trace.Clean(a[0]), plural(rep.Tails+rep.Flight, "tail"), bytesText(int64(rep.Bytes)))
			}
			if len(rep.Errs) > 0 {
				return &status{exitDamaged, nil}
			}
			return nil
		},
	}
}

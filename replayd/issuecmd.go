package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"prophet/replayd/issue"
	"prophet/runtime/demand"
	"prophet/runtime/issued"
	"prophet/runtime/recovery"
)

// issueCommand issues the demand of a trace on this machine.
func issueCommand() *cobra.Command {
	var (
		path, keep string
		asJSON     bool
		parts      bool
		q          issue.Request
		times      int
		order      string
		think      bool
	)
	c := &cobra.Command{
		Use:   "issue --trace TRACE",
		Short: "Issue the demand of a trace on this machine, without its program",
		Long: `Each thread of the recorded run is issued by one of the engine's: CPU time, disk calls on files without content, locks,
waits, sleeps, pipes. It says how long that took. Files lie in a directory of their own below --dir and are removed after.`,
		Example: "  replayd issue --trace app.prophet\n  replayd issue --trace app.prophet --dir /mnt/disk --cpus 0 --times 5 --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if (path == "") == (q.Program == "") || times < 1 {
				return &usageError{exitUsage, errors.New("which trace? (--trace TRACE, or --program FILE; and --times 1 or more)")}
			}
			way, err := wayOf(order, think)
			if err != nil || way != demand.PathFree && path == "" {
				return &usageError{exitUsage, errors.New("--order is free or home; it and --think want a --trace, and exclude each other")}
			}
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if times > 1 && q.Log != "" {
				return &usageError{exitUsage, errors.New("--log is of one issue: not with --times")}
			}
			log := q.Log
			if path != "" || parts {
				dir, err := os.MkdirTemp("", "prophet-program-")
				if err != nil {
					return err
				}
				defer os.RemoveAll(dir)
				if log == "" && parts {
					log = filepath.Join(dir, "log")
				}
				if path != "" && keep == "" {
					keep = filepath.Join(dir, "program")
				}
			}
			if path != "" {
				q.Program = keep
				if err := compile(path, q.Program, way); err != nil {
					return err
				}
			} else if err := demand.Verify(q.Program); err != nil {
				return err
			}
			q.Log = log
			for range times {
				r, err := issue.Run(ctx, q)
				if err != nil {
					return err
				}
				if parts {
					if r.Parts, err = partsOf(q); err != nil {
						return err
					}
				}
				if asJSON {
					if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
						return err
					}
					continue
				}
				fmt.Printf("%.6f s; %d operations, %d other ways, %d unknown\n", r.Wall.Seconds(), r.Done, r.Other, r.Unknown)
				for _, p := range r.Parts {
					fmt.Printf("  thread %-6d %-6s %.6f s\n", p.UID, p.Class, p.Seconds)
				}
			}
			return nil
		},
	}
	c.Flags().StringVar(&path, "trace", "", "the trace whose demand is issued")
	c.Flags().StringVar(&q.Dir, "dir", "", "a directory on the disk to use (default: that of temporary files)")
	c.Flags().Float64Var(&q.Scale, "scale", 1, "CPU time here for one second of the recorded machine's")
	c.Flags().IntSliceVar(&q.CPUs, "cpus", nil, "the processors to use, by number (default: all)")
	c.Flags().IntVar(&times, "times", 1, "how often")
	c.Flags().StringVar(&q.Program, "program", "", "issue this `file`, a trace that was compiled (--keep)")
	c.Flags().StringVar(&keep, "keep", "", "keep the compiled trace in this `file`")
	c.Flags().Uint64Var(&q.Walk, "walk", 0, "memory in `bytes` that the loop of each thread walks (prophet sense)")
	c.Flags().Float64Var(&q.Lines, "lines", 0, "lines of 64 bytes of it that it walks a microsecond")
	c.Flags().BoolVar(&parts, "parts", false, "say where each thread's time went")
	c.Flags().StringVar(&q.Log, "log", "", "write what each operation came to into this `file`")
	c.Flags().StringVar(&order, "order", "free", "home: follow home's path, each lock in home's order, to see what a prediction gains by not doing that")
	c.Flags().BoolVar(&think, "think", false, "no locks at all: each thread pauses between its calls as long as at home; for comparison, too")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a time")
	return c
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
	}
	return 0, errors.New("no such way")
}

// compile compiles a trace into a file.
func compile(path, program string, way demand.Path) error {
	t, live, _, err := recovery.Open(path, nil)
	if err != nil {
		return err
	}
	defer t.Close()
	if live {
		return fmt.Errorf("%s is being recorded; its run has to end first", path)
	}
	_, err = demand.Compile(t, demand.Options{Record: demand.RecordCost, Path: way}, program)
	return err
}

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"prophet/runtime/recovery"
	"prophet/runtime/term"
	"prophet/runtime/trace"
	"prophet/runtime/words"
)

// open opens a trace for a command: completed if it has ended, as far as it is if it is live.
func open(path string) (*trace.Trace, bool, error) {
	p := term.NewProgress("reading " + path)
	t, live, notes, err := recovery.Open(path, p.Set)
	p.Done()
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, false, usage("there is no trace %s", path)
		}
		return nil, false, &status{exitUsage, err}
	}
	for _, n := range notes {
		fmt.Fprintln(os.Stderr, "prophet:", trace.Clean(n))
	}
	return t, live, nil
}

// jobsFlag adds --jobs. Help and man pages do not tell how many CPUs they were made on.
func jobsFlag(c *cobra.Command, jobs *int) {
	c.Flags().IntVarP(jobs, "jobs", "j", runtime.GOMAXPROCS(0), "threads to use")
	c.Flags().Lookup("jobs").DefValue = "one a CPU"
}

func printJSON(v any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := os.Stdout.Write(trace.CleanJSON(text.Bytes()))
	return err
}

// parseTime reads a time since the start of the run: 1.5 (seconds) or 250ms.
func parseTime(s string) (int64, error) {
	if f, err := strconv.ParseFloat(s, 64); err == nil && f >= 0 && f < 1e9 {
		return int64(f * 1e9), nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a time since the start; write seconds (1.5) or a unit (250ms)", s)
	}
	return int64(d), nil
}

func bytesText(n int64) string { return words.Bytes(n) }

func nsText(ns int64) string { return words.Duration(ns) }

func grouped[T ~int | ~int64 | ~uint64](n T) string { return words.Grouped(n) }

func plural(n int, one string) string { return words.Plural(n, one) }

// sayDamage prints damage, at most a screenful.
func sayDamage(list []error, n int) {
	const most = 20
	for i, e := range list {
		if i == most {
			fmt.Fprintf(os.Stderr, "prophet: and %d more\n", n-most)
			return
		}
		fmt.Fprintln(os.Stderr, "prophet: damaged:", trace.Clean(e.Error()))
	}
}

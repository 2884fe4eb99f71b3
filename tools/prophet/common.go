package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"prophet/runtime/recovery"
	"prophet/runtime/term"
	"prophet/runtime/trace"
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
	e := json.NewEncoder(os.Stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
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

func bytesText(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 10<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 10<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

func nsText(ns int64) string {
	switch {
	case ns >= 1e9:
		return fmt.Sprintf("%.3f s", float64(ns)/1e9)
	case ns >= 1e6:
		return fmt.Sprintf("%.3f ms", float64(ns)/1e6)
	case ns >= 1e3:
		return fmt.Sprintf("%.1f us", float64(ns)/1e3)
	}
	return fmt.Sprintf("%d ns", ns)
}

// grouped is a number with its thousands apart.
func grouped[T ~int | ~int64 | ~uint64](n T) string {
	s := strconv.FormatInt(int64(n), 10)
	var b strings.Builder
	for i, c := range s {
		if i > 0 && (len(s)-i)%3 == 0 && s[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if strings.HasSuffix(one, "s") {
		one += "e"
	}
	return grouped(n) + " " + one + "s"
}

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

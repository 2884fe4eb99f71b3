package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"prophet/runtime/profile"
	"prophet/runtime/report"
	"prophet/runtime/report/page"
	"prophet/runtime/term"
	"prophet/runtime/trace"
)

func reportCmd() *cobra.Command {
	var out, prediction string
	var asJSON bool
	var o report.Options
	c := &cobra.Command{
		Use:   "report TRACE | A B | A1 A2 ... -- B1 B2 ...",
		Short: "Make a page for a browser of what a trace shows, or of what changed between two",
		Long: `Writes one file that any browser opens from the disk: what ran and where, a timeline of all threads from the whole run down
to single calls, the locks that threads waited for with who held them, the slowest calls, latencies, files, connections,
processes, and what is not known. It loads nothing from anywhere. With two traces, or several on each side of --, it shows
what changed, as prophet diff does.

The page holds names of files, hosts and arguments of the program: it is readable by its owner alone, as a trace is.

Exit status: 0; 1 when parts of the trace are damaged (the rest is shown, under a banner); 2 on wrong usage.`,
		Example: "  prophet report app.prophet -o app.html\n  prophet report before.prophet after.prophet -o changes.html",
		Args: func(_ *cobra.Command, a []string) error {
			if len(a) == 0 {
				return usage("prophet report wants a trace, or traces of two sides (see `prophet report --help`)")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, a []string) error {
			if asJSON && cmd.Flags().Changed("output") {
				return usage("--json goes to standard output, -o names a page: name one of them")
			}
			if len(a) > 1 {
				if prediction != "" || asJSON || cmd.Flags().Changed("slices") {
					return usage("--prediction, --json and --slices belong to the report of one trace; prophet diff has --json")
				}
				one, two, err := sides(cmd, a)
				if err != nil {
					return err
				}
				d, err := compare(one, two)
				if err != nil {
					return err
				}
				return finish(d.A.Damaged+d.B.Damaged, toFile(pageName(out, one[0]), false, func(w io.Writer) error { return page.WriteDiff(w, d) }))
			}
			p, err := readPrediction(prediction)
			if err != nil {
				return err
			}
			o.Name = nameStacks
			r, err := reportOf(a[0], o)
			if err != nil {
				return err
			}
			r.Prediction = p
			if asJSON {
				return finish(r.Damaged, printJSON(r))
			}
			return finish(r.Damaged, toFile(pageName(out, a[0]), false, func(w io.Writer) error { return page.Write(w, r) }))
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "the page's `FILE`, - for standard output (default: the trace's name with .html)")
	c.Flags().StringVar(&prediction, "prediction", "", "show a prediction beside it: a `FILE` that prophet predict --json printed")
	c.Flags().BoolVar(&asJSON, "json", false, "print what the page shows as JSON, without the timeline's calls")
	c.Flags().IntVar(&o.Slices, "slices", 500_000, "how many calls the timeline has one by one; the longest are kept")
	return c
}

func diffCmd() *cobra.Command {
	var asJSON bool
	var rows int
	c := &cobra.Command{
		Use:   "diff A B | A1 A2 ... -- B1 B2 ...",
		Short: "Say what changed between two traces, or two sides of several",
		Long: `Compares time by class, latencies of each kind of call, locks, files, connections and threads. With several runs on each
side, every quantity is compared run with run and a change is one that chance does not explain (Mann and Whitney's test,
corrected for how many are compared). With one run a side only latencies can be tested, call by call, and that says no more
than that these two runs differ.

Exit status: 0; 1 when parts of a trace are damaged; 2 on wrong usage.`,
		Example: "  prophet diff before.prophet after.prophet\n  prophet diff old-*.prophet -- new-*.prophet",
		Args: func(_ *cobra.Command, a []string) error {
			if len(a) < 2 {
				return usage("prophet diff wants two traces, or several on each side of -- (see `prophet diff --help`)")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, a []string) error {
			one, two, err := sides(cmd, a)
			if err != nil {
				return err
			}
			d, err := compare(one, two)
			if err != nil {
				return err
			}
			if asJSON {
				return finish(d.A.Damaged+d.B.Damaged, printJSON(d))
			}
			bold, plain := "", ""
			if term.Colours(os.Stdout) {
				bold, plain = "\x1b[1m", "\x1b[0m"
			}
			var b bytes.Buffer
			if err := d.Text(&b, rows, bold, plain); err != nil {
				return err
			}
			_, err = os.Stdout.Write(b.Bytes())
			return finish(d.A.Damaged+d.B.Damaged, err)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, with all rows")
	c.Flags().IntVar(&rows, "top", 10, "how many rows of each list to show")
	return c
}

// sides are the traces before and behind --; without it there are two, one a side.
func sides(cmd *cobra.Command, a []string) (one, two []string, err error) {
	at := cmd.ArgsLenAtDash()
	switch {
	case at < 0 && len(a) == 2:
		return a[:1], a[1:], nil
	case at > 0 && at < len(a):
		for _, s := range a[at:] {
			if _, err := os.Lstat(s); err != nil && strings.HasPrefix(s, "-") {
				return nil, nil, usage("%s is behind --, where only traces are: options go before it", s)
			}
		}
		return a[:at], a[at:], nil
	}
	return nil, nil, usage("%s wants two traces, or several on each side of --: A1 A2 -- B1 B2", cmd.CommandPath())
}

func compare(one, two []string) (*report.Diff, error) {
	read := func(paths []string) ([]*report.Report, error) {
		var list []*report.Report
		for _, path := range paths {
			r, err := reportOf(path, report.DiffOptions(runtime.GOMAXPROCS(0)))
			if err != nil {
				return nil, err
			}
			list = append(list, r)
		}
		return list, nil
	}
	a, err := read(one)
	if err != nil {
		return nil, err
	}
	b, err := read(two)
	if err != nil {
		return nil, err
	}
	return report.Compare(a, b), nil
}

// reportOf reads a trace, and says what is damaged of it.
func reportOf(path string, o report.Options) (*report.Report, error) {
	t, live, err := open(path)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	o.Live, o.Workers = live, runtime.GOMAXPROCS(0)
	p := term.NewProgress("reading " + trace.Clean(path))
	r, err := report.Of(t, o, p.Set)
	p.Done()
	if err != nil {
		return nil, err
	}
	if r.Damaged > 0 {
		var list []error
		for _, d := range r.Damage {
			list = append(list, errors.New(d))
		}
		sayDamage(list, r.Damaged)
	}
	return r, nil
}

// nameStacks finds the functions of stacks in the files of their modules.
func nameStacks(list []report.Stack) [][]string {
	p := &profile.Profile{}
	for i := range list {
		const any = 1 // a call: the first address is a return address, as all others
		p.Samples = append(p.Samples, profile.Sample{Stack: &profile.Stack{Proc: list[i].Proc, Call: any, PCs: list[i].PCs}})
	}
	bar := term.NewProgress("finding names")
	names := p.Names(bar.Set)
	bar.Done()
	out := make([][]string, len(list))
	for i := range p.Samples {
		for k := range list[i].PCs {
			for _, f := range names.Frame(p.Samples[i].Stack, k) {
				text := f.Func
				if f.File != "" {
					text += fmt.Sprintf(" (%s:%d)", filepath.Base(f.File), f.Line)
				}
				out[i] = append(out[i], text)
			}
		}
	}
	return out
}

func readPrediction(path string) (*report.Prediction, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usage("there is no prediction %s", path)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := report.ReadPrediction(f)
	if err != nil {
		return nil, usage("%s is no prediction: %v", path, err)
	}
	return p, nil
}

// pageName is where a page goes: beside the trace, unless somebody says.
func pageName(out, path string) string {
	if out != "" {
		return out
	}
	return strings.TrimSuffix(filepath.Base(filepath.Clean(path)), ".prophet") + ".html"
}

func finish(damaged int, err error) error {
	if err == nil && damaged > 0 {
		return &status{exitDamaged, nil}
	}
	return err
}

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"prophet/runtime/term"
	"prophet/runtime/trace"
)

// exportFormat is a format of `prophet export`: a flag that names where it goes. Each lies in a file export_*.go and has a
// line in exportFormats.
type exportFormat struct {
	flag string // "pprof": --pprof FILE
	what string // the metavariable: FILE or DIR
	help string
	more func(f *pflag.FlagSet) // further flags that go with this one alone
	// write reads the trace and writes to out: a path, or "-" for standard output, which a format that is many files refuses.
	write   func(t *trace.Trace, out string) (*exported, error)
	selects bool     // it takes a selection of events
	extra   []string // names of its further flags, found by exportCmd
	to      string
}

// exported is what a format left out.
type exported struct {
	damage  []error
	damaged int
	notes   []string // for people
}

func exportFormats(s *selection) []*exportFormat {
	return []*exportFormat{pprofFormat(), foldedFormat(), perfettoFormat(s), parquetFormat(s), csvFormat(s)}
}

func exportCmd() *cobra.Command {
	var s selection
	var schema, ask bool
	formats := exportFormats(&s)
	c := &cobra.Command{
		Use:   "export TRACE",
		Short: "Write a trace in formats that other tools read",
		Long: `Reads the trace once for each format that is asked for and writes it to the file, or the directory, that the
format's flag names; - is standard output.

Exit status: 0; 1 when parts of the trace are damaged (the rest is written), or writing failed; 2 on wrong usage.`,
		Example: "  prophet export app.prophet --pprof app.pb.gz && go tool pprof -http : app.pb.gz\n  prophet export app.prophet --folded - --type lock_wait | flamegraph.pl > waits.svg\n  prophet export app.prophet --perfetto app.pftrace --from 1.5 --to 2\n  prophet export app.prophet --parquet app && cd app && prophet export --queries > queries.sql",
		Args: func(cmd *cobra.Command, a []string) error {
			if len(a) == 0 && (schema || ask) {
				return nil
			}
			return args(1, "one trace")(cmd, a)
		},
		RunE: func(cmd *cobra.Command, a []string) error {
			if schema || ask {
				if len(a) > 0 {
					return usage("--schema and --queries want no trace")
				}
				pages(schema, ask)
				return nil
			}
			if err := checkExport(cmd, formats); err != nil {
				return err
			}
			t, _, err := open(a[0])
			if err != nil {
				return err
			}
			defer t.Close()
			return export(t, formats)
		},
	}
	for _, f := range formats {
		c.Flags().StringVar(&f.to, f.flag, "", f.help+" to `"+f.what+"`")
		if f.more != nil {
			own := pflag.NewFlagSet(f.flag, pflag.ContinueOnError)
			f.more(own)
			own.VisitAll(func(x *pflag.Flag) { f.extra = append(f.extra, x.Name) })
			c.Flags().AddFlagSet(own)
		}
	}
	c.Flags().BoolVar(&schema, "schema", false, "print what the tables of --parquet and --csv hold")
	c.Flags().BoolVar(&ask, "queries", false, "print useful questions to them, for DuckDB")
	s.flags(c.Flags())
	return c
}

// checkExport refuses what cannot be meant: no format, a format's flag without it, two formats on standard output.
func checkExport(cmd *cobra.Command, formats []*exportFormat) error {
	var names []string
	asked, stdout := 0, 0
	for _, f := range formats {
		names = append(names, "--"+f.flag)
		on := cmd.Flags().Changed(f.flag)
		if on && f.to == "" {
			return usage("--%s wants the name of a %s, or -", f.flag, strings.ToLower(f.what))
		}
		if on {
			asked++
		}
		if f.to == "-" {
			stdout++
		}
		if on && !f.selects {
			for _, x := range []string{"thread", "class", "from", "to"} {
				if cmd.Flags().Changed(x) {
					return usage("--%s selects events, and --%s is of all of the run", x, f.flag)
				}
			}
		}
		for _, x := range f.extra {
			if !on && cmd.Flags().Changed(x) {
				return usage("--%s belongs to --%s", x, f.flag)
			}
		}
	}
	if asked == 0 {
		return usage("name a format: %s (see `%s --help`)", strings.Join(names, ", "), cmd.CommandPath())
	}
	if stdout > 1 {
		return usage("only one format can go to standard output")
	}
	return nil
}

func export(t *trace.Trace, formats []*exportFormat) error {
	var worst *exported
	for _, f := range formats {
		if f.to == "" {
			continue
		}
		e, err := f.write(t, f.to)
		if err != nil {
			var s *status
			if errors.As(err, &s) {
				return err
			}
			return fmt.Errorf("--%s: %w", f.flag, err)
		}
		for _, n := range e.notes {
			fmt.Fprintf(os.Stderr, "prophet: --%s: %s\n", f.flag, trace.Clean(n))
		}
		if worst == nil || e.damaged > worst.damaged {
			worst = e
		}
	}
	if worst.damaged > 0 {
		sayDamage(worst.damage, worst.damaged)
		return &status{exitDamaged, nil}
	}
	return nil
}

// toFile writes a file of the user's through write: whole or not at all, and for nobody else, as a trace is. A file
// that is there is replaced; one that is not a regular file is written to. Binary formats do not go to a terminal.
func toFile(path string, binary bool, write func(w io.Writer) error) error {
	if path == "-" {
		if binary && term.IsTerminal(os.Stdout) {
			return usage("this format is not for a terminal; name a file, or redirect standard output")
		}
		return buffered(os.Stdout, write)
	}
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		if st.IsDir() {
			return usage("%s is a directory", path)
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(buffered(f, write), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	if err = errors.Join(buffered(f, write), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

func buffered(f *os.File, write func(w io.Writer) error) error {
	w := bufio.NewWriterSize(f, 1<<18)
	if err := write(w); err != nil {
		return err
	}
	return w.Flush()
}

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"prophet/runtime/scrub"
	"prophet/runtime/term"
	"prophet/runtime/trace"
)

func scrubCmd() *cobra.Command {
	var out string
	var keep []string
	var asJSON, force, directory bool
	var jobs int
	kinds, fine := scrub.KindNames()
	c := &cobra.Command{
		Use:   "scrub TRACE",
		Short: "Make a trace that can be shared: without inputs, paths, names and addresses",
		Long: `Makes a trace of another without what may be private, and says what it tells still. Every command reads it; it cannot be
executed again. These go, or are replaced by tokens:

` + scrubKinds() + `
The same thing has the same token everywhere in the result. Tokens are keyed by a random number that is kept nowhere, so
nobody can try guesses, and two scrubbed traces cannot be joined. Records that this version does not know are left out.

--keep names kinds that stay as they are (` + strings.Join(kinds, ", ") + `), or single things by a pattern
(` + strings.Join(fine, ":, ") + `:), for example --keep marks,'path:/usr/*',address:10.0.0.0/8,env:LANG.
A * stands for any text, / included; a path is matched without its dots. Inputs that are kept may hold any of the rest.

Exit status: 0; 1 when parts of the trace are damaged and were left out; 2 on wrong usage.`,
		Example: "  prophet scrub -o share.prophet --keep 'path:/usr/*' app.prophet",
		Args:    args(1, "one trace"),
		RunE: func(_ *cobra.Command, a []string) error {
			k, err := scrub.ParseKeep(keep)
			if err != nil {
				return usage("%v", err)
			}
			if out == "" {
				base := strings.TrimSuffix(strings.TrimRight(a[0], "/"), ".prophet")
				out = strings.TrimSuffix(base, ".packed") + ".scrubbed.prophet"
			}
			if err := freeOr(out, force, directory); err != nil {
				return err
			}
			t, live, err := open(a[0])
			if err != nil {
				return err
			}
			defer t.Close()
			if live {
				return usage("%s is being recorded; it can be scrubbed when it has ended", a[0])
			}
			var p *term.Progress
			res, err := scrub.Scrub(t, out, scrub.Options{Keep: k, Directory: directory, Workers: jobs, Progress: func(step string) trace.Progress {
				if p != nil {
					p.Done()
				}
				p = term.NewProgress(step + " " + a[0])
				return p.Set
			}})
			if p != nil {
				p.Done()
			}
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(scrubJSONOf(out, res))
			} else {
				fmt.Printf("%s: %s\n", trace.Clean(out), bytesText(res.Bytes))
				err = scrubTable(res)
			}
			if err == nil && res.Damaged > 0 {
				sayDamage(res.Damage, res.Damaged)
				return &status{exitDamaged, nil}
			}
			return err
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "the file to make (default NAME.scrubbed.prophet)")
	c.Flags().StringSliceVar(&keep, "keep", nil, "what stays as it is: kinds, or KIND:PATTERN")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&force, "force", false, "replace a file of that name")
	c.Flags().BoolVar(&directory, "directory", false, "make a directory instead of one packed file")
	jobsFlag(c, &jobs)
	return c
}

// freeOr is free for what is to be a file, or a directory that nobody has.
func freeOr(path string, force, directory bool) error {
	if !directory {
		return free(path, force)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return usage("%s exists; a directory is not replaced: use -o with another name", path)
	}
	return nil
}

// scrubKinds is a list of what goes, for the help.
func scrubKinds() string {
	var b strings.Builder
	for _, r := range scrub.Describe() {
		line := fmt.Sprintf("  %-10s", r[0])
		for _, w := range strings.Fields(r[1] + ": " + r[2]) {
			if len(line)+1+len(w) > 118 {
				fmt.Fprintln(&b, line)
				line = "            "[:12]
			}
			line += " " + w
		}
		fmt.Fprintln(&b, line)
	}
	return b.String()
}

// scrubJSON is what scrub --json prints.
type scrubJSON struct {
	Output  string          `json:"output"`
	Bytes   int64           `json:"bytes"`
	Events  uint64          `json:"events"`
	Kinds   []scrubKindJSON `json:"kinds"`
	Unknown uint64          `json:"unknown_records_left_out"`
	Left    []string        `json:"left"`
	Damage  []string        `json:"damage"`
}

type scrubKindJSON struct {
	Kind    string `json:"kind"`
	What    string `json:"what"`
	How     string `json:"how"`
	Removed uint64 `json:"removed"`
	Kept    uint64 `json:"kept"`
	Bytes   uint64 `json:"bytes_removed,omitempty"`
}

func scrubJSONOf(out string, res *scrub.Result) *scrubJSON {
	j := &scrubJSON{Output: out, Bytes: res.Bytes, Events: res.Events, Unknown: res.Unknown, Left: scrub.Left, Damage: []string{}}
	for _, r := range scrub.Describe() {
		n := res.Counts[r[0]]
		j.Kinds = append(j.Kinds, scrubKindJSON{r[0], r[1], r[2], n.Removed, n.Kept, n.Bytes})
	}
	for _, e := range res.Damage {
		j.Damage = append(j.Damage, e.Error())
	}
	return j
}

func scrubTable(res *scrub.Result) error {
	w := tabwriter.NewWriter(os.Stderr, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "what\tremoved\tkept\thow")
	for _, r := range scrub.Describe() {
		n := res.Counts[r[0]]
		how := r[2]
		if n.Bytes > 0 {
			how += " (" + bytesText(int64(n.Bytes)) + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r[0], grouped(n.Removed), grouped(n.Kept), how)
	}
	if res.Unknown > 0 {
		fmt.Fprintf(w, "unknown\t%s\t0\trecords of a newer Prophet, left out\n", grouped(res.Unknown))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "\nit tells still:")
	for _, s := range scrub.Left {
		fmt.Fprintln(os.Stderr, "  "+s)
	}
	if res.Counts["inputs"].Kept > 0 {
		fmt.Fprintln(os.Stderr, "  the inputs that were kept, as they were recorded: they may hold any of the above")
	}
	return nil
}

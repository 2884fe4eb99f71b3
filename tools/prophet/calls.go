package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"prophet/cabi"
)

func callsCmd() *cobra.Command {
	var asJSON bool
	var class string
	c := &cobra.Command{
		Use:   "calls [NAME]",
		Short: "List the calls that Prophet knows, or tell all about one",
		Long: `Lists the table of calls: what is recorded of each, how it is re-executed and issued, and how well. Calls that are known
but not intercepted are listed too, with the reason.

Exit status: 0; 2 when there is no such call.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, a []string) error {
			rows := slices.Clone(cabi.Calls)
			if class != "" {
				cl, ok := cabi.ClassByName(class)
				if !ok {
					return usage("there is no class %s; classes are %s", class, strings.Join(classNames(), ", "))
				}
				rows = slices.DeleteFunc(rows, func(c cabi.Call) bool { return c.Class != cl })
			}
			if len(a) == 1 {
				rows = slices.DeleteFunc(rows, func(c cabi.Call) bool { return c.Name != a[0] })
				if len(rows) == 0 {
					return usage("Prophet does not know %s%s", a[0], similar(a[0]))
				}
			}
			if asJSON {
				out := []callJSON{}
				for i := range rows {
					out = append(out, callOf(&rows[i]))
				}
				return printJSON(out)
			}
			w := bufio.NewWriter(os.Stdout)
			if len(a) == 1 {
				for i := range rows {
					callText(w, &rows[i])
				}
			} else {
				callsText(w, rows)
			}
			return w.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&class, "class", "", "only calls of this class")
	return c
}

func similar(name string) string {
	var close []string
	for _, c := range cabi.Calls {
		if strings.Contains(c.Name, name) || strings.Contains(name, c.Name) {
			close = append(close, c.Name)
		}
	}
	if len(close) == 0 {
		return ""
	}
	slices.Sort(close)
	close = slices.Compact(close)
	return " (but " + strings.Join(close[:min(len(close), 8)], ", ") + ")"
}

var bodies = []string{"plain", "hand", "known"}
var supports = []string{"full", "partial", "none"}

func word(words []string, n int) string {
	if n < len(words) {
		return words[n]
	}
	return fmt.Sprint(n)
}

type callJSON struct {
	ID      uint16 `json:"id"`
	Name    string `json:"name"`
	Sig     string `json:"signature"`
	Class   string `json:"class"`
	Body    string `json:"body"`
	Block   bool   `json:"can_wait"`
	Rec     string `json:"recorded"`
	Reexec  string `json:"reexecuted"`
	Issue   string `json:"issued"`
	Support string `json:"support"`
	Version string `json:"symbol_version,omitempty"`
	Test    string `json:"test,omitempty"`
	Note    string `json:"note,omitempty"`
}

func callOf(c *cabi.Call) callJSON {
	return callJSON{c.ID, c.Name, c.Sig, c.Class.String(), word(bodies, int(c.Body)), c.Block, c.Rec, c.Reexec, c.Issue, word(supports, int(c.Support)), c.Version, c.Test, c.Note}
}

func callsText(w io.Writer, rows []cabi.Call) {
	slices.SortStableFunc(rows, func(a, b cabi.Call) int {
		if a.Class != b.Class {
			return int(a.Class) - int(b.Class)
		}
		return strings.Compare(a.Name, b.Name)
	})
	wide := 4
	for i := range rows {
		wide = max(wide, len(rows[i].Name))
	}
	fmt.Fprintf(w, "%-7s %-*s %-7s %-6s %-5s %s\n", "class", wide, "name", "support", "reexec", "issue", "note")
	for i := range rows {
		c := &rows[i]
		note := c.Note
		if c.Version != "" {
			note = strings.TrimSpace("version " + c.Version + ". " + note)
		}
		support := word(supports, int(c.Support))
		if c.Body == cabi.Known {
			support = "not"
		}
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-7s %-*s %-7s %-6s %-5s %s", c.Class, wide, c.Name, support, c.Reexec, c.Issue, note), " "))
	}
}

func callText(w io.Writer, c *cabi.Call) {
	j := callOf(c)
	p := func(k, v string) {
		if v != "" {
			fmt.Fprintf(w, "  %-13s %s\n", k, v)
		}
	}
	fmt.Fprintf(w, "%s\n", j.Sig)
	p("id", fmt.Sprint(j.ID))
	p("class", j.Class)
	p("symbol", j.Version)
	if c.Body == cabi.Known {
		p("intercepted", "no")
	} else {
		stamps := "one time stamp: it cannot wait"
		if c.Block {
			stamps = "begin and end: it can wait"
		}
		p("recorded", j.Rec)
		p("time", stamps)
		p("re-executed", j.Reexec)
		p("issued", j.Issue)
		p("support", j.Support)
	}
	p("test", j.Test)
	p("note", j.Note)
}

package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"prophet/runtime/words"
)

// Text writes the difference for a terminal, the first rows of each list; bold is around headings.
func (d *Diff) Text(w io.Writer, rows int, bold, plain string) error {
	e := &textWriter{w: w, rows: rows, bold: bold, plain: plain}
	e.line("%sA%s  %s  (%s)", bold, plain, d.A.Command, strings.Join(d.A.Traces, ", "))
	e.line("%sB%s  %s  (%s)", bold, plain, d.B.Command, strings.Join(d.B.Traces, ", "))
	e.line("")
	e.line("%s", d.Verdict)
	e.changes("run", d.Run, nil)
	e.changes("time of all threads", d.Groups, nil)
	e.calls(d.Calls)
	e.changes("waited at", d.Locks, counts("waits"))
	e.changes("in files", d.Files, counts("calls"))
	e.changes("in connections and pipes", d.Conns, counts("calls"))
	e.changes("CPU time of threads", d.Threads, counts("events"))
	for _, n := range d.Notes {
		e.line("")
		e.line("%s", n)
	}
	return e.err
}

type textWriter struct {
	w           io.Writer
	rows        int
	bold, plain string
	err         error
}

func (e *textWriter) line(format string, a ...any) {
	if e.err == nil {
		_, e.err = fmt.Fprintf(e.w, format+"\n", a...)
	}
}

func counts(what string) func(*Change) string {
	return func(c *Change) string {
		return fmt.Sprintf("%s to %s %s", words.Grouped(c.ACount), words.Grouped(c.BCount), what)
	}
}

var verdictWords = map[string]string{"more": "more", "less": "less", "same": "no change shown", "unknown": "not tested", "new": "only in B", "gone": "only in A"}

func (e *textWriter) head(what, a, b string) {
	e.line("")
	e.line("%s%-32s %12s %12s %9s %8s%s", e.bold, what, a, b, "change", "q", e.plain)
}

func (e *textWriter) changes(what string, list []Change, more func(*Change) string) {
	var show []*Change
	for i := range list {
		if c := &list[i]; c.A != c.B || more == nil {
			show = append(show, c)
		}
	}
	if len(show) == 0 {
		return
	}
	e.head(what, "A", "B")
	for i, c := range show {
		if i == e.rows {
			e.line("  and %s more", words.Grouped(len(show)-i))
			break
		}
		extra := ""
		if more != nil {
			extra = ", " + more(c)
		}
		e.line("  %s %12s %12s %9s %8s  %s%s", pad(c.Name, 30), e.value(c, c.A), e.value(c, c.B), changeText(c), qText(c.Q), verdictWords[c.Verdict], extra)
	}
}

func (e *textWriter) value(c *Change, v float64) string {
	if c.Unit == "ns" {
		return words.Duration(int64(v))
	}
	return words.Grouped(int64(v))
}

func (e *textWriter) calls(list []CallChange) {
	if len(list) == 0 {
		return
	}
	e.head("median latency of calls", "A", "B")
	for i := range list {
		c := &list[i]
		if i == e.rows {
			e.line("  and %s more", words.Grouped(len(list)-i))
			break
		}
		name := c.Name
		if c.On != "" {
			name += " (" + c.On + ")"
		}
		q := c.Q
		if q == nil {
			q = c.CallQ
		}
		chance := ""
		if len(c.BucketsA) > 0 && len(c.BucketsB) > 0 {
			chance = fmt.Sprintf("; one of B takes longer with chance %.0f%%", 100*c.Chance)
		}
		e.line("  %s %12s %12s %9s %8s  %s, %s to %s calls%s", pad(name, 30), e.latency(c.A, c.BucketsA), e.latency(c.B, c.BucketsB),
			callText(c), qText(q), verdictWords[c.Verdict], words.Grouped(c.ACount), words.Grouped(c.BCount), chance)
	}
}

// latency is a median, of calls that took time.
func (e *textWriter) latency(v float64, of []Bucket) string {
	if len(of) == 0 {
		return "-"
	}
	return words.Duration(int64(v))
}

func callText(c *CallChange) string {
	if len(c.BucketsA) == 0 || len(c.BucketsB) == 0 {
		return "-"
	}
	return changeText(&c.Change)
}

func changeText(c *Change) string {
	switch {
	case c.A == c.B:
		return "0%"
	case c.A == 0:
		return "new"
	case c.B == 0:
		return "gone"
	}
	if r := c.B / c.A; r >= 10 {
		return fmt.Sprintf("x%.0f", r)
	}
	return fmt.Sprintf("%+.1f%%", 100*(c.B/c.A-1))
}

func qText(q *float64) string {
	switch {
	case q == nil:
		return "-"
	case *q < .0001:
		return "<0.0001"
	}
	return fmt.Sprintf("%.4f", *q)
}

// pad makes text that wide: shorter with spaces, longer by leaving its middle out.
func pad(s string, n int) string {
	if k := utf8.RuneCountInString(s); k <= n {
		return s + strings.Repeat(" ", n-k)
	}
	r := []rune(s)
	return string(r[:n/2-1]) + "..." + string(r[len(r)-(n-n/2-2):])
}

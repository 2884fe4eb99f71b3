package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"prophet/runtime/predict"
	"prophet/runtime/report"
	"prophet/runtime/term"
	"prophet/runtime/trace"
)

// predictJSON is what help says of --json. A test holds that every name of it is there.
const predictJSON = `

--json prints an object, of several targets a list of them; names stay, others may come:
  target                    as it was asked for
  predicted_seconds         the median of the issues; issues is how many, issues_seconds what each took
  low_seconds high_seconds  the median of as many real runs lies between them with 90 % certainty
  home_seconds              the median of the program's home_runs at home (turns of two runs); of none the time of the recorded run
  noise                     how far two rounds of the program lie apart at home, and home_issue_error how far issues
                            are from the program there, as shares
  threads                   of the path that is issued; told_cpus where the program was recorded anew at home, as it
                            asks how many CPUs there are: those that it may use there, are online, are there
  rounds proven             how often home and target took turns, and whether a re-execution proved the path
  unproven_share            of the issued events, those from where the program did another thing
  each_round                {round, issue_seconds, events, identical, thread, event, call, what, events_learnt}: how many
                            events were issued and asked for, where the program differed, and how long what was learnt is
  strict                    of --strict: {rounds, most, proven, unproven_share, seconds, stopped, each_round}: how many rounds it
                            took, of at most how many, how long all of them, and why no more were made
  breakdown                 {thread, class, home_seconds, target_seconds}: all threads' time. Classes are cpu, ready
                            (no core was free), disk, locks, waits (for other threads), pipes (and connections), sleep
                            and outside (of the run). Home is the recorded run, of home_recorded_seconds; target an
                            issue, of issue_seconds
  path_breakdown            the same of the path through the threads that decides: its sum is the run's time
  critical_path             {thread, class, call, object, at, seconds, longest_seconds, times}: what takes longest on it
                            there, and home_critical_path at home. Of computing, call is what came after it
  sensitivity               {resource, how, seconds, low_seconds, high_seconds, issues}: by how much the time changes if
                            that is done to the resource, least and most, in so many issues; in none: the path's share,
                            which is the most that can be won
  warnings                  why the answer may mean little: the program is too short, or too different from itself
  notes                     what is not known, and why; refused why it should not be relied on
  unknown_ways other_ways forced_waits  results that home never had, those it had elsewhere, waits that were helped
  unlearnt_loops            wait loops of which only home's order is known
  outside_seconds           of it wait for what is outside of the run, as long as at home
  cpu_factor                what the recorded CPU time is multiplied by there
  issue_args tried_at_home  for who measures on: arguments of replayd issue, and each time that was tried at home`

// classWords say what a class of time is.
var classWords = map[string]string{"cpu": "computing", "ready": "no core was free", "disk": "files", "locks": "until a lock was free",
	"waits": "for other threads", "pipes": "pipes, connections", "sleep": "sleeping", "outside": "outside of the run"}

// classes are their order in tables.
var classes = []string{"cpu", "ready", "disk", "locks", "waits", "pipes", "sleep", "outside"}

const (
	partsShown     = 10
	stretchesShown = 8
	shownLeast     = 0.005 // of the run: what is less is not a line
)

// say prints the answer for people.
func (p *predictor) say(w io.Writer, list []*forecast) {
	var st style
	if term.Colours(os.Stdout) {
		st = style{"\x1b[1m", "\x1b[0m"}
	}
	line := func(head, format string, a ...any) {
		fmt.Fprintf(w, "%s%-10s%s %s\n", st.on, head, st.off, fmt.Sprintf(format, a...))
	}
	if p.homeRuns > 0 {
		line("home", "%s, noise %.1f %%; issued there %s (%+.1f %%)", secondsText(p.home.Median()), p.home.Noise()*100, secondsText(predict.Median(p.home.Issued)), p.home.Off()*100)
	} else {
		line("home", "%s, the recorded run; not tried", secondsText(p.info.Home.Seconds()))
	}
	for _, f := range list {
		factor := ""
		if f.Factor != 1 {
			factor = fmt.Sprintf("; CPU time x %.3f", f.Factor)
		}
		line(trace.Clean(f.Target), "%s, between %s and %s with 90 %% certainty (%s)%s", secondsText(f.Predicted), secondsText(f.Low), secondsText(f.High), plural(f.Issues, "issue"), factor)
		if f.Unknown+f.Forced > 0 {
			fmt.Fprintf(w, "           %d results that home never had, %d waits that had to be helped: the path there may be another one\n", f.Unknown, f.Forced)
		}
		if f.Outside > 0 {
			fmt.Fprintf(w, "           %s of it wait for what is outside of the run, as long as at home\n", secondsText(f.Outside))
		}
		if f.Refused != "" {
			fmt.Fprintf(w, "           %s\n", f.Refused)
		}
	}
	for _, w := range p.home.Doubts() {
		line("careful", "%s", w)
	}
	if p.info.Unlearnt > 0 {
		line("loops", "of %s only home's order is known", plural(p.info.Unlearnt, "wait loop"))
	}
	for _, f := range list {
		head := "proven"
		if len(list) > 1 {
			head = "proven on " + trace.Clean(f.Target)
		}
		line(head, "%s", f.provenText())
		if f.Strict != nil {
			line("strictly", "%s", f.Strict.text())
		}
	}
	for _, f := range list {
		f.sayWhere(w, st)
	}
}

// sayWhere prints where the time goes, and what would change it.
func (f *forecast) sayWhere(w io.Writer, st style) {
	head := func(format string, a ...any) { fmt.Fprintf(w, "\n%s%s%s\n", st.on, fmt.Sprintf(format, a...), st.off) }
	there := trace.Clean(f.Target)
	if len(f.Breakdown) > 0 {
		head("Where the time of all threads goes: at home in the recorded run, on %s in an issue of %s", there, secondsText(f.Issued))
		table(w, "home", "target", sumClasses(f.Breakdown), f.Issued)
		if rows := most(f.Breakdown, f.Issued); len(rows) > 1 {
			head("The threads that differ most")
			table(w, "home", "target", rows, 0)
		}
	}
	if len(f.Path) > 0 {
		head("The path that decides how long it takes")
		table(w, "home", "target", sumClasses(f.Path), f.Issued)
		fmt.Fprintln(w, "  longest on it there:")
		for _, c := range f.Critical[:min(len(f.Critical), stretchesShown)] {
			if c.Seconds >= f.Issued*shownLeast {
				fmt.Fprintf(w, "  %10s  %s\n", secondsText(c.Seconds), criticalText(&c))
			}
		}
	}
	if len(f.Sensitivity) > 0 {
		head("What would change it most")
		for _, x := range f.Sensitivity {
			how := "at most: so much of the path it is"
			if x.Issues > 0 {
				how = fmt.Sprintf("%s to %s in %s", signed(x.Low), signed(x.High), plural(x.Issues, "issue"))
			}
			fmt.Fprintf(w, "  %10s  %-34s %s\n", signed(x.Seconds), trace.Clean(x.Resource)+": "+x.How, how)
		}
	}
	for _, n := range f.Notes {
		fmt.Fprintf(w, "note: %s\n", trace.Clean(n))
	}
}

// row is a line of a table of times.
type row struct {
	name         string
	home, target float64
}

// sumClasses is the time of all threads by class.
func sumClasses(list []report.Part) []row {
	var rows []row
	for _, c := range classes {
		r := row{name: fmt.Sprintf("%-8s %s", c, classWords[c])}
		for _, x := range list {
			if x.Class == c {
				r.home += x.Home
				r.target += x.Target
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// most are the parts that differ most.
func most(list []report.Part, all float64) []row {
	sorted := slices.Clone(list)
	diff := func(x report.Part) float64 { return math.Abs(x.Target - x.Home) }
	slices.SortStableFunc(sorted, func(a, b report.Part) int { return cmp.Compare(diff(b), diff(a)) })
	var rows []row
	for _, x := range sorted[:min(len(sorted), partsShown)] {
		if diff(x) >= all*shownLeast {
			rows = append(rows, row{fmt.Sprintf("%-8s %s", x.Class, trace.Clean(x.Thread)), x.Home, x.Target})
		}
	}
	return rows
}

// table prints rows, but for those that are next to nothing of all.
func table(w io.Writer, a, b string, rows []row, all float64) {
	fmt.Fprintf(w, "  %-32s %11s %11s %12s\n", "", a, b, "difference")
	for _, r := range rows {
		if max(r.home, r.target) > all*shownLeast/5 {
			fmt.Fprintf(w, "  %-32s %11s %11s %12s\n", r.name, secondsText(r.home), secondsText(r.target), signed(r.target-r.home))
		}
	}
}

// criticalText says what a thread did there.
func criticalText(c *report.Critical) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", trace.Clean(c.Thread), c.Class)
	switch {
	case c.Call == "":
	case c.Class == "cpu" || c.Class == "ready":
		fmt.Fprintf(&b, ", up to %s", trace.Clean(c.Call))
	default:
		fmt.Fprintf(&b, ", %s", trace.Clean(c.Call))
	}
	if c.Object != "" {
		fmt.Fprintf(&b, " %s", trace.Clean(c.Object))
	}
	if c.At != "" {
		fmt.Fprintf(&b, " in %s", trace.Clean(c.At))
	}
	if c.Times > 1 {
		fmt.Fprintf(&b, "; %s times, the longest %s", grouped(c.Times), secondsText(c.Longest))
	}
	return b.String()
}

func secondsText(s float64) string {
	if s > -1e9 && s < 1e9 {
		return nsText(int64(math.Round(s * 1e9)))
	}
	return fmt.Sprintf("%.3g s", s)
}

func signed(s float64) string {
	if s >= 0 {
		return "+" + secondsText(s)
	}
	return secondsText(s)
}

package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"prophet/runtime/predict"
	"prophet/runtime/words"
)

// Diff is what differs between two sides of one run or more each.
type Diff struct {
	Format  int          `json:"format"`
	A       Side         `json:"a"`
	B       Side         `json:"b"`
	Tested  string       `json:"tested"` // "runs": sides are compared run by run; "calls": only calls within the runs are
	Verdict string       `json:"verdict"`
	Notes   []string     `json:"notes"`
	Run     []Change     `json:"run"` // of the whole run: time, CPU time, events
	Groups  []Change     `json:"time"`
	Calls   []CallChange `json:"calls"`
	Locks   []Change     `json:"locks"`
	Files   []Change     `json:"files"`
	Conns   []Change     `json:"connections"`
	Threads []Change     `json:"threads"`
}

// Side is one side's runs.
type Side struct {
	Command string   `json:"command"`
	Traces  []string `json:"traces"`
	NS      []int64  `json:"duration_ns"`
	Damaged int      `json:"damaged"`
}

// Change is a quantity on both sides: medians over the runs of a side.
type Change struct {
	Name    string    `json:"name"`
	Unit    string    `json:"unit"` // ns, count
	A       float64   `json:"a"`
	B       float64   `json:"b"`
	ACount  uint64    `json:"a_count"` // calls or waits, of all runs
	BCount  uint64    `json:"b_count"`
	Delta   float64   `json:"delta"`
	P       *float64  `json:"p,omitempty"` // run against run; none where a side has one run
	Q       *float64  `json:"q,omitempty"` // corrected for how many are compared
	Verdict string    `json:"verdict"`     // more, less, same, unknown, new, gone
	runsA   []float64 // one a run
	runsB   []float64
}

// CallChange is how long calls of a kind took on both sides.
type CallChange struct {
	Change        // of the median latency
	On     string `json:"on,omitempty"`
	Group  string `json:"group"`
	A99    uint64 `json:"a_p99_ns"`
	B99    uint64 `json:"b_p99_ns"`
	ATotal int64  `json:"a_total_ns"` // of a run
	BTotal int64  `json:"b_total_ns"`
	// Chance that a call of B takes longer than one of A; the p of it, with calls that come together counted as fewer,
	// and that corrected for how many kinds are compared.
	Chance   float64  `json:"chance_b_longer"`
	CallP    *float64 `json:"call_p,omitempty"`
	CallQ    *float64 `json:"call_q,omitempty"`
	BucketsA []Bucket `json:"a_buckets"`
	BucketsB []Bucket `json:"b_buckets"`
}

// What counts as a change: the chance that a call of one side takes longer than one of the other must be further from
// one half than noEffect (what Vargha and Delaney call negligible), and q at most alpha.
const (
	alpha    = .05
	noEffect = .06
	fewCalls = 20
)

// DiffOptions are the options of reports that are compared: without pictures, and with all that can be matched.
func DiffOptions(workers int) Options {
	return Options{Slices: 1, Lanes: 1, Slow: 1, Locks: 1 << 16, Files: maxTargets, Calls: 1 << 16, Threads: 1 << 16, Workers: workers}
}

// Compare compares two sides.
func Compare(a, b []*Report) *Diff {
	d := &Diff{Format: Format, A: sideOf(a), B: sideOf(b), Notes: []string{}, Tested: "calls", Groups: []Change{}}
	if len(a) > 1 && len(b) > 1 {
		d.Tested = "runs"
	}
	d.Run = []Change{
		change("time", "ns", a, b, func(r *Report) float64 { return float64(r.Run.NS) }),
		change("CPU time", "ns", a, b, func(r *Report) float64 { return float64(r.Totals.CPUNS) }),
		change("events", "count", a, b, func(r *Report) float64 { return float64(r.Totals.Events) }),
		change("processes", "count", a, b, func(r *Report) float64 { return float64(r.Totals.Processes) }),
		change("threads", "count", a, b, func(r *Report) float64 { return float64(r.Totals.Threads) }),
	}
	for g := range Groups {
		c := change(Group(g).String(), "ns", a, b, func(r *Report) float64 { return float64(r.Groups[g].NS) })
		if c.A != 0 || c.B != 0 {
			d.Groups = append(d.Groups, c)
		}
	}
	d.Locks = matched(a, b, func(r *Report, put func(string, float64, uint64)) {
		for i := range r.Locks {
			put(r.Locks[i].Name, float64(r.Locks[i].NS), r.Locks[i].Waits)
		}
	})
	d.Files = matched(a, b, func(r *Report, put func(string, float64, uint64)) {
		for i := range r.Files {
			put(r.Files[i].Name, float64(r.Files[i].NS), r.Files[i].Calls)
		}
	})
	d.Conns = matched(a, b, func(r *Report, put func(string, float64, uint64)) {
		for i := range r.Conns {
			put(r.Conns[i].Name, float64(r.Conns[i].NS), r.Conns[i].Calls)
		}
	})
	d.Threads = matched(a, b, func(r *Report, put func(string, float64, uint64)) {
		for i := range r.Threads {
			put(r.Threads[i].Name, float64(r.Threads[i].CPUNS), r.Threads[i].Events)
		}
	})
	d.Calls = compareCalls(a, b)
	d.test()
	d.words(len(a), len(b))
	return d
}

// others follows a side's first command where its runs had several.
const others = " (and others)"

func sideOf(list []*Report) Side {
	s := Side{}
	for _, r := range list {
		if s.Command == "" {
			s.Command = r.Run.Command
		} else if s.Command != r.Run.Command && !strings.HasSuffix(s.Command, others) {
			s.Command += others
		}
		s.Traces = append(s.Traces, r.Run.Trace)
		s.NS = append(s.NS, r.Run.NS)
		s.Damaged += r.Damaged
	}
	return s
}

func change(name, unit string, a, b []*Report, of func(*Report) float64) Change {
	c := Change{Name: name, Unit: unit}
	for _, r := range a {
		c.runsA = append(c.runsA, of(r))
	}
	for _, r := range b {
		c.runsB = append(c.runsB, of(r))
	}
	c.medians()
	return c
}

func (c *Change) medians() {
	c.A, c.B = predict.Median(c.runsA), predict.Median(c.runsB)
	c.Delta = c.B - c.A
}

// matched pairs what has the same name on both sides, the largest differences first. What a run does not have is 0 there.
func matched(a, b []*Report, each func(*Report, func(string, float64, uint64))) []Change {
	all := map[string]*Change{}
	var names []string
	get := func(name string) *Change {
		c := all[name]
		if c == nil {
			c = &Change{Name: name, Unit: "ns", runsA: make([]float64, len(a)), runsB: make([]float64, len(b))}
			all[name] = c
			names = append(names, name)
		}
		return c
	}
	for i, r := range a {
		each(r, func(name string, v float64, n uint64) { c := get(name); c.runsA[i] += v; c.ACount += n })
	}
	for i, r := range b {
		each(r, func(name string, v float64, n uint64) { c := get(name); c.runsB[i] += v; c.BCount += n })
	}
	out := []Change{}
	for _, n := range names {
		all[n].medians()
		out = append(out, *all[n])
	}
	byDelta(out)
	return out[:min(len(out), 500)]
}

func byDelta(list []Change) {
	slices.SortStableFunc(list, func(a, b Change) int {
		return cmp.Or(cmp.Compare(math.Abs(b.Delta), math.Abs(a.Delta)), cmp.Compare(a.Name, b.Name))
	})
}

// compareCalls compares latencies of calls of the same name on the same kind of descriptor.
func compareCalls(a, b []*Report) []CallChange {
	type both struct {
		CallChange
		a, b           Hist
		inflA, inflB   float64
		timeA, timeB   float64
		countA, countB uint64
	}
	all := map[string]*both{}
	var keys []string
	take := func(list []*Report, isB bool) {
		for _, r := range list {
			for i := range r.Calls {
				c := &r.Calls[i]
				key := c.Call + "\x00" + c.On
				x := all[key]
				if x == nil {
					x = &both{CallChange: CallChange{Change: Change{Name: c.Call, Unit: "ns"}, On: c.On, Group: c.Group}, inflA: 1, inflB: 1}
					all[key] = x
					keys = append(keys, key)
				}
				h, runs, infl, sum, n := &x.a, &x.runsA, &x.inflA, &x.timeA, &x.countA
				if isB {
					h, runs, infl, sum, n = &x.b, &x.runsB, &x.inflB, &x.timeB, &x.countB
				}
				h.Merge(c.hist)
				*sum += float64(c.NS)
				*n += c.N
				if c.hist.N > 0 {
					*runs = append(*runs, float64(c.hist.Quantile(.5)))
				}
				*infl = max(*infl, c.inflation)
			}
		}
	}
	take(a, false)
	take(b, true)
	out := []CallChange{}
	for _, key := range keys {
		x := all[key]
		if x.a.N+x.b.N == 0 {
			continue
		}
		c := x.CallChange
		c.ACount, c.BCount = x.countA, x.countB
		c.A, c.B = float64(x.a.Quantile(.5)), float64(x.b.Quantile(.5))
		c.Delta = c.B - c.A
		c.A99, c.B99 = x.a.Quantile(.99), x.b.Quantile(.99)
		c.ATotal, c.BTotal = int64(x.timeA)/int64(len(a)), int64(x.timeB)/int64(len(b))
		c.BucketsA, c.BucketsB = notNil(x.a.Buckets()), notNil(x.b.Buckets())
		var z float64
		c.Chance, z = superior(&x.a, &x.b)
		if x.a.N >= fewCalls && x.b.N >= fewCalls {
			p := math.Erfc(math.Abs(z) / math.Sqrt(max(x.inflA, x.inflB)) / math.Sqrt2)
			c.CallP = &p
		}
		out = append(out, c)
	}
	slices.SortStableFunc(out, func(a, b CallChange) int {
		return cmp.Or(cmp.Compare(abs(b.BTotal-b.ATotal), abs(a.BTotal-a.ATotal)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.On, b.On))
	})
	return out[:min(len(out), 300)]
}

func notNil(b []Bucket) []Bucket {
	if b == nil {
		return []Bucket{}
	}
	return b
}

func abs(n int64) int64 { return max(n, -n) }

// test gives each change its p, q and verdict. Each list is a family of comparisons of its own; the run's own figures
// come first and are one, too.
func (d *Diff) test() {
	for _, list := range [][]Change{d.Run, d.Groups, d.Locks, d.Files, d.Conns, d.Threads} {
		ptrs := make([]*Change, len(list))
		for i := range list {
			ptrs[i] = &list[i]
		}
		testRuns(ptrs)
		for _, c := range ptrs {
			c.judge()
		}
	}
	var ptrs []*Change
	var tested []*CallChange
	var p []float64
	for i := range d.Calls {
		c := &d.Calls[i]
		ptrs = append(ptrs, &c.Change)
		if c.CallP != nil {
			tested = append(tested, c)
			p = append(p, *c.CallP)
		}
	}
	testRuns(ptrs)
	for i, q := range adjust(p) {
		tested[i].CallQ = &q
	}
	for i := range d.Calls {
		d.Calls[i].judgeCalls(d.Tested == "runs")
	}
}

// testRuns compares run with run, where both sides have several.
func testRuns(list []*Change) {
	var tested []*Change
	var p []float64
	for _, c := range list {
		if len(c.runsA) > 1 && len(c.runsB) > 1 && !constant(c.runsA, c.runsB) {
			v := mannWhitney(c.runsA, c.runsB)
			c.P = &v
			tested = append(tested, c)
			p = append(p, v)
		}
	}
	for i, q := range adjust(p) {
		tested[i].Q = &q
	}
}

// constant reports whether all values are one: there is nothing to test then, and to count it would only hide others.
func constant(a, b []float64) bool {
	for _, v := range slices.Concat(a, b) {
		if v != a[0] {
			return false
		}
	}
	return true
}

// runsFor is how many runs a side it takes to show that one of so many things differs.
func runsFor(k int) int {
	n := 4
	for n < 20 && leastP(n, n)*float64(max(k, 1)) > alpha {
		n++
	}
	return n
}

func (c *Change) judge() {
	switch {
	case c.ACount > 0 && c.BCount == 0:
		c.Verdict = "gone"
	case c.ACount == 0 && c.BCount > 0:
		c.Verdict = "new"
	case c.A == c.B && (c.Q == nil || *c.Q > alpha):
		c.Verdict = "same"
	case c.Q == nil:
		c.Verdict = "unknown"
	case *c.Q > alpha:
		c.Verdict = "same"
	case c.Delta > 0:
		c.Verdict = "more"
	default:
		c.Verdict = "less"
	}
}

// judgeCalls judges latencies: by runs where there are several a side, otherwise by calls.
func (c *CallChange) judgeCalls(runs bool) {
	q := c.CallQ
	if runs {
		q = c.Q
	}
	switch {
	case c.ACount > 0 && c.BCount == 0:
		c.Verdict = "gone"
	case c.ACount == 0 && c.BCount > 0:
		c.Verdict = "new"
	case q == nil:
		c.Verdict = "unknown"
	case *q > alpha || math.Abs(c.Chance-.5) < noEffect:
		c.Verdict = "same"
	case c.Chance > .5:
		c.Verdict = "more"
	default:
		c.Verdict = "less"
	}
}

// words says what came out, and what cannot be said.
func (d *Diff) words(n, m int) {
	note := func(format string, a ...any) { d.Notes = append(d.Notes, fmt.Sprintf(format, a...)) }
	t := &d.Run[0]
	how := "took the same time as"
	switch r := t.B / max(t.A, 1); {
	case r >= 1.005:
		how = fmt.Sprintf("took %s times as long as", ratio(r))
	case r <= .995:
		how = fmt.Sprintf("took %s of the time of", percent(r))
	}
	d.Verdict = fmt.Sprintf("B %s A: %s against %s", how, words.Duration(int64(t.B)), words.Duration(int64(t.A)))
	switch {
	case t.P == nil:
		d.Verdict += ". Whether that is more than chance cannot be said from so few runs."
	case *t.P <= alpha:
		d.Verdict += fmt.Sprintf(" (medians of %d and %d runs). Runs of one side do not differ that much among themselves (p = %s).", m, n, pText(*t.P))
	default:
		d.Verdict += fmt.Sprintf(" (medians of %d and %d runs). Runs of one side differ as much among themselves (p = %s): no difference is shown.", m, n, pText(*t.P))
	}
	if d.Tested == "calls" {
		note("A side has only one run. Latencies are compared call by call within these runs (calls that come together count as fewer), so they say whether these runs differ, not whether the programs or machines do: between runs of the same program there may be as much. Totals of one run have no test at all.")
		note("To know more, record %d runs or more of each side and compare them: prophet diff A1 A2 ... -- B1 B2 ...", runsFor(d.family()))
	} else {
		least := leastP(n, m)
		note("Each quantity is compared run with run (Mann and Whitney's test, exact where there are few); q is p corrected for how many are compared (Benjamini and Hochberg), and a change is one with q at most %g.", alpha)
		if k := d.family(); least*float64(k) > alpha {
			note("With %d and %d runs no p can be below %s: where only one of %d kinds of calls differs, that is not enough to show it. %d runs of each side would be.", n, m, pText(least), k, runsFor(k))
		}
	}
	if d.A.Command != d.B.Command {
		note("The sides ran different commands: %s, and %s.", d.A.Command, d.B.Command)
	}
	if d.A.Damaged+d.B.Damaged > 0 {
		note("Traces are damaged (A in %s, B in %s): what is missing looks like a difference.", words.Plural(d.A.Damaged, "place"), words.Plural(d.B.Damaged, "place"))
	}
}

// family is how many kinds of calls are compared.
func (d *Diff) family() int {
	k := 0
	for i := range d.Calls {
		if len(d.Calls[i].BucketsA) > 0 && len(d.Calls[i].BucketsB) > 0 {
			k++
		}
	}
	return k
}

func ratio(r float64) string {
	if r >= 10 {
		return fmt.Sprintf("%.0f", r)
	}
	return fmt.Sprintf("%.2f", r)
}

func percent(r float64) string { return fmt.Sprintf("%.1f%%", 100*r) }

// pText is a p with as many digits as mean something.
func pText(p float64) string {
	switch {
	case p < .0001:
		return "below 0.0001"
	case p < .001:
		return fmt.Sprintf("%.4f", p)
	}
	return fmt.Sprintf("%.3f", p)
}

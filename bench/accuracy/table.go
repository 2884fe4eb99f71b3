package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"prophet/runtime/predict"
)

// words say what became of a pair in a line.
func (p *pair) words() string {
	if !p.measured() {
		return "not measured: " + firstLine(p.Error)
	}
	s := fmt.Sprintf("real %.3f s, predicted %.3f s, error %s, noise %s", p.real(), p.predicted(), percent(p.off(p.Issued)), percent(p.noise()))
	if p.Refused != "" {
		s += ", refused"
	}
	return s
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

func percent(v float64) string { return fmt.Sprintf("%.1f %%", v*100) }

func verdict(good bool) string {
	if good {
		return "held"
	}
	return "**not held**"
}

// bars are what is to be held, and what was measured.
func (r *results) bars() []byte {
	var b bytes.Buffer
	s := r.summary()
	fmt.Fprintf(&b, "| of %d pairs | measured | bar | |\n|---|---|---|---|\n", s.pairs)
	fmt.Fprintf(&b, "| error beyond A/A noise, median | %s | at most %s | %s |\n", percent(s.median), percent(barMedian), verdict(s.median <= barMedian))
	fmt.Fprintf(&b, "| 95th percentile | %s | at most %s | %s |\n", percent(s.p95), percent(barP95), verdict(s.p95 <= barP95))
	worst := ""
	if s.worst != "" {
		worst = " (" + s.worst + ")"
	}
	fmt.Fprintf(&b, "| most%s | %s | at most %s | %s |\n", worst, percent(s.most), percent(barMost), verdict(s.most <= barMost))
	fmt.Fprintf(&b, "| real medians in the 90 %% interval | %s | %s to %s | %s |\n", percent(s.cover), percent(coverLeast), percent(coverAtMost), verdict(s.cover >= coverLeast && s.cover <= coverAtMost))
	fmt.Fprintf(&b, "\nRefused, and not among them: %d. Could not be measured: %d.\n", s.refused, s.failed)
	return b.Bytes()
}

// table is what people read.
func (r *results) table() []byte {
	var b bytes.Buffer
	from, to := "", ""
	for _, p := range r.Pairs {
		day := p.When.Format("2006-01-02")
		if from == "" || day < from {
			from = day
		}
		to = max(to, day)
	}
	if to != from {
		from += " to " + to
	}
	fmt.Fprintf(&b, "# How good predictions are\n\nMeasured by `make accuracy` on %s; %s. ", from, r.Machine)
	b.WriteString("Each program was recorded once at home and predicted; then the real program, an issue of its\ndemand and the real program again were run there in turn, at least ten times, and up to four times as\noften (for a minute) while a median has a standard error above 3 %. Real and predicted are medians. " +
		"A/A is how far the\nmedians of the first and the second real runs of each turn are apart: what the machine itself does. " +
		"Of programs with several threads or\nprocesses two other ways are issued beside: home's path with each lock in home's order, and home's times between calls without any locks.\nStrictly is how many rounds it takes to stop at each lock that comes in another order, and each other result; no more than so many were made." +
		"\nWhere `prophet sense` had found that the program minds sharing a core, issues walked as much memory as is noted.\n\n")
	if !r.Whole {
		b.WriteString("The last run of all pairs was not finished: each stands as it was measured last. Those measured again were chosen, mostly as they had been far off, which flatters the whole.\n\n")
	}
	b.Write(r.bars())
	b.WriteString("\n![predicted against real](accuracy.svg)\n\n")
	b.WriteString("| program | target | home | real | predicted | 90 % interval | error | A/A | beyond | in it | rounds | home's order | think times | |\n|---|---|--:|--:|--:|--:|--:|--:|--:|---|---|--:|--:|---|\n")
	for _, p := range r.Pairs {
		p.row(&b)
	}
	r.tails(&b)
	r.others(&b)
	b.WriteString("\n## Targets\n\n| | |\n|---|---|\n")
	for _, h := range how {
		fmt.Fprintf(&b, "| %s | %s |\n", h[0], h[1])
	}
	return b.Bytes()
}

func (p *pair) row(b *bytes.Buffer) {
	if !p.measured() {
		fmt.Fprintf(b, "| %s | %s | | | | | | | | | | | | %s |\n", p.Program, p.Target, cell(firstLine(p.Error)))
		return
	}
	low, high := p.interval()
	in := "no"
	if p.covered() {
		in = "yes"
	}
	rounds := fmt.Sprint(p.Rounds)
	if p.Proven {
		rounds += ", proven"
	}
	if s := p.Strict; s != nil && s.Proven {
		rounds += fmt.Sprintf("; strictly %d", s.Rounds)
	} else if s != nil {
		rounds += fmt.Sprintf("; strictly more than %d, which prove %s", s.Rounds, percent(1-s.Unproven))
	}
	note := ""
	if p.Refused != "" {
		note = "refused: " + cell(firstLine(p.Refused))
	} else if p.Unknown+p.Forced > 0 {
		note = fmt.Sprintf("%d unknown, %d helped", p.Unknown, p.Forced)
	}
	if p.Walk > 0 {
		note = strings.TrimPrefix(fmt.Sprintf("%s; walks %d KiB", note, p.Walk>>10), "; ")
	}
	fmt.Fprintf(b, "| %s | %s | %.3f s | %.3f s | %.3f s | %.3f to %.3f | %s | %s | %s | %s | %s | %s | %s | %s |\n", p.Program, p.Target, p.Home, p.real(), p.predicted(), low, high,
		percent(p.off(p.Issued)), percent(p.noise()), percent(p.beyond()), in, rounds, p.way(p.Order), p.way(p.Think), note)
}

func (p *pair) way(list []float64) string {
	if len(list) == 0 {
		return ""
	}
	return percent(p.off(list))
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// tails are quantiles of programs that were run often.
func (r *results) tails(b *bytes.Buffer) {
	first := true
	for _, p := range r.Pairs {
		if !p.Tail || !p.measured() {
			continue
		}
		if first {
			b.WriteString("\n## Over many runs\n\nClients write to one database, retrying when it is locked; a run takes what its slowest client takes.\n\n" +
				"| program | runs | issues | 5th percentile | predicted | median | predicted | 95th | predicted |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
			first = false
		}
		real := slices.Concat(p.Real, p.Again)
		fmt.Fprintf(b, "| %s | %d | %d |", p.Program, len(real), len(p.Issued))
		for _, q := range []float64{0.05, 0.5, 0.95} {
			fmt.Fprintf(b, " %.3f s | %.3f s |", predict.Quantile(real, q), predict.Quantile(p.Issued, q))
		}
		b.WriteString("\n")
	}
}

// others compares the ways with each other, where they differ at all: away from home.
func (r *results) others(b *bytes.Buffer) {
	var free, order, think []float64
	for _, p := range r.Pairs {
		if p.measured() && len(p.Order) > 0 && p.Target != home {
			free, order, think = append(free, p.off(p.Issued)), append(order, p.off(p.Order)), append(think, p.off(p.Think))
		}
	}
	if len(free) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Other ways\n\nOf the %d pairs away from home with several threads or processes:\n\n| | median error | 95th percentile |\n|---|--:|--:|\n", len(free))
	for _, x := range []struct {
		name string
		list []float64
	}{{"predicted", free}, {"home's path in home's order", order}, {"home's times between calls, no locks", think}} {
		fmt.Fprintf(b, "| %s | %s | %s |\n", x.name, percent(predict.Median(x.list)), percent(predict.Quantile(x.list, 0.95)))
	}
}

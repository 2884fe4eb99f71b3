package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"prophet/cabi"
	"prophet/runtime/trace"
	"prophet/runtime/words"
)

// report makes values of what was collected.
func (c *collector) report() *Report {
	r := &Report{Format: Format, Run: c.run(), Findings: []string{}, Warnings: []string{}, LeftOut: []string{}, Damage: []string{}, Damaged: c.sum.Damaged}
	for _, d := range c.sum.Damage[:min(len(c.sum.Damage), 50)] {
		r.Damage = append(r.Damage, clean(d.Error()))
	}
	c.threads(r)
	c.processes(r)
	c.totals(r)
	c.calls(r)
	r.Locks = c.locks.list()
	r.Slow = c.slowCalls()
	c.files(r)
	c.name(r)
	cv := &c.sum.Cover
	r.Coverage = []Cover{{"read", cv.ReadSeen, cv.ReadBytes}, {"written", cv.WriteSeen, cv.WriteBytes}, {"cpu", cv.CPUSeen, cv.CPUNS}}
	r.Timeline = c.encode()
	c.warn(r)
	c.find(r)
	c.bound(r)
	return r
}

func (c *collector) run() Run {
	m := c.t.Meta
	run := Run{Command: clean(strings.Join(m.Command, " ")), Cwd: clean(m.Cwd), Trace: clean(c.t.Path), NS: c.ns(c.end - c.start), Live: c.o.Live,
		Host: clean(m.Machine.Nodename), CPUs: m.Machine.CPUs, Memory: m.Machine.MemoryBytes, Calibrate: c.t.Calibrated()}
	if run.Command == "" {
		run.Command = "unknown program"
	}
	run.System = strings.TrimSpace(clean(m.Machine.Sysname) + " " + clean(m.Machine.Release) + " " + clean(m.Machine.Arch))
	if c.t.Clock.Real0 > 0 {
		run.Start = time.Unix(0, c.t.Clock.Real0).UTC()
	}
	run.Recorded = "inputs " + orUnknown(clean(m.Options.Inputs)) + ", level " + orUnknown(clean(m.Options.Level))
	if m.Options.Serial {
		run.Recorded += ", one thread at a time"
	}
	if m.Options.Chaos != nil {
		run.Recorded += fmt.Sprintf(", threads held up by seed %d", *m.Options.Chaos)
	}
	if m.Options.Flight > 0 {
		run.Recorded += ", flight recorder"
	}
	run.End = c.ending()
	return run
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func (c *collector) ending() string {
	e := c.t.Meta.Ended
	switch {
	case c.o.Live:
		return "still running"
	case e == nil:
		return "how it ended is not known"
	case e.TimedOut:
		return "stopped by " + clean(e.Signal) + " after --timeout"
	case e.Signal != "":
		return "ended by " + clean(e.Signal)
	case e.How == "exit" || e.How == "quick":
		return fmt.Sprintf("exit status %d", e.Status)
	case e.How == "signal":
		return "killed"
	case e.How == "exec":
		return "became a program that is not recorded"
	}
	return "ended: " + clean(e.How)
}

// cpuOf is the CPU time of a thread: as last sampled, and what ran since.
func (c *collector) cpuOf(x *thread) int64 { return int64(x.cpu) + c.ns(x.ran) }

func (c *collector) threads(r *Report) {
	index := map[*trace.Proc]int{}
	for i, p := range c.t.Procs {
		index[p] = i
	}
	r.Threads = []Thread{}
	for _, x := range c.order {
		t := Thread{Name: clean(x.th.Name), Label: clean(x.label), Proc: index[x.th.Proc], Start: c.since(x.first), NS: c.ns(x.end - x.first),
			Events: x.events, CPUNS: c.cpuOf(x)}
		var busy int64
		for g := Compute + 1; g < groups; g++ {
			t.Time[g] = c.ns(x.time[g])
			busy += t.Time[g]
		}
		t.Time[Compute] = max(0, t.NS-busy)
		r.Threads = append(r.Threads, t)
		b := c.begun[x.th.Proc]
		if b.to == 0 || x.first < b.from {
			b.from = x.first
		}
		b.to = max(b.to, x.end)
		b.events += x.events
		c.begun[x.th.Proc] = b
	}
	for i, x := range c.order {
		if end := c.begun[x.th.Proc].to; !x.th.Tail && !c.o.Live && (end-x.end)*100 > c.end-c.start {
			r.Threads[i].Open, x.open = true, true
			c.open++
		}
	}
}

func (c *collector) processes(r *Report) {
	index := map[*trace.Proc]int{}
	for i, p := range c.t.Procs {
		index[p] = i
	}
	threads, cpu := map[*trace.Proc]int{}, map[*trace.Proc]int64{}
	for _, x := range c.order {
		threads[x.th.Proc]++
		cpu[x.th.Proc] += c.cpuOf(x)
	}
	size := uint64(max(c.t.Meta.Machine.PageSize, 4096))
	r.Procs = []Proc{}
	for _, p := range c.t.Procs {
		b := c.begun[p]
		q := Proc{Name: clean(p.Name), Parent: -1, PID: p.PID, Exe: clean(p.Exe), Command: clean(strings.Join(p.Args, " ")), How: howOf(p),
			Start: c.since(b.from), NS: c.ns(b.to - b.from), Threads: threads[p], Events: b.events, CPUNS: cpu[p], Peak: c.peak[p] * size, End: c.endOf(p)}
		if p.Parent != nil {
			q.Parent = index[p.Parent]
		}
		r.Procs = append(r.Procs, q)
	}
}

func howOf(p *trace.Proc) string {
	switch {
	case !p.Known:
		return "unknown"
	case p.How == cabi.ProcRoot:
		return "first"
	case p.How == cabi.ProcExeced && p.Parent != nil && p.Parent.PID == p.PID:
		return "another program in it"
	case p.How == cabi.ProcExeced:
		return "spawned"
	}
	return "forked"
}

func (c *collector) endOf(p *trace.Proc) string {
	e, ok := c.exits[p]
	if !ok {
		for _, q := range c.t.Procs {
			if q.Parent == p && q.PID == p.PID && q.How == cabi.ProcExeced {
				return "became another program"
			}
		}
		return ""
	}
	if e.how == cabi.ExitNormal || e.how == cabi.ExitQuick {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return trace.ExitHow(e.how)
}

func (c *collector) totals(r *Report) {
	t := &r.Totals
	s := c.sum
	*t = Totals{Processes: s.Processes, Threads: s.Threads, Events: s.Events, Timed: c.timed, Bytes: s.Bytes, Signals: s.Signals, Marks: s.Marks}
	for i := range overviewSteps {
		t.PeakBytes = max(t.PeakBytes, c.count[countResident*overviewSteps+i])
	}
	sum := make([]GroupTime, groups)
	for g := range sum {
		sum[g].Group = Group(g).String()
	}
	for i := range r.Threads {
		t.CPUNS += r.Threads[i].CPUNS
		t.ThreadNS += r.Threads[i].NS
		for g, ns := range r.Threads[i].Time {
			sum[g].NS += ns
		}
	}
	for _, x := range c.order {
		for g, n := range x.calls {
			sum[g].Calls += n
		}
	}
	r.Groups = sum
}

func (c *collector) calls(r *Report) {
	r.Calls = []Call{}
	for i := range c.stats {
		s := &c.stats[i]
		if s.n == 0 {
			continue
		}
		x := Call{Call: s.info.name, On: fdKindNames[s.on], Group: s.group.String(), Class: "unknown", N: s.n, Failed: s.failed, Timed: s.hist.N,
			NS: int64(s.hist.Sum), P50: s.hist.Quantile(.5), P90: s.hist.Quantile(.9), P99: s.hist.Quantile(.99), MaxNS: s.hist.Max, hist: &s.hist}
		if s.parts != nil {
			x.inflation = s.parts.inflation()
		}
		if s.info.row != nil {
			x.Class = s.info.row.Class.String()
		}
		x.Buckets = s.hist.Buckets()
		if x.Buckets == nil {
			x.Buckets = []Bucket{}
		}
		r.Calls = append(r.Calls, x)
	}
	slices.SortStableFunc(r.Calls, func(a, b Call) int {
		return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(b.N, a.N), cmp.Compare(a.Call, b.Call), cmp.Compare(a.On, b.On))
	})
}

func (c *collector) slowCalls() []SlowCall {
	out := []SlowCall{}
	for g := range c.slow {
		for _, s := range c.slow[g].list {
			site := ""
			if s.pc != 0 {
				site = s.x.th.Proc.Site(s.pc)
			}
			out = append(out, SlowCall{Group: Group(g).String(), Call: s.title, NS: c.ns(s.ticks), At: c.since(s.begin), Thread: c.threadName(s.x), N: s.n,
				What: clean(c.labels[s.what]), Text: s.text, Site: site, stack: Stack{s.x.th.Proc, append([]uint64{s.pc}, s.stack...)}})
		}
	}
	return out
}

func (c *collector) files(r *Report) {
	r.Files, r.Conns = []File{}, []File{}
	for _, t := range c.table.list {
		if t.Calls == 0 && t.Opens == 0 && t.Writes == 0 {
			continue
		}
		f := t.File
		if f.Name = clean(f.Name); f.Name == "" {
			f.Name = "without a name"
		}
		if t.kind == fdFile {
			r.Files = append(r.Files, f)
		} else {
			r.Conns = append(r.Conns, f)
		}
	}
	for _, list := range [][]File{r.Files, r.Conns} {
		slices.SortStableFunc(list, func(a, b File) int {
			return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(b.Read+b.Written, a.Read+a.Written), cmp.Compare(a.Name, b.Name))
		})
	}
}

// bound cuts the lists to what was asked for, and says what that left out.
func (c *collector) bound(r *Report) {
	left := func(format string, a ...any) { r.LeftOut = append(r.LeftOut, fmt.Sprintf(format, a...)) }
	tl := r.Timeline
	if n := len(r.Threads) - len(tl.Lanes); n > 0 {
		left("The timeline draws the %s threads with the most records; %s more have no lane of their own, but count in the overview and all tables.", words.Grouped(len(tl.Lanes)), words.Grouped(n))
	}
	if n := tl.All - uint64(tl.Slices); n > 0 {
		left("The timeline has the %s longest calls one by one; %s calls shorter than %s are in it as shares of time.", words.Grouped(tl.Slices), words.Grouped(n), words.Duration(tl.ShortNS+1))
	}
	r.Locks = cut(r.Locks, c.o.Locks, "objects that were waited at", left)
	r.Calls = cut(r.Calls, c.o.Calls, "kinds of calls", left)
	r.Files = cut(r.Files, c.o.Files, "files", left)
	r.Conns = cut(r.Conns, c.o.Files, "kinds of connections", left)
	r.Threads = cut(r.Threads, max(c.o.Threads, 0), "threads", left)
	r.Procs = cut(r.Procs, c.o.Threads, "processes", left)
	if c.table.folded > 0 {
		left("More than %s files and kinds of connections were met; the rest is added up as \"others\".", words.Grouped(maxTargets))
	}
	if c.locks.folded > 0 {
		left("More than %s locks were met; %s events of the rest are counted, but not by lock.", words.Grouped(maxLocks), words.Grouped(c.locks.folded))
	}
}

func cut[T any](list []T, most int, what string, left func(string, ...any)) []T {
	if len(list) <= most {
		return list
	}
	left("Of %s %s the first %s are listed.", words.Grouped(len(list)), what, words.Grouped(most))
	return list[:most]
}

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"prophet/cabi"
	"prophet/runtime/summary"
	"prophet/runtime/term"
	"prophet/runtime/trace"
)

func infoCmd() *cobra.Command {
	var asJSON bool
	var top int
	c := &cobra.Command{
		Use:   "info TRACE",
		Short: "Show on one screen what a trace holds",
		Long: `Shows what ran and for how long, who waited for what, what was recorded at what price, which share of what the kernel
counted the events explain, and what could not be seen. A run that is live is shown as far as it is.

Exit status: 0; 1 when parts of the trace are damaged; 2 when it is no trace.`,
		Args: args(1, "one trace"),
		RunE: func(_ *cobra.Command, a []string) error {
			t, live, err := open(a[0])
			if err != nil {
				return err
			}
			defer t.Close()
			p := term.NewProgress("reading " + a[0])
			s, err := summary.Of(t, runtime.GOMAXPROCS(0), p.Set)
			p.Done()
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(infoOf(t, s, live, top))
			} else {
				w := bufio.NewWriter(os.Stdout)
				infoText(w, t, s, live, top)
				err = w.Flush()
			}
			if err != nil {
				return err
			}
			if s.Damaged > 0 {
				sayDamage(s.Damage, s.Damaged)
				return &status{exitDamaged, nil}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().IntVar(&top, "top", 8, "how many objects that were waited for to show")
	return c
}

// infoJSON is what info --json prints: meta.json as it is, and what was counted.
type infoJSON struct {
	Path    string           `json:"path"`
	Packed  bool             `json:"packed"`
	Live    bool             `json:"live"`
	Meta    *trace.Meta      `json:"meta"`
	NS      int64            `json:"duration_ns"`
	Totals  *trace.Totals    `json:"totals"`
	Blocked map[string]int64 `json:"blocked_ns_by_class"`
	Waits   []waitJSON       `json:"waits"`
	Cover   trace.Cover      `json:"coverage"`
	Unseen  []countJSON      `json:"unseen"`
	Lost    []countJSON      `json:"lost"`
	Kept    []keptJSON       `json:"kept"`
	Signals int64            `json:"signals"`
	Marks   int64            `json:"marks"`
	Peak    uint64           `json:"peak_resident_pages"`
	Damage  []string         `json:"damage"`
}

type waitJSON struct {
	Object string `json:"object"`
	Times  int64  `json:"times"`
	NS     int64  `json:"ns"`
	MaxNS  int64  `json:"max_ns"`
	Taken  uint64 `json:"taken,omitempty"`
	Call   string `json:"call"`
	At     string `json:"at"`
}

type countJSON struct {
	What string `json:"what"`
	N    uint64 `json:"count"`
}

type keptJSON struct {
	Path string `json:"path"`
	Size uint64 `json:"bytes"`
	How  string `json:"how"`
}

func objectName(w *summary.Wait) string {
	kind := w.Kind
	if kind == "" {
		kind = "object"
	}
	return fmt.Sprintf("%s:%s#%d", kind, w.Thread, w.Object.Num)
}

func siteOf(w *summary.Wait) string {
	if w.Proc == nil || w.PC == 0 {
		return ""
	}
	return w.Proc.Site(w.PC)
}

func infoOf(t *trace.Trace, s *summary.Summary, live bool, top int) *infoJSON {
	j := &infoJSON{Path: t.Path, Packed: t.Packed, Live: live, Meta: t.Meta, NS: s.Duration(&t.Clock), Totals: s.Totals(), Blocked: map[string]int64{},
		Cover: s.Cover, Signals: s.Signals, Marks: s.Marks, Peak: s.PeakPages,
		Waits: []waitJSON{}, Unseen: []countJSON{}, Lost: []countJSON{}, Kept: []keptJSON{}, Damage: []string{}}
	for c, ns := range s.Blocked {
		if ns > 0 {
			j.Blocked[cabi.Class(c).String()] = ns
		}
	}
	for i := range s.Waits[:min(top, len(s.Waits))] {
		w := &s.Waits[i]
		j.Waits = append(j.Waits, waitJSON{objectName(w), w.Times, w.NS, w.MaxNS, w.Seq, w.Call, siteOf(w)})
	}
	for _, u := range s.Unseen {
		j.Unseen = append(j.Unseen, countJSON(u))
	}
	for _, l := range s.Lost {
		j.Lost = append(j.Lost, countJSON(l))
	}
	for _, k := range s.Kept {
		j.Kept = append(j.Kept, keptJSON{k.Path, k.Size, trace.KeptHow(k.How)})
	}
	for _, d := range s.Damage {
		j.Damage = append(j.Damage, d.Error())
	}
	return j
}

// style is what a heading looks like.
type style struct{ on, off string }

func infoText(w io.Writer, t *trace.Trace, s *summary.Summary, live bool, top int) {
	var st style
	if term.Colours(os.Stdout) {
		st = style{"\x1b[1m", "\x1b[0m"}
	}
	line := func(head, format string, a ...any) {
		fmt.Fprintf(w, "%s%-10s%s %s\n", st.on, head, st.off, fmt.Sprintf(format, a...))
	}
	m := t.Meta
	line("run", "%s", command(m))
	if m.Machine.Nodename != "" {
		line("on", "%s, %s %s %s, %s, %s", trace.Clean(m.Machine.Nodename), trace.Clean(m.Machine.Sysname), trace.Clean(m.Machine.Release),
			trace.Clean(m.Machine.Arch), plural(m.Machine.CPUs, "CPU"), bytesText(m.Machine.MemoryBytes))
	}
	line("time", "%s, %s, %s%s", nsText(s.Duration(&t.Clock)), plural(s.Processes, "process"), plural(s.Threads, "thread"), ending(t, s, live))
	line("recorded", "inputs %s, level %s%s", trace.Clean(m.Options.Inputs), trace.Clean(m.Options.Level), modes(m, s))
	if x := m.Issued; x != nil {
		text := "not the program, but its demand, of run " + trace.Clean(x.Run)
		if x.Target != "" {
			text += " on " + trace.Clean(x.Target)
		}
		if x.Cut > 0 {
			text += fmt.Sprintf("; %d operations are missing, as home did none of the kind there", x.Cut)
		}
		line("issued", "%s", text)
	}
	if m.Scrubbed != nil {
		line("scrubbed", "%s: left out, or replaced by tokens", trace.Clean(strings.Join(m.Scrubbed.Removed, ", ")))
	}
	line("events", "%s%s", grouped(s.Events), extras(s))
	for c, n := range s.ByClass {
		if n > 0 {
			fmt.Fprintf(w, "  %-9s %14s   inside calls %s\n", cabi.Class(c), grouped(n), nsText(s.Blocked[c]))
		}
	}
	if s.Unknown > 0 {
		fmt.Fprintf(w, "  %-9s %14s   calls of a newer Prophet\n", "unknown", grouped(s.Unknown))
	}
	line("bytes", "%s of trace (%.2f an event), %s of inputs, %s of hashes%s", bytesText(s.Bytes), s.PerEvent(), bytesText(s.Inputs), bytesText(s.Hashes), packedSize(t))
	waitsText(w, st, s, top)
	coverText(w, line, s)
	keptText(line, s, m)
	for _, l := range s.Lost {
		line("lost", "%s: %s", l.What, grouped(l.N))
	}
	for i, u := range s.Unseen {
		if i == 8 {
			line("unseen", "and %d other kinds (--json has all)", len(s.Unseen)-i)
			break
		}
		line("unseen", "%s: %s", u.What, grouped(u.N))
	}
	if s.Damaged > 0 {
		line("damaged", "%s", plural(s.Damaged, "place"))
	}
}

func command(m *trace.Meta) string {
	if len(m.Command) == 0 {
		return "unknown (meta.json does not tell)"
	}
	s := trace.Clean(strings.Join(m.Command, " "))
	if r := []rune(s); len(r) > 200 {
		s = string(r[:200]) + "..."
	}
	return s
}

func ending(t *trace.Trace, s *summary.Summary, live bool) string {
	if live {
		return "; it is live"
	}
	e := t.Meta.Ended
	if e == nil {
		return ""
	}
	out := ""
	switch {
	case e.Signal != "":
		out = "; ended by " + trace.Clean(e.Signal)
	case e.How == "exit" || e.How == "quick":
		out = fmt.Sprintf("; exit status %d", e.Status)
	case e.How == "signal":
		out = "; killed"
	case e.How == "exec":
		out = "; became a program that is not recorded"
	default:
		out = "; ended: " + trace.Clean(e.How)
	}
	if s.Recovered {
		out += ", its tail recovered"
	}
	return out
}

func modes(m *trace.Meta, s *summary.Summary) string {
	out := ""
	if m.Options.Serial {
		out += ", serial"
	}
	if s.Preempted > 0 {
		out += fmt.Sprintf(" but for %s (threads that ran or slept for long between two calls)", plural(int(s.Preempted), "pre-emption"))
	}
	if m.Options.Chaos != nil {
		out += fmt.Sprintf(", chaos of seed %d", *m.Options.Chaos)
	}
	if m.Options.Stacks > 0 {
		out += fmt.Sprintf(", %d stacks a second and thread", m.Options.Stacks)
		if m.Options.CPU {
			out += " and as many by CPU time"
		}
	}
	if m.Options.Flight > 0 {
		out += ", flight recorder of " + bytesText(m.Options.Flight)
	}
	return out
}

func extras(s *summary.Summary) string {
	out := ""
	if s.Signals > 0 {
		out += ", " + plural(int(s.Signals), "signal") + " delivered"
	}
	if s.Marks > 0 {
		out += ", " + plural(int(s.Marks), "mark")
	}
	if s.PeakPages > 0 {
		out += ", at most " + grouped(s.PeakPages) + " pages resident"
	}
	return out
}

func packedSize(t *trace.Trace) string {
	if !t.Packed {
		return ""
	}
	st, err := os.Stat(t.Path)
	if err != nil {
		return ""
	}
	return "; packed " + bytesText(st.Size())
}

func waitsText(w io.Writer, st style, s *summary.Summary, top int) {
	if len(s.Waits) == 0 {
		return
	}
	fmt.Fprintf(w, "%swaits      %14s %10s %14s  object%s\n", st.on, "total", "times", "longest", st.off)
	for i := range s.Waits {
		if i == top {
			fmt.Fprintf(w, "           and %d other objects\n", len(s.Waits)-i)
			break
		}
		x := &s.Waits[i]
		taken := ""
		if x.Seq > 0 {
			taken = fmt.Sprintf(", taken %s times", grouped(x.Seq))
		}
		at := ""
		if site := siteOf(x); site != "" {
			at = " at " + site
		}
		fmt.Fprintf(w, "           %14s %10s %14s  %s%s; longest in %s%s\n", nsText(x.NS), grouped(x.Times), nsText(x.MaxNS), objectName(x), taken, x.Call, at)
	}
}

func share(seen, all uint64) string {
	if all == 0 {
		return "none counted"
	}
	return fmt.Sprintf("%.1f%% of %s", 100*float64(seen)/float64(all), bytesText(int64(all)))
}

func coverText(_ io.Writer, line func(string, string, ...any), s *summary.Summary) {
	c := &s.Cover
	cpu := "none counted"
	if c.CPUNS > 0 {
		cpu = fmt.Sprintf("%.1f%% of %s", 100*float64(c.CPUSeen)/float64(c.CPUNS), nsText(int64(c.CPUNS)))
	}
	line("explained", "read %s, written %s, CPU %s", share(c.ReadSeen, c.ReadBytes), share(c.WriteSeen, c.WriteBytes), cpu)
	if c.NoExit > 0 {
		line("", "%s ended without telling the kernel's counts, and are not in these shares", plural(c.NoExit, "process"))
	}
}

func keptText(line func(string, string, ...any), s *summary.Summary, m *trace.Meta) {
	var n, not int
	var size uint64
	for _, k := range s.Kept {
		if k.How == cabi.KeptClone || k.How == cabi.KeptCopy {
			n++
			size += k.Size
		} else {
			not++
		}
	}
	if n+not == 0 {
		return
	}
	line("kept", "%s changed by the run, %s as before it", plural(n, "file"), bytesText(int64(size)))
	if not > 0 {
		line("not kept", "%s (more than %s, or unreadable)", plural(not, "file"), bytesText(m.Options.KeepMax))
	}
}

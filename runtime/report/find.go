package report

import (
	"fmt"
	"strings"

	"prophet/cabi"
	"prophet/runtime/trace"
	"prophet/runtime/words"
)

// groupWords says what threads were doing in a group's time.
var groupWords = [groups]string{
	Compute:  "between calls (computing, or ready and waiting for a CPU)",
	Disks:    "in calls on files",
	Network:  "in calls on the network",
	Pipes:    "in calls on pipes and terminals",
	Locks:    "waiting for locks",
	Waiting:  "waiting for something to happen (conditions, readiness, other threads and processes)",
	Sleeping: "sleeping",
	Others:   "in other calls",
}

// find says in plain words what weighs most.
func (c *collector) find(r *Report) {
	say := func(format string, a ...any) { r.Findings = append(r.Findings, fmt.Sprintf(format, a...)) }
	t := &r.Totals
	if t.ThreadNS <= 0 || t.Events == 0 {
		say("The trace has no events.")
		return
	}
	part := func(ns int64) string { return fmt.Sprintf("%.0f%%", 100*float64(ns)/float64(t.ThreadNS)) }
	first, second := -1, -1
	for g := range r.Groups {
		switch ns := r.Groups[g].NS; {
		case first < 0 || ns > r.Groups[first].NS:
			first, second = g, first
		case second < 0 || ns > r.Groups[second].NS:
			second = g
		}
	}
	text := fmt.Sprintf("Of the time that its %s lived, %s was spent %s", words.Plural(t.Threads, "thread"), part(r.Groups[first].NS), groupWords[first])
	if ns := r.Groups[second].NS; ns*50 > t.ThreadNS {
		text += fmt.Sprintf(", and %s %s", part(ns), groupWords[second])
	}
	say("%s.", text)
	if t.CPUNS > 0 && r.Run.NS > 0 && (r.Run.CPUs <= 0 || t.CPUNS <= r.Run.NS*int64(r.Run.CPUs)) {
		say("It used %s of CPU time in %s: %.2f CPUs on average%s.", words.Duration(t.CPUNS), words.Duration(r.Run.NS), float64(t.CPUNS)/float64(r.Run.NS), of(r.Run.CPUs))
	}
	c.findLock(r, say)
	if ns := r.Groups[Disks].NS; ns*50 > r.Run.NS {
		say("Files took %s; %s.", words.Duration(ns), fileWords(r, ns))
	}
	if ns := r.Groups[Network].NS; ns*50 > r.Run.NS && len(r.Conns) > 0 {
		say("The network took %s; %s.", words.Duration(ns), connWords(r.Conns, ns))
	}
	for i := range r.Calls {
		if x := &r.Calls[i]; x.Failed*2 > x.N && x.N >= 100 && x.Group != Waiting.String() {
			say("%s of %s calls of %s failed.", words.Grouped(x.Failed), words.Grouped(x.N), x.Call)
			break
		}
	}
}

func (c *collector) findLock(r *Report, say func(string, ...any)) {
	for i := range r.Locks {
		l := &r.Locks[i]
		if l.Kind == "cond" || l.Kind == "barrier" || l.Kind == "sem" || l.Kind == "semset" || l.NS*50 < r.Run.NS {
			continue
		}
		holder := ""
		if len(l.Causes) > 0 {
			much := "mostly"
			if l.Causes[0].NS*2 <= l.NS {
				much = "longest"
			}
			holder = fmt.Sprintf("; they waited %s for %s to be done with it", much, l.Causes[0].Thread)
		}
		say("The lock that threads waited for most is %s: %s in %s, %s at worst%s.", l.Name, words.Duration(l.NS), words.Plural(l.Waits, "wait"), words.Duration(l.MaxNS), holder)
		return
	}
}

func of(cpus int) string {
	if cpus <= 0 {
		return ""
	}
	return fmt.Sprintf(" of the machine's %d", cpus)
}

// most is how much of a time a part of it is.
func most(part, all int64) string {
	if part*2 > all {
		return "most of it"
	}
	return "the longest of it"
}

// fileWords says what files took their time: the file that did, or the call where it was many files, or calls that open none.
func fileWords(r *Report, all int64) string {
	var call *Call
	for i := range r.Calls {
		if c := &r.Calls[i]; c.Group == Disks.String() && (call == nil || c.NS > call.NS) {
			call = c
		}
	}
	if len(r.Files) > 0 && (call == nil || r.Files[0].NS*2 > all || call.NS < r.Files[0].NS) {
		f := &r.Files[0]
		sync := ""
		if f.SyncNS*2 > f.NS {
			sync = fmt.Sprintf(", most of it in %s", words.Plural(f.Syncs, "sync"))
		}
		return fmt.Sprintf("%s “%s”: %s in %s%s", most(f.NS, all), f.Name, words.Duration(f.NS), words.Plural(f.Calls, "call"), sync)
	}
	if call == nil {
		return "on which is not known"
	}
	return fmt.Sprintf("%s in calls of %s: %s in %s", most(call.NS, all), call.Call, words.Duration(call.NS), words.Plural(call.N, "call"))
}

func connWords(list []File, all int64) string {
	for i := range list {
		if f := &list[i]; f.Kind == "socket" {
			return fmt.Sprintf("%s connections “%s”: %s received, %s sent", most(f.NS, all), f.Name, words.Bytes(int64(f.Read)), words.Bytes(int64(f.Written)))
		}
	}
	return "none of it on a connection that is known"
}

// warn says in plain words what the trace does not know.
func (c *collector) warn(r *Report) {
	say := func(format string, a ...any) { r.Warnings = append(r.Warnings, fmt.Sprintf(format, a...)) }
	s := c.sum
	if r.Damaged > 0 {
		say("The trace is damaged in %s; what could be read is shown.", words.Plural(r.Damaged, "place"))
	}
	if c.o.Live {
		say("The run is still going on; it is shown as far as it is.")
	}
	if x := c.t.Meta.Scrubbed; x != nil && len(x.Removed) > 0 {
		say("Before it was shared, these were taken out of the trace: %s. Names in their place tell what is the same, not what it was.", clean(strings.Join(x.Removed, ", ")))
	}
	if s.Recovered {
		say("Processes were killed before they could write all of their events; the rest was recovered from memory.")
	}
	if !r.Run.Calibrate {
		say("The rate of the clock is not known: times are in ticks of it, taken as nanoseconds.")
	}
	if l := c.t.Meta.Options.Level; l != "" && l != "full" {
		say("Only part was recorded (level %s): calls of other classes do not show.", clean(l))
	}
	if c.t.Meta.Options.Flight > 0 {
		say("A flight recorder kept only the last part of the run.")
	}
	for _, k := range r.Coverage {
		if k.All < 1<<16 || float64(k.Seen) >= 0.9*float64(k.All) {
			continue
		}
		share := 100 * float64(k.Seen) / float64(k.All)
		switch k.What {
		case "cpu":
			say("The events explain %.0f%% of the CPU time that the kernel counted; the rest ran where nothing is recorded.", share)
		default:
			say("The events explain %.0f%% of the bytes %s that the kernel counted; the rest passed no call that is recorded.", share, k.What)
		}
	}
	if c.open > 0 {
		say("%s had not ended when their process did: the calls they were in, or what they computed, are not in any number.", words.Plural(c.open, "thread"))
	}
	if n := s.Cover.NoExit; n > 0 {
		say("%s ended without telling the kernel's counts.", words.Plural(n, "process"))
	}
	for _, l := range s.Lost {
		say("Lost: %s (%s times).", lostWords(l.What), words.Grouped(l.N))
	}
	for i, u := range s.Unseen {
		if i == 8 {
			say("And %s more kinds of things were met that cannot be seen.", words.Grouped(len(s.Unseen)-i))
			break
		}
		say("Met, but not seen into: %s (%s times).", u.What, words.Grouped(u.N))
	}
	if s.Preempted > 0 {
		say("The run was not one thread at a time in %s: threads ran or slept for long between two calls.", words.Plural(s.Preempted, "place"))
	}
	if s.Unknown > 0 {
		say("%s of a newer Prophet are counted, but not understood.", words.Plural(s.Unknown, "event"))
	}
}

func lostWords(what string) string {
	switch what {
	case trace.LostWhy(cabi.LostWrite):
		return "parts of the trace that could not be written"
	case trace.LostWhy(cabi.LostRing):
		return "memory for a thread's last events, which a kill would lose"
	case trace.LostWhy(cabi.LostThread):
		return "threads that could not be recorded"
	case trace.LostWhy(cabi.LostSignal):
		return "signals"
	}
	return what
}

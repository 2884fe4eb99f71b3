package replay

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// causes names what may have caused a difference, the likeliest first, each with the fact that speaks for it.
func (s *State) causes(t *trace.Trace, o *Outside, d *Difference, th *trace.Thread, a *at, sv *survey) []Cause {
	var c []Cause
	add := func(cause, format string, args ...any) {
		if len(c) < 8 {
			c = append(c, Cause{cause, clip(trace.Clean(fmt.Sprintf(format, args...)))})
		}
	}
	if d.What == "trace" || len(t.Damage) > 0 {
		why := "it does not parse at this event"
		if len(t.Damage) > 0 {
			why = t.Damage[0].Error()
		}
		add("the trace is damaged", "%s", why)
	}
	byFile := namesCause(t, d, th, a, add) || s.fileCause(t, o, d, th, a, add)
	programCause(t, o, th, add)
	was := t.Meta.Command
	switch {
	case len(o.Args) == 0 || len(was) == 0 || slices.Equal(o.Args, was):
	case slices.Equal(o.Args[1:], was[1:]):
		add("another program", "%q was started, the trace is of %q", o.Args[0], was[0])
	default:
		add("other arguments", "the program was started as %s, the trace is of %s", words(o.Args), words(was))
	}
	environmentCause(t, o, add)
	other := len(c) > 0 // the program was given something else
	if l := t.Meta.Options.Level; l != "" && l != "full" {
		add("not all was recorded", "the run was recorded at level %s: inputs of other classes are those of now", l)
	}
	unseenCause(t, sv, add)
	if s.Head.Pids > 0 {
		add("process ids differ", "%d ids could not be had again and are translated: a program that computes with them differs", s.Head.Pids)
	}
	if s.Head.Signals > 0 && !byFile {
		add("a signal came elsewhere", "%d signals that came between two calls in the recording came right before the second, %d where they had", s.Head.Signals, s.Head.Placed)
	}
	if !other {
		n := len(c)
		s.guardCause(t, d, th, a, add)
		if len(c) == n && !byFile && d.What == "data" && a.found && a.rec.Row != nil && a.rec.Row.Writes {
			add("memory that was never set, or the time stamp counter", "nothing but bytes that are written differs, and no other thread or process can have changed them: some were never set, or come from what no call shows")
		}
	}
	if t.Meta.Start != nil && !t.Meta.Start.SameAddresses() && !byFile {
		add("other addresses", "the run was recorded with random addresses: a program that compares or hashes them differs")
	}
	if len(c) == 0 {
		add("not known", "all that was compared before is the same; see what thread %s does before its event %d with data that is in no event", d.Thread, d.Event)
	}
	return c
}

// namesCause says whether another thread of the run makes, removes or renames what a call names.
func namesCause(t *trace.Trace, d *Difference, th *trace.Thread, a *at, add func(string, string, ...any)) bool {
	if th == nil || d.What != "result" || !a.found || a.rec.Row == nil || a.rec.Row.Class != cabi.Disk || len(a.paths) == 0 || t.Meta.Options.Serial {
		return false
	}
	base, by := filepath.Base(a.paths[0]), ""
	t.WalkOnly(cabi.SetOf(cabi.Disk), 1, func(of *trace.Thread) trace.Visit {
		return func(r *trace.Record) error {
			if by != "" || of == th || r.Tag != trace.TagEvent || r.Row == nil || r.Ret < 0 || !changesNames(r) {
				return nil
			}
			for _, f := range r.Fields {
				if (f.Kind == trace.FieldPath || f.Kind == trace.FieldStr) && filepath.Base(string(f.Text)) == base {
					by = fmt.Sprintf("%s in thread %s", r.Row.Name, of.Name)
				}
			}
			return nil
		}
	})
	if by == "" {
		return false
	}
	add("a name that the run changes", "%s changes what %q is, and which of such calls came first is not recorded; recorded under --serial the run re-executes identically", by, a.paths[0])
	return true
}

// changesNames reports whether a call makes, removes or renames files.
func changesNames(r *trace.Record) bool {
	const create = 0o100
	name := strings.TrimLeft(r.Row.Name, "_")
	if strings.HasPrefix(name, "open") {
		return r.F[0]&create != 0
	}
	return slices.ContainsFunc([]string{"unlink", "rename", "link", "symlink", "mkdir", "rmdir", "remove", "creat", "mknod", "mkfifo", "fopen", "freopen"},
		func(p string) bool { return strings.HasPrefix(name, p) })
}

// fileCause says whether a file has another content, or is not there.
func (s *State) fileCause(t *trace.Trace, o *Outside, d *Difference, th *trace.Thread, a *at, add func(string, string, ...any)) bool {
	if th == nil || !a.found || a.rec.Row == nil || a.rec.Row.Class != cabi.Disk || a.rec.Row.Writes {
		return false
	}
	if d.What != "data" && d.What != "result" {
		return false
	}
	f := fileOf(t, th, a)
	if f == nil || strings.HasPrefix(f.path, "/proc/") || strings.HasPrefix(f.path, "/dev/") {
		return false
	}
	why := f.path
	if o.Stat != nil {
		size, mtime, ok := o.Stat(f.path)
		began := t.Meta.StartNS
		stamp := func(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05.000000 UTC") }
		switch {
		case !ok:
			why += " is not there now"
		case f.size >= 0 && size != f.size:
			why += fmt.Sprintf(" had %d bytes and has %d now, changed %s", f.size, size, stamp(mtime))
		case f.mtime != 0 && mtime != f.mtime:
			why += fmt.Sprintf(" has the same size, but was changed since: %s, recorded %s", stamp(mtime), stamp(f.mtime))
		case f.size < 0 && began != 0 && mtime > began:
			why += fmt.Sprintf(" was changed %s, after the recording began", stamp(mtime))
		default:
			why += " reads otherwise, though its size and time do not tell of a change"
		}
	}
	if d.What == "data" {
		why += "; its content differs from the recorded hash"
	}
	add("an input file changed", "%s", why)
	return true
}

// programCause compares what was mapped with what lies there now.
func programCause(t *trace.Trace, o *Outside, th *trace.Thread, add func(string, string, ...any)) {
	if o.BuildID == nil {
		return
	}
	seen := map[string]bool{}
	procs := t.Procs
	if th != nil {
		procs = append([]*trace.Proc{th.Proc}, t.Procs...)
	}
	for _, p := range procs {
		for _, m := range p.Modules() {
			if seen[m.Path] || len(m.BuildID) == 0 || !filepath.IsAbs(m.Path) || filepath.Base(m.Path) == "libprophet.so" {
				continue
			}
			seen[m.Path] = true
			if len(seen) > 256 {
				return
			}
			now := o.BuildID(m.Path)
			if !bytes.Equal(now, m.BuildID) {
				if now == nil {
					add("another program", "%s was recorded with build id %x; it has none now", m.Path, m.BuildID)
				} else {
					add("another program", "%s was recorded with build id %x, now it has %x", m.Path, m.BuildID, now)
				}
			}
		}
	}
}

func words(args []string) string {
	var q []string
	for _, a := range args {
		q = append(q, fmt.Sprintf("%q", a))
	}
	return strings.Join(q, " ")
}

// environmentCause compares variables. Traces of early versions have their names alone.
func environmentCause(t *trace.Trace, o *Outside, add func(string, string, ...any)) {
	if o.Env == nil {
		return
	}
	ours := func(name string) bool {
		return strings.HasPrefix(name, "PROPHET_") || name == "LD_PRELOAD" || name == "_" || name == "OLDPWD" || name == "PWD" || name == "SHLVL"
	}
	was, is := map[string]string{}, map[string]string{}
	values := true
	for _, e := range t.Meta.Env {
		k, v, ok := strings.Cut(e, "=")
		values = values && ok
		was[k] = v
	}
	var differ []string
	for _, e := range o.Env {
		k, v, _ := strings.Cut(e, "=")
		is[k] = v
		if w, ok := was[k]; !ours(k) && (!ok || values && w != v) {
			differ = append(differ, k)
		}
	}
	for k := range was {
		if _, ok := is[k]; !ok && !ours(k) {
			differ = append(differ, k)
		}
	}
	if len(differ) == 0 {
		return
	}
	slices.Sort(differ)
	more := ""
	if len(differ) > 8 {
		more = fmt.Sprintf(" and %d more", len(differ)-8)
		differ = differ[:8]
	}
	add("another environment", "these variables differ: %s%s", strings.Join(differ, ", "), more)
}

// unseenCause tells of what no event can tell.
func unseenCause(t *trace.Trace, sv *survey, add func(string, string, ...any)) {
	for _, k := range sv.uncut[:min(len(sv.uncut), 3)] {
		cause := "calls that are not seen"
		if strings.HasPrefix(k, "futex") {
			cause = "an object that is not covered"
		}
		add(cause, "the trace tells of %s (%d)", k, sv.unseen[k])
	}
	c := t.Meta.Cover
	if c == nil {
		return
	}
	const loader = 64 << 10 // what starting a program reads by itself, at most
	if c.NoExit == 0 && c.ReadSeen+loader*uint64(len(t.Procs)) < c.ReadBytes {
		add("calls that are not seen", "the events explain %d of %d bytes that the kernel has counted as read", c.ReadSeen, c.ReadBytes)
	}
}

// guardCause tells whether threads or processes can have shared data without an order.
func (s *State) guardCause(t *trace.Trace, d *Difference, th *trace.Thread, a *at, add func(string, string, ...any)) {
	if th == nil || d.What == "trace" || d.What == "signal" {
		return
	}
	if t.Meta.Options.Serial && (t.Meta.Totals == nil || t.Meta.Totals.Preempted == 0) {
		return
	}
	threads, shared := 0, ""
	for _, x := range t.Threads {
		if x.Proc == th.Proc {
			threads++
		}
	}
	if threads < 2 {
		shared = sharedMemory(t)
		if shared == "" {
			return
		}
	}
	kept := "each lock was taken in its recorded order up to here"
	if d.What == WhatStall || d.What == WhatSpin {
		kept = "the order of all locks was kept"
	}
	if threads < 2 {
		add("unguarded data", "%s, and processes of the run share memory (%s): what they read there without a lock has no recorded order; recorded under --serial the run re-executes identically", kept, shared)
		return
	}
	what := "does something else"
	switch d.What {
	case "data", "field", "text":
		what = "passes other values"
	case "result":
		what = "gets another result"
	case WhatStall:
		what = "cannot go on"
	case WhatSpin:
		what = "waits for memory to change"
	}
	add("unguarded data", "%s, and yet thread %s, one of %d of its process, %s: it may have read what another thread writes without a lock; recorded under --serial the run re-executes identically", kept, d.Thread, threads, what)
}

// sharedMemory names a call by which processes came to share memory; "" when there is more than none.
func sharedMemory(t *trace.Trace) string {
	if len(t.Procs) < 2 {
		return ""
	}
	found := ""
	t.Walk(1, func(*trace.Thread) trace.Visit {
		return func(r *trace.Record) error {
			if found != "" || r.Tag != trace.TagEvent || r.Row == nil {
				return nil
			}
			const mapShared = 1
			switch r.Row.Name {
			case "mmap", "mmap64":
				if r.F[2]&3 == mapShared && r.F[1]&2 != 0 {
					found = r.Row.Name + " with MAP_SHARED"
				}
			case "shmat":
				if r.Ret >= 0 {
					found = r.Row.Name
				}
			}
			return nil
		}
	}, nil)
	return found
}

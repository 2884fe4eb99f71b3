package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"prophet/cabi"
	"prophet/runtime/term"
	"prophet/runtime/trace"
)

func dumpCmd() *cobra.Command {
	var asJSON bool
	var threads, classes, calls []string
	var from, to string
	c := &cobra.Command{
		Use:   "dump TRACE",
		Short: "Print a trace event by event",
		Long: `Prints all records of all threads in the order of their time, one a line:

  seconds since the start  thread  #event  call(object, arguments) = result seq N <seconds inside> notes @call site

An object is named by the thread that saw it first and its number there; seq is the event's place in the object's order.
Filters add up. Threads are named as they are printed, or by their number, a process (p0.1) stands for its main thread.

Exit status: 0; 1 when parts of the trace are damaged (the rest is printed); 2 on wrong usage.`,
		Example: "  prophet dump app.prophet --class sync --thread p0/1 --from 1.5 --to 1.6\n  prophet dump app.prophet --call read,write --json",
		Args:    args(1, "one trace"),
		RunE: func(_ *cobra.Command, a []string) error {
			t, _, err := open(a[0])
			if err != nil {
				return err
			}
			defer t.Close()
			o := trace.DumpOptions{JSON: asJSON}
			if err := filters(t, &o, threads, classes, calls, from, to); err != nil {
				return err
			}
			return dump(t, o)
		},
	}
	f := c.Flags()
	f.BoolVar(&asJSON, "json", false, "print a JSON object a line")
	f.StringSliceVar(&threads, "thread", nil, "only these threads (p0/1, or the number)")
	f.StringSliceVar(&classes, "class", nil, "only events of these classes ("+strings.Join(classNames(), ", ")+")")
	f.StringSliceVar(&calls, "call", nil, "only these calls")
	f.StringVar(&from, "from", "", "only from this time on: seconds (1.5) or with a unit (250ms)")
	f.StringVar(&to, "to", "", "only up to this time")
	return c
}

func classNames() []string {
	var all []string
	for c := range cabi.Class(cabi.Classes) {
		all = append(all, c.String())
	}
	return all
}

func filters(t *trace.Trace, o *trace.DumpOptions, threads, classes, calls []string, from, to string) error {
	for _, name := range threads {
		th := t.ThreadByName(name)
		if th == nil {
			for _, x := range t.Threads {
				if fmt.Sprint(x.UID) == name {
					th = x
				}
			}
		}
		if th == nil {
			return usage("there is no thread %s; this trace has %s", name, someThreads(t))
		}
		o.Threads = append(o.Threads, th)
	}
	for _, name := range classes {
		c, ok := cabi.ClassByName(name)
		if !ok {
			return usage("there is no class %s; classes are %s", name, strings.Join(classNames(), ", "))
		}
		o.Classes |= 1 << c
	}
	for _, name := range calls {
		i := slices.IndexFunc(cabi.Calls, func(c cabi.Call) bool { return c.Name == name })
		if i < 0 {
			return usage("there is no call %s; `prophet calls` lists them", name)
		}
		if o.Calls == nil {
			o.Calls = map[uint16]bool{}
		}
		for _, c := range cabi.Calls { // versions of a symbol share a name
			if c.Name == name {
				o.Calls[c.ID] = true
			}
		}
	}
	for _, x := range []struct {
		s  string
		to *uint64
	}{{from, &o.From}, {to, &o.To}} {
		if x.s == "" {
			continue
		}
		ns, err := parseTime(x.s)
		if err != nil {
			return usage("%v", err)
		}
		*x.to = t.Clock.Ticks(ns)
	}
	return nil
}

func someThreads(t *trace.Trace) string {
	var names []string
	for i, th := range t.Threads {
		if i == 10 {
			names = append(names, fmt.Sprintf("and %d more", len(t.Threads)-i))
			break
		}
		names = append(names, th.Name)
	}
	return strings.Join(names, ", ")
}

func dump(t *trace.Trace, o trace.DumpOptions) error {
	damaged := slices.Clone(t.Damage)
	n := len(damaged)
	o.Damage = func(err error) {
		if n++; len(damaged) < 100 {
			damaged = append(damaged, err)
		}
	}
	if !term.IsTerminal(os.Stdout) { // progress between printed lines helps nobody
		p := term.NewProgress("printing")
		defer p.Done()
		last := t.LastBase()
		o.Tick = func(at uint64) { p.Set(int64(at-min(at, t.Clock.Ticks0)), int64(last-min(last, t.Clock.Ticks0))) }
	}
	w := bufio.NewWriterSize(os.Stdout, 1<<20)
	if err := t.Dump(w, o); err != nil {
		if errors.Is(err, syscall.EPIPE) {
			return nil // whoever read has seen enough
		}
		return err
	}
	if n > 0 {
		sayDamage(damaged, n)
		return &status{exitDamaged, nil}
	}
	return nil
}

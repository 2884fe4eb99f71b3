package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"prophet/runtime/profile"
	"prophet/runtime/term"
	"prophet/runtime/trace"
)

// profiled is what profileOf has read, for a second format of the same command.
var profiled struct {
	of    *trace.Trace
	p     *profile.Profile
	names *profile.Names
}

func profileOf(t *trace.Trace) (*profile.Profile, *profile.Names, *exported, error) {
	if profiled.of == t {
		return profiled.p, profiled.names, leftOf(profiled.p, profiled.names), nil
	}
	bar := term.NewProgress("reading " + t.Path)
	p, err := profile.Of(t, runtime.GOMAXPROCS(0), bar.Set)
	bar.Done()
	if err != nil {
		return nil, nil, nil, err
	}
	bar = term.NewProgress("finding names")
	names := p.Names(bar.Set)
	bar.Done()
	profiled.of, profiled.p, profiled.names = t, p, names
	return p, names, leftOf(p, names), nil
}

// leftOf is what a profile left out.
func leftOf(p *profile.Profile, names *profile.Names) *exported {
	e := &exported{damage: p.Damage, damaged: p.Damaged, notes: slices.Clone(p.Notes)}
	e.unnamed(names)
	if p.Stacks == 0 {
		e.notes = append(e.notes, "no stacks were taken in this run: all is by call site")
	}
	return e
}

// foldedWaits writes chains of waits.
func foldedWaits(t *trace.Trace, out string) (*exported, error) {
	bar := term.NewProgress("reading " + t.Path)
	w, err := profile.WaitsOf(t, bar.Set)
	bar.Done()
	if err != nil {
		return nil, err
	}
	bar = term.NewProgress("finding names")
	names := w.Names(bar.Set)
	bar.Done()
	e := &exported{damage: w.Damage, damaged: w.Damaged, notes: w.Notes}
	e.unnamed(names)
	return e, toFile(out, false, func(f io.Writer) error { return w.Folded(f, names) })
}

// unnamed notes which modules have no names, and why.
func (e *exported) unnamed(names *profile.Names) {
	for i, n := range names.Notes() {
		if i == 5 {
			e.notes = append(e.notes, fmt.Sprintf("and the names of %d other modules are missing", len(names.Notes())-i))
			break
		}
		e.notes = append(e.notes, n)
	}
}

func pprofFormat() *exportFormat {
	return &exportFormat{flag: "pprof", what: "FILE", help: "write where time went, by stack, as pprof's profile.proto (gzip)",
		write: func(t *trace.Trace, out string) (*exported, error) {
			p, names, e, err := profileOf(t)
			if err != nil {
				return nil, err
			}
			pp, err := p.Pprof(names)
			if err != nil {
				return nil, err
			}
			return e, toFile(out, true, func(w io.Writer) error { return pp.Write(w) })
		}}
}

func foldedFormat() *exportFormat {
	var names []string
	var chains bool
	return &exportFormat{flag: "folded", what: "FILE", help: "write where time went, by stack, as flamegraph.pl reads it, in ns",
		more: func(f *pflag.FlagSet) {
			f.StringSliceVar(&names, "type", nil, "with --folded: only time of these types ("+strings.Join(profile.TypeNames(), ", ")+"; default all but lock_hold, which overlaps)")
			f.BoolVar(&chains, "wait-for", false, "with --folded: waits for locks, conditions and the like alone, each with the stack of who held what it waits for")
		},
		write: func(t *trace.Trace, out string) (*exported, error) {
			if chains {
				if names != nil {
					return nil, usage("--type does not go with --wait-for")
				}
				return foldedWaits(t, out)
			}
			types := []profile.Type{profile.CPU, profile.LockWait, profile.Disk, profile.Network, profile.Sleep}
			if names != nil {
				types = nil
			}
			for _, n := range names {
				ty, ok := profile.TypeByName(n)
				if !ok {
					return nil, usage("there is no type %s; types are %s", n, strings.Join(profile.TypeNames(), ", "))
				}
				if !slices.Contains(types, ty) {
					types = append(types, ty)
				}
			}
			p, n, e, err := profileOf(t)
			if err != nil {
				return nil, err
			}
			return e, toFile(out, false, func(w io.Writer) error { return p.Folded(w, n, types...) })
		}}
}

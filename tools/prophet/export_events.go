package main

import (
	"io"
	"strings"

	"github.com/spf13/pflag"

	"prophet/cabi"
	"prophet/runtime/pass"
	"prophet/runtime/perfetto"
	"prophet/runtime/term"
	"prophet/runtime/trace"
)

// selection is which events the formats of events are given, as dump's flags say it.
type selection struct {
	threads, classes []string
	from, to         string
}

func (s *selection) flags(f *pflag.FlagSet) {
	f.StringSliceVar(&s.threads, "thread", nil, "of events, only those of these threads (p0/1, or the number)")
	f.StringSliceVar(&s.classes, "class", nil, "of events, only those of these classes ("+strings.Join(classNames(), ", ")+")")
	f.StringVar(&s.from, "from", "", "of events, only those from this time on: seconds (1.5) or with a unit (250ms)")
	f.StringVar(&s.to, "to", "", "of events, only those up to this time")
}

// selecting is an export of events: read passes over the trace.
func (s *selection) selecting(t *trace.Trace, what string, read func(o pass.Options) (*pass.Result, error)) (*exported, error) {
	var d trace.DumpOptions
	if err := filters(t, &d, s.threads, s.classes, nil, s.from, s.to); err != nil {
		return nil, err
	}
	o := pass.Options{Selection: pass.Selection{Threads: d.Threads, Classes: cabi.ClassSet(d.Classes), From: d.From, To: d.To}}
	bar := term.NewProgress(what)
	defer bar.Done()
	last := t.LastBase()
	o.Tick = func(at uint64) { bar.Set(int64(at-min(at, t.Clock.Ticks0)), int64(last-min(last, t.Clock.Ticks0))) }
	res, err := read(o)
	if err != nil {
		return nil, err
	}
	return &exported{damage: res.Damage, damaged: res.Damaged, notes: res.Notes()}, nil
}

func perfettoFormat(s *selection) *exportFormat {
	return &exportFormat{flag: "perfetto", what: "FILE", selects: true,
		help: "write events, what let which go on, and counters as Perfetto's TrackEvent protobuf (ui.perfetto.dev)",
		write: func(t *trace.Trace, out string) (*exported, error) {
			return s.selecting(t, "exporting to Perfetto", func(o pass.Options) (res *pass.Result, err error) {
				err = toFile(out, true, func(w io.Writer) error {
					res, err = perfetto.Write(w, t, o)
					return err
				})
				if err == nil && t.Mono0() == 0 {
					res.Say("the trace has no reading of clocks: times count from the start of the run")
				}
				return res, err
			})
		}}
}

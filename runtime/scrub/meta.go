package scrub

import (
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	"prophet/cabi"
	"prophet/runtime/trace"
)

var (
	numbered = regexp.MustCompile(`^[0-9]+(\.[0-9]+)*`)
	levels   = regexp.MustCompile(`^(off|order|full|0x[0-9a-f]{1,8})$`)
)

// release is what stays of a kernel's release: its numbers.
func release(k *Keep, s string) string {
	if k.all[Hosts] {
		return s
	}
	return numbered.FindString(s)
}

// one keeps a word that is one of these.
func one(s string, of ...string) string {
	if slices.Contains(of, s) {
		return s
	}
	return ""
}

func arch(s string) string { return one(s, "x86_64", "aarch64") }

func (t *tokens) hostWhole(s string) string {
	if t.keep.all[Hosts] {
		return s
	}
	return ""
}

// meta makes meta.json of the scrubbed trace. It names each thing that stays, so that what a later version adds does
// not stay by itself.
func (t *tokens) meta(m *trace.Meta) *trace.Meta {
	out := &trace.Meta{
		Format: m.Format, Prophet: cabi.Version, State: trace.StateComplete, Run: hex.EncodeToString(t.sum('r', []byte(m.Run))[:8]),
		Command: t.args(m.Command), Exe: t.path(m.Exe), Cwd: t.path(m.Cwd), Env: t.environ(m.Env),
		StartNS: m.StartNS, TicksHz: m.TicksHz,
		Machine: trace.Machine{
			Sysname: one(m.Machine.Sysname, "Linux"), Release: release(t.keep, m.Machine.Release), Version: t.hostWhole(m.Machine.Version), Arch: arch(m.Machine.Arch),
			Nodename: t.host(m.Machine.Nodename), BootID: t.hostWhole(m.Machine.BootID),
			CPUs: m.Machine.CPUs, MemoryBytes: m.Machine.MemoryBytes, PageSize: m.Machine.PageSize,
		},
		Options: trace.Options{
			Inputs: one(m.Options.Inputs, "none", "hash", "full", "default"), Level: levels.FindString(m.Options.Level),
			Serial: m.Options.Serial, Chaos: m.Options.Chaos, Flight: m.Options.Flight, KeepMax: m.Options.KeepMax,
			Stacks: m.Options.Stacks, CPU: m.Options.CPU,
		},
		Scrubbed: &trace.Scrubbed{Removed: t.keep.removed()},
	}
	if s := m.Start; s != nil {
		out.Start = &trace.Start{EnvCut: s.EnvCut, UID: s.UID, GID: s.GID, Umask: s.Umask, Nice: s.Nice, Personality: s.Personality, Ignored: s.Ignored, Limits: slices.Clone(s.Limits)}
	}
	if e := m.Ended; e != nil {
		out.Ended = &trace.Ended{How: one(e.How, "exit", "quick", "abort", "exec", "signal", "unknown"), Status: e.Status, Signal: signal(e.Signal),
			TimedOut: e.TimedOut, At: e.At, Recovered: e.Recovered}
	}
	if i := m.Issued; i != nil { // Upto is for who re-executes it
		out.Issued = &trace.Issued{Run: hex.EncodeToString(t.sum('r', []byte(i.Run))[:8]), Target: t.hostWhole(i.Target), Cut: i.Cut, Scale: i.Scale}
	}
	if m.Scrubbed != nil { // what was gone stays gone
		all, _ := KindNames()
		for _, s := range m.Scrubbed.Removed {
			if s = one(s, all...); s != "" && !slices.Contains(out.Scrubbed.Removed, s) {
				out.Scrubbed.Removed = append(out.Scrubbed.Removed, s)
			}
		}
	}
	return out
}

// signal keeps the name of a signal.
func signal(s string) string {
	for n := range uint64(65) {
		if s == trace.SignalName(n) {
			return s
		}
	}
	return ""
}

// args are the words of a command line; the first names the program.
func (t *tokens) args(list []string) []string {
	out := make([]string, 0, len(list))
	for i, s := range list {
		if i == 0 && !t.keep.text(Arguments, s) {
			s = t.path(s)
		} else {
			s = t.text(Arguments, s)
		}
		out = append(out, s)
	}
	return out
}

func (t *tokens) environ(list []string) []string {
	out := []string{}
	for _, s := range list {
		name, _, _ := strings.Cut(s, "=")
		kept := t.keep.environ(name)
		t.count(Arguments, kept)
		if kept {
			out = append(out, s)
		}
	}
	return out
}

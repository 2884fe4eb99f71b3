package profile

import (
	"cmp"
	"encoding/hex"
	"slices"

	pprof "github.com/google/pprof/profile"

	"prophet/runtime/trace"
)

// pprofMaker turns samples into the tables of pprof.
type pprofMaker struct {
	names *Names
	out   *pprof.Profile
	maps  map[mapKey]*pprof.Mapping
	locs  map[locKey]*pprof.Location
	funcs map[funcKey]*pprof.Function
	next  uint64 // where modules go whose own place is taken
}

type mapKey struct{ path, id string }

type locKey struct {
	m    *pprof.Mapping
	at   uint64
	name string // of calls, and of addresses outside of all modules
}

type funcKey struct{ name, linker, file string }

// Pprof is the profile in the format of pprof: a value a type and count, the labels process and thread, and stack where no
// stack was taken or frames are missing.
func (p *Profile) Pprof(n *Names) (*pprof.Profile, error) {
	k := &pprofMaker{names: n, out: &pprof.Profile{}, maps: map[mapKey]*pprof.Mapping{}, locs: map[locKey]*pprof.Location{}, funcs: map[funcKey]*pprof.Function{}, next: 1 << 60}
	for t := range Types {
		k.out.SampleType = append(k.out.SampleType, &pprof.ValueType{Type: t.String(), Unit: "nanoseconds"})
	}
	for _, c := range countNames {
		k.out.SampleType = append(k.out.SampleType, &pprof.ValueType{Type: c, Unit: "count"})
	}
	k.out.DefaultSampleType = CPU.String()
	k.out.TimeNanos = p.Trace.Meta.StartNS
	if e := p.Trace.Meta.Ended; e != nil {
		k.out.DurationNanos = e.At
	}
	k.out.Comments = p.comments()
	for i := range p.Samples {
		k.sample(&p.Samples[i])
	}
	return k.out, k.out.CheckValid()
}

func (p *Profile) comments() []string {
	c := []string{"recorded by prophet: " + trace.Clean(p.Trace.Path)}
	if p.Stacks == 0 {
		c = append(c, "no stacks were taken: all is by call site")
	}
	for _, n := range p.Notes {
		c = append(c, "left out: "+n)
	}
	return c
}

// sample writes what the program itself spent at a stack, and what the call at its end did.
func (k *pprofMaker) sample(s *Sample) {
	if s.Stack.Call == 0 {
		k.half(s, &s.Values, false)
		return
	}
	own, rest := s.split()
	if own != (Values{}) {
		k.half(s, &own, false)
	}
	if rest != (Values{}) {
		k.half(s, &rest, true)
	}
}

// split tells what the program spent before Call, but for events, from what was spent in it.
func (s *Sample) split() (own, rest Values) {
	rest = s.Values
	own.NS[CPU], rest.NS[CPU] = s.NS[CPU], 0
	return own, rest
}

func (k *pprofMaker) half(s *Sample, v *Values, call bool) {
	o := &pprof.Sample{Label: map[string][]string{"process": {clean(s.Stack.Proc.Name)}, "thread": {threadName(s)}}}
	for _, v := range v.NS {
		o.Value = append(o.Value, v)
	}
	for _, v := range v.N {
		o.Value = append(o.Value, v)
	}
	switch {
	case s.Stack.Site:
		o.Label["stack"] = []string{"call site alone"}
	case s.Stack.Bits != 0:
		o.Label["stack"] = []string{"frames are missing"}
	}
	if call {
		o.Location = append(o.Location, k.call(s.Stack.Call))
	}
	for i := range s.Stack.PCs {
		o.Location = append(o.Location, k.location(s.Stack, i))
	}
	k.out.Sample = append(k.out.Sample, o)
}

// call is the place of an intercepted call: its function, in no module.
func (k *pprofMaker) call(id uint16) *pprof.Location {
	name := trace.CallName(uint64(id))
	key := locKey{name: name}
	l := k.locs[key]
	if l == nil {
		l = k.newLocation(key)
		l.Line = []pprof.Line{{Function: k.function(name, name, "")}}
	}
	return l
}

func (k *pprofMaker) newLocation(key locKey) *pprof.Location {
	l := &pprof.Location{ID: uint64(len(k.out.Location)) + 1, Mapping: key.m, Address: key.at}
	k.locs[key] = l
	k.out.Location = append(k.out.Location, l)
	return l
}

func (k *pprofMaker) location(s *Stack, i int) *pprof.Location {
	pc := s.inside(i)
	key := locKey{at: pc}
	if m := s.Proc.Module(s.PCs[i]); m != nil {
		key.m = k.mapping(m)
		key.at = key.m.Start + pc - m.Low
	}
	frames := k.names.Frame(s, i)
	if key.m == nil {
		key.name = frames[0].Func
	}
	l := k.locs[key]
	if l != nil {
		return l
	}
	l = k.newLocation(key)
	for _, f := range frames {
		l.Line = append(l.Line, pprof.Line{Function: k.function(trace.Clean(f.Func), f.Linker, trace.Clean(f.File)), Line: int64(f.Line)})
	}
	return l
}

func (k *pprofMaker) function(name, linker, file string) *pprof.Function {
	key := funcKey{name, linker, file}
	f := k.funcs[key]
	if f == nil {
		f = &pprof.Function{ID: uint64(len(k.out.Function)) + 1, Name: name, SystemName: cmp.Or(trace.Clean(linker), name), Filename: file}
		k.funcs[key] = f
		k.out.Function = append(k.out.Function, f)
	}
	return f
}

// mapping is where a module lies: where the first process had it, or elsewhere when another module is there.
func (k *pprofMaker) mapping(m *trace.Module) *pprof.Mapping {
	key := mapKey{m.Path, string(m.BuildID)}
	o := k.maps[key]
	if o != nil {
		return o
	}
	at := m.Low
	taken := slices.ContainsFunc(k.out.Mapping, func(x *pprof.Mapping) bool { return at < x.Limit && x.Start < at+m.Size })
	if taken || at+m.Size < at || at+m.Size > 1<<60 {
		at = k.next
		k.next += m.Size + 1<<20
	}
	o = &pprof.Mapping{ID: uint64(len(k.out.Mapping)) + 1, Start: at, Limit: at + m.Size, File: trace.Clean(m.Path), BuildID: hex.EncodeToString(m.BuildID),
		HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true}
	k.maps[key] = o
	k.out.Mapping = append(k.out.Mapping, o)
	return o
}

package profile

import (
	"fmt"
	"path"

	"prophet/runtime/symbols"
	"prophet/runtime/trace"
)

// Names gives stacks the names of functions.
type Names struct {
	table *symbols.Table
	cache map[nameKey][]symbols.Frame
}

type nameKey struct {
	proc *trace.Proc
	pc   uint64
}

// Names reads the files of the modules that the samples' stacks lie in. It is for one goroutine. prog, when not nil, is told how
// many modules are done.
func (p *Profile) Names(prog trace.Progress) *Names {
	all := make([]*Stack, len(p.Samples))
	for i := range p.Samples {
		all[i] = p.Samples[i].Stack
	}
	return namesOf(all, prog)
}

func namesOf(all []*Stack, prog trace.Progress) *Names {
	n := &Names{table: symbols.New(), cache: map[nameKey][]symbols.Frame{}}
	seen := map[*Stack]bool{nil: true}
	for _, s := range all {
		n.want(seen, s)
	}
	n.table.Resolve(prog)
	return n
}

func (n *Names) want(seen map[*Stack]bool, s *Stack) {
	if seen[s] {
		return
	}
	seen[s] = true
	for i, pc := range s.PCs {
		if m := s.Proc.Module(pc); m != nil {
			n.table.Want(module(m), s.inside(i)-m.Bias)
		}
	}
}

// Notes says which modules' files could not be read, and why.
func (n *Names) Notes() []string { return n.table.Notes() }

func module(m *trace.Module) symbols.Module {
	return symbols.Module{Path: m.Path, BuildID: string(m.BuildID)}
}

// inside is an address in the instruction that frame i stands at: the one before a return address, as which the trace has
// other places, too.
func (s *Stack) inside(i int) uint64 {
	return s.PCs[i] - 1
}

// Frame is the functions at frame i of a stack, inlined ones first; where no file tells, one whose name is module+offset.
func (n *Names) Frame(s *Stack, i int) []symbols.Frame {
	k := nameKey{s.Proc, s.inside(i)}
	if f, ok := n.cache[k]; ok {
		return f
	}
	var f []symbols.Frame
	m := s.Proc.Module(s.PCs[i])
	if m != nil {
		f = n.table.At(module(m), k.pc-m.Bias)
	}
	if len(f) == 0 {
		name := fmt.Sprintf("0x%x", s.PCs[i])
		if m != nil {
			name = fmt.Sprintf("%s+0x%x", path.Base(m.Path), s.PCs[i]-m.Bias)
		}
		f = []symbols.Frame{{Func: name}}
	}
	n.cache[k] = f
	return f
}

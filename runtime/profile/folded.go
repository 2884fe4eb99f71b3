package profile

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"prophet/runtime/trace"
)

// frameText is the functions of a stack, outermost first, as folded stacks have them.
func (n *Names) frameText(s *Stack) []string {
	var out []string
	if s.Bits != 0 {
		out = append(out, "[frames are missing]")
	} else if s.Site {
		out = append(out, "[call site alone]")
	}
	for i := len(s.PCs) - 1; i >= 0; i-- {
		f := n.Frame(s, i)
		for k := len(f) - 1; k >= 0; k-- {
			out = append(out, clean(f[k].Func))
		}
	}
	return out
}

// clean is a name without what would end a frame or a line.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == ';' {
			return ':'
		}
		return r
	}, trace.Clean(s))
}

// Folded writes the ns of these types as flamegraph.pl reads them: frames from the outermost on, joined by semicolons, a
// space, a number. A stack begins with its process and thread; of several types it ends with the type.
func (p *Profile) Folded(w io.Writer, n *Names, types ...Type) error {
	lines := map[string]int64{}
	for i := range p.Samples {
		s := &p.Samples[i]
		frames := append([]string{threadName(s)}, n.frameText(s.Stack)...)
		own := strings.Join(frames, ";")
		for _, t := range types {
			if s.NS[t] <= 0 {
				continue
			}
			text := own
			if t != CPU && s.Stack.Call != 0 {
				text += ";" + trace.CallName(uint64(s.Stack.Call))
			}
			if len(types) > 1 {
				lines[text+";["+t.String()+"]"] += s.NS[t]
			} else {
				lines[text] += s.NS[t]
			}
		}
	}
	return writeFolded(w, lines)
}

func threadName(s *Sample) string {
	if s.Thread == nil {
		return clean(s.Stack.Proc.Name) + " (several threads)"
	}
	return clean(s.Thread.Name)
}

func writeFolded(w io.Writer, lines map[string]int64) error {
	b := bufio.NewWriter(w)
	keys := make([]string, 0, len(lines))
	for k := range lines {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(x, y string) int { return cmp.Compare(x, y) })
	for _, k := range keys {
		fmt.Fprintf(b, "%s %d\n", k, lines[k])
	}
	return b.Flush()
}

package symbols

import (
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// lines finds functions, inlined ones too, files and lines in what was made for debuggers. It returns why it could not.
func (f *files) lines(addrs []uint64, w map[uint64][]Frame) (why string) {
	e := f.debug
	if e == nil || e.Section(".debug_info") == nil && e.Section(".zdebug_info") == nil {
		e = f.self
	}
	if e == nil || e.Section(".debug_info") == nil && e.Section(".zdebug_info") == nil {
		return ""
	}
	var all uint64
	for _, s := range e.Sections {
		if strings.HasPrefix(s.Name, ".debug_") || strings.HasPrefix(s.Name, ".zdebug_") {
			all += max(s.Size, s.FileSize)
		}
	}
	if all > dwarfMax {
		return fmt.Sprintf("its debugging information is too large to be read (%d MiB); there are no lines", all>>20)
	}
	defer func() { // debug/dwarf does not promise to stand any bytes
		if r := recover(); r != nil {
			why = fmt.Sprintf("its debugging information is damaged: %v", r)
		}
	}()
	d, err := e.DWARF()
	if err != nil {
		return "its debugging information cannot be read: " + err.Error()
	}
	x := &finder{d: d, order: e.ByteOrder, names: map[dwarf.Offset]string{}, want: w}
	if err := x.units(e, addrs); err != nil {
		return "its debugging information is damaged: " + err.Error()
	}
	return ""
}

// finder looks addresses up in one file's DWARF.
type finder struct {
	d     *dwarf.Data
	order binary.ByteOrder
	names map[dwarf.Offset]string // linker's or plain names of functions, by where they are told
	want  map[uint64][]Frame
}

// units goes over the compilation units and into those that have wanted addresses.
func (x *finder) units(e *elf.File, addrs []uint64) error {
	offs, err := unitOffsets(e)
	if err != nil {
		return err
	}
	r := x.d.Reader()
	for _, off := range offs {
		r.Seek(off)
		cu, err := r.Next()
		if err != nil {
			return err
		}
		if cu == nil || cu.Tag != dwarf.TagCompileUnit {
			continue
		}
		ranges, err := x.d.Ranges(cu)
		if err != nil {
			continue
		}
		if in := within(addrs, ranges); len(in) > 0 {
			if err := x.unit(r, cu, in); err != nil {
				return err
			}
		}
	}
	return nil
}

// unitOffsets are the offsets of the first entry of each unit: its header's length tells the next one.
func unitOffsets(e *elf.File) ([]dwarf.Offset, error) {
	s := e.Section(".debug_info")
	if s == nil {
		s = e.Section(".zdebug_info")
	}
	b, err := s.Data()
	if err != nil {
		return nil, err
	}
	var offs []dwarf.Offset
	order := e.ByteOrder
	for at := uint64(0); at+12 <= uint64(len(b)); {
		size, head, word := uint64(order.Uint32(b[at:])), uint64(4), uint64(4)
		if size == 0xffffffff {
			if at+24 > uint64(len(b)) {
				break
			}
			size, head, word = order.Uint64(b[at+4:]), 12, 8
		}
		next := at + head + size
		if next <= at || next > uint64(len(b)) || at+head+2 > uint64(len(b)) {
			break
		}
		entry := at + head + 2 + word + 1 // version, abbreviations, size of an address
		if v := order.Uint16(b[at+head:]); v >= 5 {
			entry = at + head + 2 + 1 + 1 + word
			switch b[at+head+2] {
			case 1, 3: // compile, partial
			case 4, 5: // skeleton, split
				entry += 8
			default:
				at = next
				continue
			}
		}
		offs = append(offs, dwarf.Offset(entry))
		at = next
	}
	return offs, nil
}

// within are the addresses that lie in the ranges.
func within(addrs []uint64, ranges [][2]uint64) []uint64 {
	var in []uint64
	for _, r := range ranges {
		i, _ := slices.BinarySearch(addrs, r[0])
		for ; i < len(addrs) && addrs[i] < r[1]; i++ {
			in = append(in, addrs[i])
		}
	}
	slices.Sort(in)
	return slices.Compact(in)
}

// call is an inlined function at an address, or the one that holds them all.
type call struct {
	name   string
	inline bool
	file   int // of the line that it was called from
	line   int
}

// unit finds the addresses of one unit.
func (x *finder) unit(r *dwarf.Reader, cu *dwarf.Entry, addrs []uint64) error {
	lr, err := x.d.LineReader(cu)
	if err != nil {
		lr = nil
	}
	calls := map[uint64][]call{}
	if err := x.walk(r, addrs, calls); err != nil {
		return err
	}
	at := rows(lr, addrs)
	var files []*dwarf.LineFile
	if lr != nil {
		files = lr.Files()
	}
	for _, a := range addrs {
		list := calls[a]
		if len(list) == 0 {
			continue // code without functions, as of assembly
		}
		var out []Frame
		file, line := at[a].file, at[a].line
		for i := len(list) - 1; i >= 0; i-- {
			c := list[i]
			out = append(out, Frame{Func: Name(c.name), Linker: c.name, File: file, Line: line, Inline: c.inline})
			file, line = "", c.line
			if c.file > 0 && c.file < len(files) && files[c.file] != nil {
				file = files[c.file].Name
			}
		}
		x.want[a] = out
	}
	return nil
}

// maxDeep bounds how far into scopes a walk goes.
const maxDeep = 256

// walk goes over the entries of the unit that r is in and notes, outermost first, the functions that hold each address.
func (x *finder) walk(r *dwarf.Reader, addrs []uint64, calls map[uint64][]call) error {
	type scope struct{ in []uint64 }
	stack := []scope{{addrs}}
	for len(stack) > 0 {
		e, err := r.Next()
		if err != nil {
			return err
		}
		if e == nil || e.Tag == dwarf.TagCompileUnit {
			return nil
		}
		if e.Tag == 0 {
			stack = stack[:len(stack)-1]
			continue
		}
		in := stack[len(stack)-1].in
		switch e.Tag {
		case dwarf.TagSubprogram, dwarf.TagInlinedSubroutine:
			ranges, err := x.d.Ranges(e)
			if err != nil || len(ranges) == 0 {
				in = nil // told once, and placed elsewhere
				break
			}
			if in = within(in, ranges); len(in) == 0 {
				break
			}
			c := call{name: x.name(e, 0), inline: e.Tag == dwarf.TagInlinedSubroutine}
			if c.inline {
				f, _ := e.Val(dwarf.AttrCallFile).(int64)
				l, _ := e.Val(dwarf.AttrCallLine).(int64)
				c.file, c.line = int(f), int(l)
			}
			if c.name == "" {
				break
			}
			for _, a := range in {
				switch list := calls[a]; {
				case len(list) == 0 || c.inline && len(list) < maxDeep:
					calls[a] = append(list, c)
				case !c.inline && len(list) == 1 && better(c.name, list[0].name): // of assembly: names of one place
					list[0] = c
				}
			}
		}
		if !e.Children {
			continue
		}
		if len(in) == 0 || len(stack) >= maxDeep {
			r.SkipChildren()
			continue
		}
		stack = append(stack, scope{in})
	}
	return nil
}

// name is a function's, told here or where its declaration or the original of an inlined copy is. The linker's is
// preferred, as it has the scope and the types.
func (x *finder) name(e *dwarf.Entry, depth int) string {
	for _, a := range []dwarf.Attr{dwarf.AttrLinkageName, 0x2007} { // the second: before DWARF 4
		if s, ok := e.Val(a).(string); ok && s != "" {
			return s
		}
	}
	for _, a := range []dwarf.Attr{dwarf.AttrAbstractOrigin, dwarf.AttrSpecification} {
		off, ok := e.Val(a).(dwarf.Offset)
		if !ok || depth > 8 {
			continue
		}
		if s, ok := x.names[off]; ok {
			return s
		}
		r := x.d.Reader()
		r.Seek(off)
		o, err := r.Next()
		if err != nil || o == nil {
			continue
		}
		s := x.name(o, depth+1)
		if len(x.names) < 1<<20 {
			x.names[off] = s
		}
		return s
	}
	s, _ := e.Val(dwarf.AttrName).(string)
	return s
}

// row is the line of an address.
type row struct {
	file string
	line int
}

// rows runs the line table once and finds the line of each address.
func rows(lr *dwarf.LineReader, addrs []uint64) map[uint64]row {
	out := map[uint64]row{}
	if lr == nil {
		return out
	}
	var e, last dwarf.LineEntry
	open := false
	for {
		if err := lr.Next(&e); err != nil {
			return out // at the end, or at damage: what came before holds
		}
		if open && e.Address > last.Address && last.File != nil {
			i, _ := slices.BinarySearch(addrs, last.Address)
			for ; i < len(addrs) && addrs[i] < e.Address; i++ {
				if last.Line > 0 {
					out[addrs[i]] = row{last.File.Name, last.Line}
				}
			}
		}
		open = !e.EndSequence
		last = e
	}
}

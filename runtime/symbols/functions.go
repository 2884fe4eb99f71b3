package symbols

import (
	"cmp"
	"debug/elf"
	"debug/gosym"
	"slices"
	"strings"
)

// symbol is a function's place.
type symbol struct {
	at, size uint64
	name     string
}

// functions names what has no lines yet: by the symbols of the files, and Go's own table where these were stripped. Where
// what was made for debuggers has a plain name and the linker one with its scope, that is taken.
func (f *files) functions(addrs []uint64, w map[uint64][]Frame) {
	all := f.symbols()
	for _, a := range addrs {
		s := find(all, a)
		switch fr := w[a]; {
		case s == nil:
		case len(fr) == 0:
			w[a] = []Frame{{Func: Name(s.name), Linker: s.name}}
		case mangled(s.name) && !mangled(fr[len(fr)-1].Linker):
			fr[len(fr)-1].Func, fr[len(fr)-1].Linker = Name(s.name), s.name
		}
	}
	f.goLines(addrs, w, all)
}

func mangled(s string) bool { return strings.HasPrefix(s, "_Z") || strings.HasPrefix(s, "_R") }

// symbols are the functions of all symbol tables, by address.
func (f *files) symbols() []symbol {
	var all []symbol
	take := func(list []elf.Symbol, err error) {
		if err != nil {
			return
		}
		for i := range list {
			s := &list[i]
			if k := elf.ST_TYPE(s.Info); (k == elf.STT_FUNC || k == elf.STT_GNU_IFUNC || k == elf.STT_NOTYPE && s.Size > 0) && s.Section != elf.SHN_UNDEF && s.Name != "" {
				all = append(all, symbol{s.Value, s.Size, s.Name})
			}
		}
	}
	for _, e := range []*elf.File{f.debug, f.self} {
		if e != nil && smallTables(e) {
			take(e.Symbols())
			take(e.DynamicSymbols())
		}
	}
	slices.SortStableFunc(all, func(a, b symbol) int { return cmp.Compare(a.at, b.at) })
	return all
}

// smallTables reports whether the symbol tables are of a size that can be read at once.
func smallTables(e *elf.File) bool {
	for _, s := range e.Sections {
		if (s.Type == elf.SHT_SYMTAB || s.Type == elf.SHT_DYNSYM || s.Type == elf.SHT_STRTAB) && (s.Size > sectionMax || s.FileSize > sectionMax) {
			return false
		}
	}
	return true
}

// find is the function that an address lies in. Of several names for one place the first counts that is not one of the
// compiler's or the loader's own.
func find(all []symbol, addr uint64) *symbol {
	i, _ := slices.BinarySearchFunc(all, addr+1, func(s symbol, a uint64) int { return cmp.Compare(s.at, a) })
	var best *symbol
	for k := i - 1; k >= 0 && k >= i-32; k-- {
		s := &all[k]
		if addr-s.at >= max(s.size, 1) {
			if s.at != addr && best != nil && s.at < best.at {
				break
			}
			continue
		}
		if best != nil && s.at < best.at {
			break
		}
		if best == nil || better(s.name, best.name) {
			best = s
		}
	}
	return best
}

// better reports whether people know a function by name x rather than y.
func better(x, y string) bool {
	under := func(s string) (n int) {
		for n < len(s) && s[n] == '_' {
			n++
		}
		return n
	}
	return cmp.Or(cmp.Compare(under(x), under(y)), cmp.Compare(len(x), len(y)), cmp.Compare(x, y)) < 0
}

// goLines names what is Go's from the table that a Go program has for itself.
func (f *files) goLines(addrs []uint64, w map[uint64][]Frame, all []symbol) {
	if f.self == nil {
		return
	}
	tab, text := f.self.Section(".gopclntab"), f.self.Section(".text")
	if tab == nil || text == nil || tab.Size > sectionMax || tab.FileSize > sectionMax {
		return
	}
	start := f.goText(tab, all)
	if start == 0 {
		return
	}
	var table *gosym.Table
	for _, a := range addrs {
		if fr := w[a]; len(fr) > 0 && fr[0].Line > 0 || a < start || a-text.Addr >= text.Size {
			continue
		}
		if table == nil {
			if table = goTable(tab, start); table == nil {
				return
			}
		}
		if file, line, fn := table.PCToLine(a); fn != nil {
			w[a] = []Frame{{Func: Name(fn.Name), Linker: fn.Name, File: file, Line: line}}
		}
	}
}

// goText is where Go's own code begins, which its table counts from: C's may lie before it. 0: nothing tells.
func (f *files) goText(tab *elf.Section, all []symbol) uint64 {
	for i := range all {
		if all[i].name == "runtime.text" {
			return all[i].at
		}
	}
	var b [8]byte
	if _, err := tab.ReadAt(b[:], 24); err == nil { // in the table's head, up to Go 1.25
		if at := f.self.ByteOrder.Uint64(b[:]); at != 0 {
			return at
		}
	}
	text := f.self.Section(".text")
	if mod := f.self.Section(".go.module"); mod != nil { // moduledata.text, where the linker has filled it in
		if _, err := mod.ReadAt(b[:], 176); err == nil {
			if at := f.self.ByteOrder.Uint64(b[:]); at >= text.Addr && at-text.Addr < text.Size {
				return at
			}
		}
	}
	if f.self.Section(".interp") == nil {
		return text.Addr // Go's alone
	}
	return 0
}

func goTable(s *elf.Section, text uint64) (t *gosym.Table) {
	defer func() { // the package does not promise to stand any bytes
		if recover() != nil {
			t = nil
		}
	}()
	b, err := s.Data()
	if err != nil {
		return nil
	}
	t, err = gosym.NewTable(nil, gosym.NewLineTable(b, text))
	if err != nil {
		return nil
	}
	return t
}

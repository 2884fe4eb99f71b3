package symbols

import (
	"cmp"
	"debug/elf"
	"slices"
	"strings"
	"sync"

	"github.com/ianlancetaylor/demangle"
)

// Module names a file that was mapped for execution, as the trace does.
type Module struct {
	Path    string
	BuildID string // bytes; "" when the file has none
}

// Frame is one function at an address; inlined ones come before those that they are part of.
type Frame struct {
	Func   string // for people
	Linker string // as the linker knows it; "" when it is inlined and nobody says
	File   string
	Line   int
	Inline bool
}

// Table finds names. Ask for all addresses with Want first, as each module's files are read once.
type Table struct {
	mu    sync.Mutex
	wants map[Module]map[uint64][]Frame
	notes map[Module]string
}

// New makes an empty table.
func New() *Table { return &Table{wants: map[Module]map[uint64][]Frame{}, notes: map[Module]string{}} }

// Want asks for an address of a module, relative to where its file says that it is.
func (t *Table) Want(m Module, addr uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.wants[m]
	if w == nil {
		w = map[uint64][]Frame{}
		t.wants[m] = w
	}
	if _, ok := w[addr]; !ok {
		w[addr] = nil
	}
}

// At is what is known of an address: nothing when no file tells.
func (t *Table) At(m Module, addr uint64) []Frame { return t.wants[m][addr] }

// Resolve reads the files of the modules that addresses are wanted of, one after the other.
func (t *Table) Resolve() {
	for m, w := range t.wants {
		if err := resolve(m, w); err != nil {
			t.notes[m] = err.Error()
		}
	}
}

type symbol struct {
	at, size uint64
	name     string
}

func resolve(m Module, w map[uint64][]Frame) error {
	f, err := elf.Open(m.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	var all []symbol
	for _, read := range []func() ([]elf.Symbol, error){f.Symbols, f.DynamicSymbols} {
		list, err := read()
		if err != nil {
			continue
		}
		for i := range list {
			if s := &list[i]; elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Section != elf.SHN_UNDEF {
				all = append(all, symbol{s.Value, s.Size, s.Name})
			}
		}
	}
	slices.SortFunc(all, func(a, b symbol) int { return cmp.Compare(a.at, b.at) })
	for addr := range w {
		i, found := slices.BinarySearchFunc(all, addr, func(s symbol, a uint64) int { return cmp.Compare(s.at, a) })
		if !found {
			i--
		}
		if i >= 0 && addr-all[i].at < max(all[i].size, 1) {
			w[addr] = []Frame{{Func: Name(all[i].name), Linker: all[i].name}}
		}
	}
	return nil
}

// Name is a linker's name for people.
func Name(s string) string {
	if strings.HasPrefix(s, "_") {
		return demangle.Filter(s, demangle.NoClones)
	}
	return s
}

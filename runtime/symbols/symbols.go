package symbols

import (
	"cmp"
	"maps"
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
	Linker string // as the linker knows it; "" when nobody says
	File   string // "" when nobody says
	Line   int
	Inline bool
}

// Table finds names. Ask for all addresses with Want first, then Resolve, then read with At. Want may be called from several
// goroutines; nothing else may at the same time.
type Table struct {
	Dirs []string // where separate files are looked for; those of Debian, unless set

	mu    sync.Mutex
	wants map[Module]map[uint64][]Frame
	notes []string
}

// New makes an empty table.
func New() *Table {
	return &Table{Dirs: []string{"/usr/lib/debug"}, wants: map[Module]map[uint64][]Frame{}}
}

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

// Notes says what could not be read, module by module.
func (t *Table) Notes() []string { return t.notes }

// Resolve reads the files of the modules that addresses are wanted of, one after the other, and keeps nothing of them but
// the answers. prog, when not nil, is told how many of the modules are done.
func (t *Table) Resolve(prog func(done, all int64)) {
	mods := slices.SortedFunc(maps.Keys(t.wants), func(a, b Module) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.BuildID, b.BuildID))
	})
	for i, m := range mods {
		if prog != nil {
			prog(int64(i), int64(len(mods)))
		}
		if why := t.resolve(m, t.wants[m]); why != "" {
			t.notes = append(t.notes, m.Path+": "+why)
		}
	}
}

func (t *Table) resolve(m Module, w map[uint64][]Frame) string {
	addrs := slices.Sorted(maps.Keys(w))
	f, err := t.open(m)
	if err != nil {
		return err.Error()
	}
	defer f.close()
	why := f.lines(addrs, w)
	f.functions(addrs, w)
	return why
}

// Name is a linker's name for people: C++ and Rust names are taken apart, what compilers add to names of copies goes.
func Name(s string) string {
	const longest = 4096 // what is longer is no name
	if len(s) > longest {
		s = s[:longest]
	}
	if strings.HasPrefix(s, "_") || strings.HasPrefix(s, "$") {
		return demangle.Filter(s, demangle.NoClones, demangle.MaxLength(12))
	}
	if i := strings.IndexByte(s, '.'); i > 0 {
		for _, clone := range []string{".isra.", ".part.", ".constprop.", ".cold", ".lto_priv."} {
			if strings.HasPrefix(s[i:], clone) {
				return s[:i]
			}
		}
	}
	return strings.TrimPrefix(strings.TrimSuffix(s, ".abi0"), "__GI_") // of Go: the same function, called from assembly; of the C library: called from within
}

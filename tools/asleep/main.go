// Command asleep finishes libprophet.so after the linker: what only the Go runtime needs at its start is taken out of
// what the dynamic linker does at every exec, and left for shim_wake_go (shim/boot.c).
//
//	asleep IN MAP OUT
//
// MAP is the linker's map of IN, which says where go.o went. Go's relocations (4,400 of 4,500) go to the end of .rela.dyn,
// behind DT_RELASZ; Go's entry in .init_array gives its slot to the last one, which is cut off by DT_INIT_ARRAYSZ; where both
// are is written into struct asleep of the library, which carries a magic number. No section moves.
package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: asleep IN MAP OUT")
		os.Exit(2)
	}
	if err := finish(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "asleep:", err)
		os.Exit(1)
	}
}

// piece is where the linker put one section of go.o.
type piece struct {
	name      string
	low, high uint64
}

// pieces reads them from a map, where a long name has a line of its own.
func pieces(file string) ([]piece, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []piece
	name := ""
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		w := strings.Fields(lines.Text())
		if len(w) == 1 && strings.HasPrefix(lines.Text(), " .") {
			name = w[0]
			continue
		}
		if len(w) == 3 && name != "" {
			w = append([]string{name}, w...)
		}
		name = ""
		if len(w) != 4 || path.Base(w[3]) != "go.o" {
			continue
		}
		at, e1 := strconv.ParseUint(w[1], 0, 64)
		size, e2 := strconv.ParseUint(w[2], 0, 64)
		if e1 == nil && e2 == nil && at != 0 && size != 0 && !strings.HasPrefix(w[0], ".tbss") { // which takes no addresses
			all = append(all, piece{w[0], at, at + size})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if all == nil {
		return nil, fmt.Errorf("%s does not tell of go.o", file)
	}
	return all, nil
}

// magic is at the start of struct asleep: the two words of shim/boot.c.
var magic = []byte("prophet: Go is asleep\x00\x00\x00")

const relaSize = 24

type image struct {
	b    []byte
	elf  *elf.File
	dyn  map[elf.DynTag]uint64 // file offset of the value
	rela uint32                // the type of a relative relocation
}

// offset is where in the file an address is.
func (m *image) offset(addr uint64) (uint64, error) {
	for _, p := range m.elf.Progs {
		if p.Type == elf.PT_LOAD && addr >= p.Vaddr && addr < p.Vaddr+p.Filesz {
			return addr - p.Vaddr + p.Off, nil
		}
	}
	return 0, fmt.Errorf("address %#x is not in the file", addr)
}

func (m *image) word(off uint64) uint64   { return binary.LittleEndian.Uint64(m.b[off:]) }
func (m *image) put(off uint64, v uint64) { binary.LittleEndian.PutUint64(m.b[off:], v) }

func load(file string) (*image, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	m := &image{b: b, dyn: map[elf.DynTag]uint64{}}
	if m.elf, err = elf.NewFile(bytes.NewReader(b)); err != nil {
		return nil, err
	}
	switch m.elf.Machine {
	case elf.EM_X86_64:
		m.rela = uint32(elf.R_X86_64_RELATIVE)
	case elf.EM_AARCH64:
		m.rela = uint32(elf.R_AARCH64_RELATIVE)
	default:
		return nil, fmt.Errorf("machine %v is not known", m.elf.Machine)
	}
	d := m.elf.SectionByType(elf.SHT_DYNAMIC)
	if d == nil {
		return nil, fmt.Errorf("%s has no dynamic section", file)
	}
	for o := d.Offset; o+16 <= d.Offset+d.Size; o += 16 {
		m.dyn[elf.DynTag(m.word(o))] = o + 8
	}
	for _, t := range []elf.DynTag{elf.DT_RELA, elf.DT_RELASZ, elf.DT_RELACOUNT, elf.DT_INIT_ARRAY, elf.DT_INIT_ARRAYSZ} {
		if m.dyn[t] == 0 {
			return nil, fmt.Errorf("%s has no %v", file, t)
		}
	}
	return m, nil
}

func finish(in, mapFile, out string) error {
	m, err := load(in)
	if err != nil {
		return err
	}
	gos, err := pieces(mapFile)
	if err != nil {
		return err
	}
	table := m.word(m.dyn[elf.DT_RELA])
	size := m.word(m.dyn[elf.DT_RELASZ])
	from, err := m.offset(table)
	if err != nil {
		return err
	}
	last := m.word(m.dyn[elf.DT_INIT_ARRAY]) + m.word(m.dyn[elf.DT_INIT_ARRAYSZ]) - 8
	var early, rest, late []byte
	var entryAt, lastAt int // in early, of the relocations that fill the slots of Go's entry and of the last one
	entry := uint64(0)
	for o := from; o < from+size; o += relaSize {
		r := m.b[o : o+relaSize]
		if uint32(m.word(o+8)) != m.rela {
			rest = append(rest, r...)
			continue
		}
		where := ""
		for _, p := range gos {
			if at := m.word(o); at >= p.low && at < p.high {
				where = p.name
			}
		}
		if m.word(o) == last {
			lastAt = len(early)
		}
		switch {
		case strings.HasPrefix(where, ".init_array"):
			entry, entryAt = m.word(o+16), len(early)
			early = append(early, r...)
		case where == "":
			early = append(early, r...)
		default:
			late = append(late, r...)
		}
	}
	at := bytes.Index(m.b, magic)
	switch {
	case entry == 0:
		return fmt.Errorf("go's entry is not in .init_array")
	case len(late) == 0:
		return fmt.Errorf("no relocation of Go's was found")
	case at < 0 || bytes.Contains(m.b[at+1:], magic):
		return fmt.Errorf("struct asleep is not in the library, or more than once")
	}
	copy(early[entryAt+16:entryAt+24], early[lastAt+16:lastAt+24]) // who was last takes Go's slot, and the last is cut off
	copy(m.b[from:], early)
	copy(m.b[from+uint64(len(early)):], rest)
	copy(m.b[from+uint64(len(early)+len(rest)):], late)
	m.put(m.dyn[elf.DT_RELASZ], uint64(len(early)+len(rest)))
	m.put(m.dyn[elf.DT_RELACOUNT], uint64(len(early)/relaSize))
	m.put(m.dyn[elf.DT_INIT_ARRAYSZ], m.word(m.dyn[elf.DT_INIT_ARRAYSZ])-8)
	m.put(uint64(at+len(magic)), table+uint64(len(early)+len(rest)))
	m.put(uint64(at+len(magic)+8), uint64(len(late)/relaSize))
	m.put(uint64(at+len(magic)+16), entry)
	// Programs that are being recorded may have the one before mapped: it must stay as it is.
	if err := write(out+".new", m.b); err != nil {
		return err
	}
	return os.Rename(out+".new", out)
}

// write writes a file in pieces of what the kernel maps at once in any case: it caches a file as it was written, in pieces of up to
// 2 MiB, and maps all of one into each program that touches a page of it.
func write(name string, b []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	for piece := range slices.Chunk(b, 64<<10) {
		if _, err = f.Write(piece); err != nil {
			break
		}
	}
	return errors.Join(err, f.Close())
}

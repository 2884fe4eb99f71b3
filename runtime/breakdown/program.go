package breakdown

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"prophet/cabi"
)

// Program is a compiled program, as far as it matters here.
type Program struct {
	Sum     uint64
	threads []cabi.ProgThread
	procs   []cabi.ProgProc
	objects []cabi.ProgObject
	preds   []cabi.ProgPred
	ops     []op
	whats   []uint32 // what the operations are, once home has been read,
	files   []bool   // and which read or write files
}

// op is a ProgOp without what nobody here asks for.
type op struct {
	obj   uint32
	cpu   uint32
	a, b  int32
	code  uint16
	flags uint8
	want  int8 // its sign
}

const (
	opSize = 40
	opsMax = 1 << 28
)

var errProgram = errors.New("the compiled trace is damaged")

// Load reads a program. Its numbers are checked where they are used.
func Load(r io.ReaderAt, size int64) (*Program, error) {
	var h cabi.Prog
	if err := binary.Read(io.NewSectionReader(r, 0, size), binary.LittleEndian, &h); err != nil {
		return nil, fmt.Errorf("%w: %w", errProgram, err)
	}
	if h.Magic != cabi.ProgMagic || h.Version != cabi.ProgVersion {
		return nil, fmt.Errorf("%w: it is none of this version's", errProgram)
	}
	p := &Program{Sum: h.Sum}
	section := func(at, n, each uint64) (*io.SectionReader, error) {
		if n > opsMax || at > uint64(size) || n > (uint64(size)-at)/each {
			return nil, fmt.Errorf("%w: a table lies outside of it", errProgram)
		}
		return io.NewSectionReader(r, int64(at), int64(n*each)), nil
	}
	table := func(at, n uint64, make func(n uint64) any, each int) error {
		s, err := section(at, n, uint64(each))
		if err != nil {
			return err
		}
		return binary.Read(s, binary.LittleEndian, make(n))
	}
	if err := errors.Join(
		table(h.ThreadsAt, uint64(h.Threads), func(n uint64) any { p.threads = make([]cabi.ProgThread, n); return p.threads }, binary.Size(cabi.ProgThread{})),
		table(h.ProcsAt, uint64(h.Procs), func(n uint64) any { p.procs = make([]cabi.ProgProc, n); return p.procs }, binary.Size(cabi.ProgProc{})),
		table(h.ObjectsAt, uint64(h.Objects), func(n uint64) any { p.objects = make([]cabi.ProgObject, n); return p.objects }, binary.Size(cabi.ProgObject{})),
		table(h.PredsAt, uint64(h.Preds), func(n uint64) any { p.preds = make([]cabi.ProgPred, n); return p.preds }, binary.Size(cabi.ProgPred{})),
	); err != nil {
		return nil, err
	}
	s, err := section(h.OpsAt, h.Ops, opSize)
	if err != nil {
		return nil, err
	}
	for i := range p.threads {
		if p.threads[i].Proc >= h.Procs {
			return nil, fmt.Errorf("%w: a thread of no process", errProgram)
		}
	}
	if h.Procs == 0 || h.Threads == 0 {
		return nil, fmt.Errorf("%w: nothing is in it", errProgram)
	}
	p.ops = make([]op, h.Ops)
	ops := bufio.NewReaderSize(s, 1<<20)
	var b [opSize]byte
	le := binary.LittleEndian
	for i := range p.ops {
		if _, err := io.ReadFull(ops, b[:]); err != nil {
			return nil, fmt.Errorf("%w: %w", errProgram, err)
		}
		p.ops[i] = op{code: le.Uint16(b[:]), flags: b[2], obj: le.Uint32(b[4:]), cpu: le.Uint32(b[8:]), a: clip(le.Uint64(b[16:])), b: clip(le.Uint64(b[24:])),
			want: sign(int64(le.Uint64(b[32:])))}
	}
	return p, nil
}

func clip(v uint64) int32 { return int32(min(max(int64(v), -1<<31), 1<<31-1)) }

func sign(v int64) int8 {
	switch {
	case v < 0:
		return -1
	case v > 0:
		return 1
	}
	return 0
}

// room is how many entries a thread may have, as memory is taken before they come: of none that are said to come is more believed
// than the program can have.
func (p *Program) room(thread int, said uint64) uint64 {
	return min(said, uint64(len(p.ops)), 2*p.threads[thread].Count+1024)
}

// UID is which recorded thread one of the program is.
func (p *Program) UID(thread int) uint32 { return p.threads[thread].UID }

// demanded is how many ns of computing come before an operation that follows another in the log: operations of nothing but
// that are not logged.
func (p *Program) demanded(at uint32, before uint32) uint64 {
	n := uint64(p.ops[at].cpu)
	for i := at; i > 0 && i-1 != before && p.ops[i-1].code == cabi.OpCPU; i-- {
		n += uint64(p.ops[i-1].cpu)
	}
	return n
}

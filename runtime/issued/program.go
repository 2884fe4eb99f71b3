package issued

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"prophet/cabi"
)

// program is what of a compiled program is needed to tell what its log means.
type program struct {
	cabi.Prog
	threads []cabi.ProgThread
	mains   []uint32 // first threads of processes
	codes   []uint16
	flags   []uint16
	cpus    []uint32
	objs    []uint32
	sites   []uint32
	wants   []int64
	regions []int // threads by where their operations lie
}

const opSize = 40

func readProgram(path string) (*program, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	p := &program{}
	size := uint64(st.Size())
	if err := binary.Read(f, binary.LittleEndian, &p.Prog); err != nil || p.Magic != cabi.ProgMagic || p.Version != cabi.ProgVersion {
		return nil, fmt.Errorf("%s is not a compiled trace of this version", path)
	}
	table := func(at, n uint64, each int) (*io.SectionReader, error) {
		if at > size || n > (size-at)/uint64(each) {
			return nil, fmt.Errorf("%s: a table lies outside of it", path)
		}
		return io.NewSectionReader(f, int64(at), int64(n)*int64(each)), nil
	}
	ops, err := table(p.OpsAt, p.Ops, opSize)
	threads, err2 := table(p.ThreadsAt, uint64(p.Threads), binary.Size(cabi.ProgThread{}))
	procs, err3 := table(p.ProcsAt, uint64(p.Procs), binary.Size(cabi.ProgProc{}))
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, err
	}
	p.threads = make([]cabi.ProgThread, p.Threads)
	list := make([]cabi.ProgProc, p.Procs)
	if err := errors.Join(binary.Read(threads, binary.LittleEndian, p.threads), binary.Read(procs, binary.LittleEndian, list)); err != nil {
		return nil, err
	}
	for _, g := range list {
		p.mains = append(p.mains, g.Main)
	}
	n := p.Ops
	p.codes, p.flags, p.cpus, p.objs, p.sites, p.wants = make([]uint16, n), make([]uint16, n), make([]uint32, n), make([]uint32, n), make([]uint32, n), make([]int64, n)
	b := bufio.NewReaderSize(ops, 1<<20)
	var op [opSize]byte
	le := binary.LittleEndian
	for i := range p.codes {
		if _, err := io.ReadFull(b, op[:]); err != nil {
			return nil, err
		}
		p.codes[i], p.flags[i], p.objs[i], p.cpus[i], p.sites[i] = le.Uint16(op[:]), le.Uint16(op[2:]), le.Uint32(op[4:]), le.Uint32(op[8:]), le.Uint32(op[12:])
		p.wants[i] = int64(le.Uint64(op[32:]))
	}
	for i := range p.threads {
		t := &p.threads[i]
		if t.First > n || t.Count > n-t.First {
			return nil, fmt.Errorf("%s: a thread lies outside of it", path)
		}
		p.regions = append(p.regions, i)
	}
	slices.SortFunc(p.regions, func(a, b int) int {
		if p.threads[a].First < p.threads[b].First {
			return -1
		}
		return 1
	})
	return p, nil
}

// region is the thread that an operation belongs to.
func (p *program) region(op uint64) int {
	i, _ := slices.BinarySearchFunc(p.regions, op, func(n int, op uint64) int {
		if t := &p.threads[n]; t.First+t.Count <= op {
			return -1
		}
		return 1
	})
	if i >= len(p.regions) {
		return -1
	}
	return p.regions[i]
}

// run is where a run of operations that are not logged begins, of which op is the end: whoever jumped to op landed there.
func (p *program) run(op uint64) uint64 {
	first := p.threads[p.region(op)].First
	for op > first && p.codes[op-1] == cabi.OpCPU {
		op--
	}
	return op
}

package trace

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"prophet/cabi"
)

// Proc is a process of the run.
type Proc struct {
	Number uint32
	Name   string // the same in the next run: "p0", "p0.1" its second fork, "p0.1+" another program in that
	Parent *Proc
	PID    uint32
	PPID   uint32
	How    uint64 // cabi.ProcRoot …
	Exe    string
	Cwd    string
	Args   []string
	Known  bool // a TagProc record was found

	parentNo  uint32
	parentUID uint32
	nth       uint64
	modules   []Module // sorted by Low; what it inherited comes from Parent
	born      uint64   // ticks of its first chunk
}

// Module is a file that a process had mapped for execution.
type Module struct {
	Low, Size, Bias uint64
	Path            string
	BuildID         []byte
	from            uint64 // ticks it was seen at
}

// Thread is a thread of the run. Its fields do not change after Open.
type Thread struct {
	UID    uint32
	Name   string // of its process, and "/k" for the k-th creation on the way to it; a main thread has the process's
	Proc   *Proc
	TID    uint32
	How    uint64 // cabi.ThreadMain …
	Chunks int
	Bytes  int64  // of records
	First  uint64 // ticks
	Tail   bool   // its last chunk was written by itself when it ended

	parent uint32
	nth    uint64
	known  bool
	loose  bool // its chunks are not numbered one after the other
	chunks []chunkRef
}

func (t *Trace) proc(n uint32) *Proc {
	if p := t.procs[n]; p != nil {
		return p
	}
	p := &Proc{Number: n}
	t.procs[n] = p
	return p
}

// Learn takes what a record says about modules, for those that open did not come by. Not for use while others read modules.
func (t *Trace) Learn(th *Thread, r *Record) {
	if r.Tag == cabi.TagModule {
		t.learn(th, r)
	}
}

// learnModules takes what all of the trace says about modules, once. A module's record may lie behind the first calls of its
// code: another thread came by, or none had looked yet. Nobody else may read modules meanwhile.
func (t *Trace) learnModules() {
	if t.looked {
		return
	}
	t.looked = true
	t.WalkOnly(1<<cabi.Mark, 1, func(th *Thread) Visit { // what it cannot read is told to whoever reads the trace
		return func(r *Record) error {
			t.Learn(th, r)
			return nil
		}
	})
}

// learn takes what a control record says about processes, threads, modules and clocks.
func (t *Trace) learn(th *Thread, r *Record) {
	n := &r.Nums
	switch r.Tag {
	case cabi.TagThread:
		if uint64(th.UID) == n[0] {
			th.parent, th.nth, th.TID, th.How, th.known = uint32(n[1]), n[2], uint32(n[3]), n[4], true
		}
	case cabi.TagProc:
		if n[0] != uint64(th.Proc.Number) {
			return
		}
		p := th.Proc
		p.parentNo, p.parentUID, p.nth = uint32(n[1]), uint32(n[2]), n[3]
		p.PID, p.PPID, p.How, p.Known = uint32(n[4]), uint32(n[5]), n[6], true
		s := string(r.Text[0])
		if s == "" {
			return
		}
		p.Exe, s, _ = strings.Cut(s, "\x00")
		p.Cwd, s, _ = strings.Cut(s, "\x00")
		if s != "" {
			p.Args = strings.Split(strings.TrimSuffix(s, "\x00"), "\x00")
		}
	case cabi.TagModule:
		th.Proc.addModule(Module{n[0], n[1], n[2], string(r.Text[0]), slices.Clone(r.Text[1]), r.Begin})
	case cabi.TagClock:
		if len(t.points) < 1<<16 {
			t.points = append(t.points, ClockPoint{n[0], n[1], n[2]})
		}
	}
}

func (p *Proc) addModule(m Module) {
	i, found := slices.BinarySearchFunc(p.modules, m.Low, func(a Module, low uint64) int { return cmp.Compare(a.Low, low) })
	if found {
		p.modules[i] = m
	} else if len(p.modules) < 1<<14 {
		p.modules = slices.Insert(p.modules, i, m)
	}
}

// Modules are the files that the process, as far as the trace has been read, is known to have mapped for execution.
func (p *Proc) Modules() []Module { return p.modules }

// Module finds what pc lies in; nil when nobody said.
func (p *Proc) Module(pc uint64) *Module {
	for hops := 0; p != nil && hops < 1<<10; hops++ {
		i, found := slices.BinarySearchFunc(p.modules, pc, func(a Module, pc uint64) int { return cmp.Compare(a.Low, pc) })
		if !found {
			i--
		}
		if i >= 0 && pc-p.modules[i].Low < p.modules[i].Size {
			return &p.modules[i]
		}
		if p.How != cabi.ProcForked {
			return nil // an exec drops what the parent had mapped
		}
		p = p.Parent
	}
	return nil
}

// nameAll gives every process and thread its stable name.
func (t *Trace) nameAll() {
	for _, p := range t.procs {
		if p.Number != p.parentNo && p.Known && p.How != cabi.ProcRoot {
			p.Parent = t.procs[p.parentNo]
		}
	}
	for _, p := range t.procs {
		p.breakCycle()
	}
	taken := map[string]bool{}
	var nameProc func(p *Proc) string
	nameThread := func(uid uint32) string { return "" }
	busy := map[any]bool{}
	unique := func(s string, no uint32) string {
		if taken[s] {
			s += "~" + strconv.FormatUint(uint64(no), 10)
		}
		taken[s] = true
		return s
	}
	nameProc = func(p *Proc) string {
		if p.Name != "" || busy[p] {
			return p.Name
		}
		busy[p] = true
		switch {
		case !p.Known:
			p.Name = "p?" + strconv.FormatUint(uint64(p.Number), 10)
		case p.Parent == nil:
			p.Name = "p0"
		case p.How == cabi.ProcExeced && p.PID == p.Parent.PID:
			p.Name = nameProc(p.Parent) + "+"
		default:
			by := nameThread(p.parentUID)
			if by == "" {
				by = nameProc(p.Parent)
			}
			p.Name = by + "." + strconv.FormatUint(p.nth, 10)
		}
		p.Name = unique(p.Name, p.Number)
		return p.Name
	}
	nameThread = func(uid uint32) string {
		th := t.byUID[uid]
		if th == nil {
			return ""
		}
		if th.Name != "" || busy[th] {
			return th.Name
		}
		busy[th] = true
		if th.known && (th.How == cabi.ThreadMain || th.How == cabi.ThreadForked) {
			th.Name = nameProc(th.Proc)
			return th.Name
		}
		by := ""
		if th.known {
			if p := t.byUID[th.parent]; p != nil && p.Proc == th.Proc {
				by = nameThread(th.parent)
			}
		}
		if by == "" {
			by = nameProc(th.Proc)
		}
		switch {
		case !th.known:
			by += "/?" + strconv.FormatUint(uint64(uid), 10)
		case th.How == cabi.ThreadFound:
			by += "/f" + strconv.FormatUint(th.nth, 10)
		default:
			by += "/" + strconv.FormatUint(th.nth, 10)
		}
		th.Name = unique(by, uid)
		return th.Name
	}
	// In order of number, so that doubles get their marks in the order of creation.
	for _, p := range t.Procs {
		nameProc(p)
	}
	for _, th := range t.Threads {
		nameThread(th.UID)
	}
}

// breakCycle cuts the chain of parents where a damaged trace made a ring of it.
func (p *Proc) breakCycle() {
	slow, fast := p, p
	for fast != nil && fast.Parent != nil {
		slow, fast = slow.Parent, fast.Parent.Parent
		if slow == fast {
			p.Parent = nil
			return
		}
	}
}

// Recovered reports whether a part of the thread's stream comes from its process's memory, after that had ended.
func (t *Thread) Recovered() bool {
	for i := range t.chunks {
		if t.chunks[i].flag&cabi.ChunkRecovered != 0 {
			return true
		}
	}
	return false
}

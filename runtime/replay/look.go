package replay

import (
	"io"
	"path/filepath"
	"strings"
	"sync"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// lineMax bounds a line of a report, lastEvents how many events are told of before the one that differs.
const (
	lineMax    = 300
	lastEvents = 5
)

// at is a place in a thread of the trace: its event of that number, and those before it.
type at struct {
	found bool
	rec   trace.Record // without what lies in the reader's memory
	paths []string     // of its tail
	line  string       // as dump has it
	data  []byte       // its input data, as far as it is kept inline
	hash  []byte
	last  []string
	after uint64 // ticks: when the event before it ended
	end   bool   // the thread has no such event: its part of the trace ends before
}

func clip(s string) string {
	if len(s) > lineMax {
		return strings.ToValidUTF8(s[:lineMax], "") + "…"
	}
	return s
}

// lookAt reads a thread up to its event n.
func lookAt(t *trace.Trace, th *trace.Thread, n uint64, last uint64) *at {
	a := &at{}
	it := t.Iter(th)
	p := trace.NewPrinter(t, false)
	var r trace.Record
	var line []byte
	end := func() {
		if line = p.Flush(line); len(line) > 0 {
			s := clip(strings.TrimSuffix(string(line), "\n"))
			if a.found {
				a.line = s
			} else {
				a.last = append(a.last, s)
			}
		}
		line = line[:0]
	}
	for {
		err := it.Next(&r)
		if err == io.EOF {
			a.end = !a.found
			break
		}
		if err != nil {
			if trace.IsDamage(err) {
				continue
			}
			break
		}
		if !r.Attached() && (a.found || r.N > n) {
			break
		}
		if r.Tag == trace.TagEvent && r.N < n || a.after == 0 {
			a.after = r.End
		}
		if r.N+last < n {
			p.Observe(&r)
			continue
		}
		if !r.Attached() {
			end()
		}
		if r.Tag == trace.TagEvent && r.N == n {
			a.found = true
			a.rec = r
			for _, f := range r.Fields {
				if f.Kind == trace.FieldPath || f.Kind == trace.FieldStr {
					a.paths = append(a.paths, string(f.Text))
				}
			}
			a.rec.Fields, a.rec.Tail, a.rec.Text = nil, nil, [2][]byte{}
		}
		if a.found {
			switch r.Tag {
			case cabi.TagData:
				a.data = append([]byte(nil), r.Text[0]...)
			case cabi.TagHash:
				a.hash = append([]byte(nil), r.Text[0]...)
			}
		}
		if r.Tag == trace.TagEvent || r.Attached() || r.Tag == cabi.TagSignal || r.Tag == cabi.TagMark || r.Tag == cabi.TagExit {
			line = p.Append(line, &r)
		} else {
			p.Observe(&r)
		}
	}
	end()
	if uint64(len(a.last)) > last {
		a.last = a.last[uint64(len(a.last))-last:]
	}
	return a
}

// eventOf is how many events of a thread have been compared.
func (s *State) eventOf(th *trace.Thread) uint64 {
	if int(th.UID) < len(s.Threads) {
		return s.Threads[th.UID].Event
	}
	return 0
}

// taken is a place in the order of an object: who takes it, at which event.
type taken struct {
	th   *trace.Thread
	n    uint64
	call string
	seq  uint64
}

// need asks for what the trace says of one object: who takes the next place, who reads in an epoch, who has it.
type need struct {
	obj   trace.Object
	proc  uint32 // of who asks: an object in private memory belongs to its process as well
	epoch int64  // -1: none

	next    *taken // the lowest place that is still to be taken
	first   *taken // the first event at the object that is still to come
	reader  *taken // of that epoch, still to come
	holder  *taken // the last place that was taken in the re-execution
	letsGo  *taken // the event by which the holder lets go, still to come; nil: it has, or the trace does not tell
	let     bool   // it has let go
	handles bool   // the object is one that is held
}

// last is the last place that was taken.
func (n *need) last() uint64 {
	if n.holder == nil {
		return 0
	}
	return n.holder.seq
}

// objectOf is the object whose order an event's place is in: that of a wait for a condition is its mutex's.
func objectOf(r *trace.Record) trace.Object {
	if r.Row != nil && r.Row.Obj == "cond" && r.Seq != 0 {
		return nameOf(uint64(r.F[1]))
	}
	return r.Obj
}

func nameOf(id uint64) trace.Object {
	return trace.Object{UID: uint32(id >> 40), Num: id & (1<<40 - 1)}
}

// survey is what a pass over the whole trace finds.
type survey struct {
	unseen map[string]int
	uncut  []string // their kinds, in the order they were found
}

// look reads the trace for what the needs ask. It also learns where modules lie.
func look(t *trace.Trace, s *State, needs []*need) *survey {
	out := &survey{unseen: map[string]int{}}
	shared := map[trace.Object]bool{}
	var mu sync.Mutex
	p := trace.NewPrinter(t, false)
	t.WalkOnly(1<<cabi.Mark, 1, func(th *trace.Thread) trace.Visit {
		return func(r *trace.Record) error {
			switch r.Tag {
			case cabi.TagModule:
				p.Observe(r)
			case cabi.TagObject:
				if r.Nums[2] == cabi.ObjSharedSync {
					shared[trace.Object{UID: uint32(r.Nums[0]), Num: r.Nums[1]}] = true
				}
			case cabi.TagUnseen:
				k := trace.UnseenWhat(r.Nums[0])
				if len(r.Text[0]) > 0 {
					k += " " + trace.Clean(string(r.Text[0]))
				}
				if out.unseen[k] == 0 && len(out.uncut) < 10 {
					out.uncut = append(out.uncut, k)
				}
				out.unseen[k]++
			}
			return nil
		}
	})
	if len(needs) == 0 {
		return out
	}
	by := map[trace.Object][]*need{}
	for _, n := range needs {
		by[n.obj] = append(by[n.obj], n)
	}
	held := map[*need]map[*trace.Thread]*taken{} // the event by which a thread let go last
	t.Walk(2, func(th *trace.Thread) trace.Visit {
		done := s.eventOf(th)
		return func(r *trace.Record) error {
			if r.Tag == cabi.TagToken {
				mu.Lock()
				for _, n := range by[nameOf(cabi.ReplayToken)] {
					e := &taken{th, r.N, "token", r.Nums[0]}
					switch {
					case r.N < done:
						if n.holder == nil || n.holder.seq < e.seq {
							n.holder = e
						}
					case n.next == nil || e.seq < n.next.seq:
						n.next = e
					}
				}
				mu.Unlock()
				return nil
			}
			if r.Tag != trace.TagEvent || r.Row == nil {
				return nil
			}
			obj := objectOf(r)
			list := by[obj]
			if len(list) == 0 {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			for _, n := range list {
				if !shared[obj] && th.Proc.Number != n.proc {
					continue
				}
				e := &taken{th, r.N, r.Row.Name, r.Seq}
				if r.N >= done && (n.first == nil || th.UID == obj.UID && n.first.th != th) {
					n.first = e
				}
				if r.Seq != 0 && r.N >= done && (n.next == nil || r.Seq < n.next.seq) {
					n.next = e
				}
				if n.epoch >= 0 && r.Row.F[1] == "epoch" && r.F[1] == n.epoch && r.Ret == 0 && r.N >= done && n.reader == nil {
					n.reader = e
				}
				if r.Seq != 0 && r.N < done && (n.holder == nil || n.holder.seq < r.Seq) {
					n.holder = e
				}
				if strings.Contains(r.Row.Name, "unlock") || r.Row.Obj == "cond" {
					n.handles = true
					if held[n] == nil {
						held[n] = map[*trace.Thread]*taken{}
					}
					if was := held[n][th]; was == nil || was.n < done {
						held[n][th] = e // the last one that was, or the first that is to come
					}
				}
			}
			return nil
		}
	}, nil)
	for _, n := range needs {
		if n.holder == nil || !n.handles {
			continue
		}
		e := held[n][n.holder.th]
		if e != nil && e.n > n.holder.n {
			if n.let = e.n < s.eventOf(e.th); !n.let {
				n.letsGo = e
			}
		}
	}
	return out
}

// file is what the trace says of a file that an event is about.
type file struct {
	path  string
	size  int64 // -1: not told
	mtime int64
}

// fileOf finds the file behind the descriptor that an event names, or in its path.
func fileOf(t *trace.Trace, th *trace.Thread, a *at) *file {
	f := &file{size: -1}
	if len(a.paths) > 0 && a.rec.Row.Class == cabi.Disk {
		f.path = a.paths[0]
	}
	if a.rec.Row.Obj == "fd" && !a.rec.Obj.None() {
		f.ofFd(t, th, a)
	}
	if f.path == "" || strings.HasPrefix(f.path, "socket:") || strings.HasPrefix(f.path, "pipe:") {
		return nil
	}
	if !filepath.IsAbs(f.path) {
		dir := th.Proc.Cwd
		if dir == "" {
			dir = t.Meta.Cwd
		}
		f.path = filepath.Join(dir, f.path)
	}
	return f
}

// ofFd looks for the object's first sight and for the call that opened what it then was.
func (f *file) ofFd(t *trace.Trace, th *trace.Thread, a *at) {
	type open struct {
		path  string
		begin uint64
	}
	opens := map[int64][]open{}
	fd, seen := int64(-1), uint64(0)
	stat := false
	t.Walk(1, func(of *trace.Thread) trace.Visit {
		if of.Proc != th.Proc && of.UID != a.rec.Obj.UID {
			return func(*trace.Record) error { return nil }
		}
		return func(r *trace.Record) error {
			switch r.Tag {
			case cabi.TagObject:
				if uint32(r.Nums[0]) == a.rec.Obj.UID && r.Nums[1] == a.rec.Obj.Num {
					fd, seen = int64(r.Nums[3]), r.Begin
					if len(r.Text[0]) > 0 {
						f.path = string(r.Text[0])
					}
				}
			case trace.TagEvent:
				stat = r.Obj == a.rec.Obj && r.Ret == 0
				if r.Ret < 0 || r.Row == nil || r.Row.Class != cabi.Disk {
					return nil
				}
				for _, x := range r.Fields {
					if x.Kind == trace.FieldPath && len(opens) < 1<<16 {
						opens[r.Ret] = append(opens[r.Ret], open{string(x.Text), r.End})
						break
					}
				}
			case cabi.TagInput:
				if !stat || r.Row == nil {
					return nil
				}
				fields, _ := trace.ParseInput(nil, r.Row, int(r.Nums[0]), r.Text[0])
				for _, x := range fields {
					switch x.Name {
					case "size":
						f.size = int64(x.Num)
					case "mtime":
						f.mtime = int64(x.Num)
					}
				}
			}
			return nil
		}
	}, nil, t.Threads...)
	if f.path != "" || fd < 0 {
		return
	}
	best := uint64(0)
	for _, o := range opens[fd] {
		if o.begin <= seen && o.begin >= best {
			best, f.path = o.begin, o.path
		}
	}
}

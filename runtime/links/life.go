package links

import (
	"slices"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// Threads and processes: who made them, and who waited for their end.

// forkKey names a child: by which thread, and which of its forks.
type forkKey struct {
	uid uint32
	nth uint64
}

// forked is a fork whose child has not come yet, or a child that has come before its fork's record.
type forked struct {
	by    Point
	fds   *table
	child Point // its first record
	came  bool
}

// pendingExit is a wait that will be over, and then its thread or process is as well.
type pendingExit struct {
	at   uint64
	to   Point
	uid  uint32 // a thread
	proc *proc  // or a process
	pid  uint64 // not heard of yet
}

func (k *Tracker) proc(th *trace.Thread) *proc {
	p := k.procs[th.Proc.Number]
	if p == nil {
		p = &proc{p: th.Proc}
		k.procs[th.Proc.Number] = p
		if th.Proc.PID != 0 {
			k.pids[uint64(th.Proc.PID)] = p
		}
		k.inherit(p)
	}
	return p
}

// inherit gives a process the descriptors that it began with.
func (k *Tracker) inherit(p *proc) {
	if p.p.Parent == nil {
		return
	}
	_, uid, nth := p.p.Origin()
	by := k.find(uid)
	if f := k.forks[forkKey{uid, nth}]; f != nil && f.fds != nil && p.p.PID != p.p.Parent.PID {
		p.fds = f.fds.clone()
	} else if by != nil && p.p.PID == p.p.Parent.PID {
		p.fds = by.proc.fds.clone()
	} else if by != nil && by.snap != nil {
		p.fds = by.snap.clone() // its fork's record has not come yet
	}
	if p.p.How == cabi.ProcExeced && p.fds != nil {
		p.fds.objs = nil // another program gives names of its own
	}
}

// birth is a thread's first record.
func (k *Tracker) birth(s *thread, r *trace.Record) {
	p := s.th.Proc
	to := Point{Thread: s.th, Begin: r.Begin, End: r.Begin}
	switch {
	case s.th.How == cabi.ThreadCreated:
		if by, ok := k.made[s.th.UID]; ok {
			delete(k.made, s.th.UID)
			k.start(by, to)
		}
	case p.Parent == nil || s.th.How == cabi.ThreadFound:
	case p.How == cabi.ProcExeced && p.PID == p.Parent.PID:
		_, uid, _ := p.Origin()
		if by := k.find(uid); by != nil && by.last.Thread != nil {
			k.start(by.last, to)
		}
	default:
		_, uid, nth := p.Origin()
		key := forkKey{uid, nth}
		if f := k.forks[key]; f != nil {
			if f.came {
				return
			}
			delete(k.forks, key)
			k.start(f.by, to)
		} else if k.find(uid) != nil {
			k.keepFork(key, &forked{child: to, came: true})
		}
	}
}

func (k *Tracker) start(by, to Point) {
	k.link(Start, by, by.Begin, to, to.Begin, trace.Object{})
}

func (k *Tracker) keepFork(key forkKey, f *forked) {
	if len(k.forks) >= maxSnapshots {
		k.forgot += uint64(len(k.forks))
		clear(k.forks)
	}
	k.forks[key] = f
}

func (k *Tracker) create(s *thread, r *trace.Record) {
	if r.Ret != 0 || r.Obj.None() {
		return
	}
	p := pointOf(r)
	k.may = true
	if k.find(r.Obj.UID) != nil {
		return // it is there already: the trace is damaged
	}
	if len(k.made) >= maxSnapshots {
		k.forgot += uint64(len(k.made))
		clear(k.made)
	}
	k.made[r.Obj.UID] = p
}

func (k *Tracker) fork(s *thread, r *trace.Record) {
	s.maker = pointOf(r)
	s.snap = s.table().clone()
	k.may = true
	if base(r.Row.Name) == "vfork" {
		s.vtab = s.snap
	}
}

// exec: the new program begins with the descriptors that are open.
func (k *Tracker) exec(*thread, *trace.Record) { k.may = true }

func (k *Tracker) forkRecord(s *thread, r *trace.Record) {
	if s.maker.Thread == nil {
		return
	}
	key := forkKey{s.th.UID, r.Nums[0]}
	if f := k.forks[key]; f != nil && f.came {
		delete(k.forks, key)
		k.start(s.maker, f.child)
		return
	}
	k.keepFork(key, &forked{by: s.maker, fds: s.snap})
}

// join waits for a thread, wait for a process.
func (k *Tracker) join(s *thread, r *trace.Record) {
	if r.Ret == 0 && !r.Obj.None() {
		k.await(pendingExit{at: r.End, to: pointOf(r), uid: r.Obj.UID})
	}
}

func (k *Tracker) wait(s *thread, r *trace.Record) {
	if r.Ret <= 0 {
		return
	}
	for i, name := range r.Row.F {
		if name == "status" && (r.F[i]&0xff == 0x7f || r.F[i] == 0xffff) {
			return // stopped, or continued
		}
	}
	k.await(pendingExit{at: r.End, to: pointOf(r), pid: uint64(r.Ret)})
}

func (k *Tracker) waitid(s *thread, r *trace.Record) { s.await = r.Row }

// system makes a process and waits for it.
func (k *Tracker) system(s *thread, r *trace.Record) {
	k.fork(s, r)
	if r.F[0] > 0 {
		k.await(pendingExit{at: r.End, to: pointOf(r), pid: uint64(r.F[0])})
	}
}

func (k *Tracker) await(e pendingExit) {
	i, _ := slices.BinarySearchFunc(k.ends, e.at, func(a pendingExit, at uint64) int {
		if a.at <= at {
			return -1
		}
		return 1
	})
	k.ends = slices.Insert(k.ends, i, e)
}

// over links the waits that were over by then.
func (k *Tracker) over(now uint64) {
	n := 0
	for n < len(k.ends) && k.ends[n].at <= now {
		e := &k.ends[n]
		n++
		var last Point
		if e.pid != 0 {
			e.proc = k.pids[e.pid]
		}
		if e.proc != nil {
			last = e.proc.last
		} else if s := k.find(e.uid); s != nil && e.uid != 0 {
			last = s.last
		}
		if last.Thread != nil && last.Thread != e.to.Thread && last.End <= e.at+k.slack {
			k.link(Exit, last, last.End, e.to, e.at, trace.Object{})
		}
		if e.proc != nil {
			delete(k.pids, e.pid)
			delete(k.procs, e.proc.p.Number)
		}
	}
	k.ends = slices.Delete(k.ends, 0, n)
}

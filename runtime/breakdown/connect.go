package breakdown

import (
	"container/heap"

	"prophet/cabi"
	"prophet/runtime/demand"
)

// Who lets whom go on: entries are visited in the order of their beginnings, descriptors are followed to files and streams, and
// what lets others go on is noted by what it acts on.

// key is what somebody waits for.
type key uint64

const (
	kObject = iota + 1 // to be let go of, signalled, posted; arrivals at a barrier
	kEnded             // the end of a recorded thread
	kGone              // of a process
	kBirth             // the making of a thread
	kData              // in a stream, for the end that reads it
	kRoom              // in a stream, for the end that writes it
	kOver              // the other end is closed
	kCall              // of a listener
	kFile              // its lock
	kGram              // a datagram for a port
)

func keyOf(kind int, n uint32) key { return key(kind)<<60 | key(n) }

// object is a synchronisation object as a thread meets it: private ones are each process's own, conditions everybody's.
func (r *run) object(th, n uint32) key {
	k := keyOf(kObject, n)
	if int(n) < len(r.p.objects) && r.p.objects[n].Flags&cabi.ObjectShared == 0 && r.p.objects[n].Kind != cabi.ObjCond {
		k |= key(r.p.threads[th].Proc+1) << 32
	}
	return k
}

// What an entry is on: a file's number plus 1, or an end of a stream, which is this and twice its number and its side.
const onStream = 1 << 31

// fd is what a descriptor leads to.
type fd struct {
	on      uint32
	cloexec bool
}

// connector is the state of that.
type connector struct {
	*run
	fds      []map[uint32]fd // by process
	streams  uint32
	accepts  map[uint32][]uint32 // streams of listeners that are waited for,
	connects map[uint32][]uint32 // and that nobody has taken
}

// cursor is the next entry of a thread.
type cursor struct {
	begin  uint64
	thread uint32
	index  uint32
}

type cursors []cursor

func (c cursors) Len() int { return len(c) }
func (c cursors) Less(i, j int) bool {
	return c[i].begin < c[j].begin || c[i].begin == c[j].begin && c[i].thread < c[j].thread
}
func (c cursors) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *cursors) Push(x any)   { *c = append(*c, x.(cursor)) }
func (c *cursors) Pop() any {
	x := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return x
}

// connect visits all entries.
func (r *run) connect() {
	r.lets = map[key][]moment{}
	c := &connector{run: r, fds: make([]map[uint32]fd, len(r.p.procs)), accepts: map[uint32][]uint32{}, connects: map[uint32][]uint32{}}
	var next cursors
	for th, list := range r.threads {
		if len(list) > 0 {
			next = append(next, cursor{list[0].begin, uint32(th), 0})
		}
	}
	heap.Init(&next)
	for len(next) > 0 {
		at := &next[0]
		list := r.threads[at.thread]
		c.visit(at.thread, at.index)
		if at.index++; int(at.index) == len(list) {
			heap.Pop(&next)
			continue
		}
		at.begin = list[at.index].begin
		if len(next) > 1 {
			heap.Fix(&next, 0)
		}
	}
}

func (e *entry) at(p *Program) *op {
	if e.op == demand.NoOp {
		return nil
	}
	return &p.ops[e.op]
}

func (e *entry) obj(p *Program) uint32 {
	if o := e.at(p); o != nil {
		return o.obj
	}
	return ^uint32(0)
}

// visit finds what an entry is on and its class, and notes what it lets go on.
func (c *connector) visit(th, i uint32) {
	e := &c.threads[th][i]
	o := e.at(c.p)
	e.class = plainClass(e.code)
	if o == nil {
		return
	}
	if o.flags&cabi.OpHome != 0 && e.code == cabi.OpSleep {
		e.class = Outside
	}
	note := func(k key) { c.lets[k] = append(c.lets[k], moment{e.begin, th, i}) }
	let := func(kind int, n uint32) { note(keyOf(kind, n)) }
	switch e.code {
	case cabi.OpUnlock, cabi.OpRwunlock, cabi.OpSpinunlock, cabi.OpSempost, cabi.OpSignal, cabi.OpBroadcast, cabi.OpRelease, cabi.OpBarrier:
		note(c.object(th, o.obj))
	case cabi.OpWait, demand.AtWait:
		if p := c.pred(o); p != nil {
			note(c.object(th, p.Mutex))
		}
	case cabi.OpCreate:
		let(kBirth, o.obj)
	case cabi.OpFork:
		if int(o.obj) < len(c.fds) {
			let(kBirth, c.p.procs[o.obj].Main)
			c.fds[o.obj] = map[uint32]fd{}
			for n, f := range c.table(th) {
				c.fds[o.obj][n] = f
			}
		}
	case cabi.OpEnd, cabi.OpExit:
		let(kEnded, o.obj)
		let(kGone, c.p.threads[th].Proc)
		if e.code == cabi.OpExit || c.p.procs[c.p.threads[th].Proc].Main == o.obj {
			for _, f := range c.table(th) {
				if f.on&onStream != 0 {
					let(kOver, other(f.on))
				}
			}
		}
	default:
		c.descriptors(th, e, o, let)
	}
}

// pred is the predicate that an operation waits for.
func (r *run) pred(o *op) *cabi.ProgPred {
	if o.code != cabi.OpWait || o.a < 0 || int(o.a) >= len(r.p.preds) {
		return nil
	}
	return &r.p.preds[o.a]
}

func other(on uint32) uint32 { return on ^ 1 }

func (c *connector) table(th uint32) map[uint32]fd {
	n := c.p.threads[th].Proc
	if c.fds[n] == nil {
		c.fds[n] = map[uint32]fd{}
	}
	return c.fds[n]
}

func (c *connector) stream() uint32 {
	c.streams++
	return onStream | (c.streams*2)&^uint32(onStream)
}

// descriptors follows what acts on them.
func (c *connector) descriptors(th uint32, e *entry, o *op, let func(kind int, n uint32)) {
	fds := c.table(th)
	switch e.code {
	case cabi.OpOpen:
		e.on = uint32(o.b) + 1
		if e.result >= 0 {
			fds[o.obj] = fd{e.on, o.a&0o2000000 != 0}
		}
	case cabi.OpClose:
		last := max(int64(o.obj), int64(o.b)-1)
		for n, f := range fds {
			if n < o.obj || int64(n) > last {
				continue
			}
			if f.on&onStream != 0 {
				let(kOver, other(f.on))
			} else {
				e.on = f.on
				let(kFile, f.on) // who closes a file lets go of its locks
			}
			delete(fds, n)
		}
	case cabi.OpDup:
		if f, ok := fds[o.obj]; ok {
			f.cloexec = false
			fds[uint32(o.a)] = f
		} else {
			delete(fds, uint32(o.a))
		}
	case cabi.OpCloexec:
		if f, ok := fds[o.obj]; ok {
			f.cloexec = o.a != 0
			fds[o.obj] = f
		}
	case cabi.OpExec:
		for n, f := range fds {
			if f.cloexec {
				delete(fds, n)
				if f.on&onStream != 0 {
					let(kOver, other(f.on))
				}
			}
		}
	case cabi.OpPipe, cabi.OpSocketpair:
		s := c.stream()
		fds[o.obj], fds[uint32(o.a)] = fd{on: s}, fd{on: s | 1}
	case cabi.OpAccept:
		fds[uint32(o.a)] = fd{on: meet(c.accepts, c.connects, o.obj, c.stream) | 1}
	case cabi.OpGiveGram:
		let(kGram, o.obj)
	case cabi.OpConnect:
		let(kCall, uint32(o.a))
		fds[o.obj] = fd{on: meet(c.connects, c.accepts, uint32(o.a), c.stream)}
	case cabi.OpFlock, cabi.OpFcntlLock:
		e.on = fds[o.obj].on &^ onStream
		if e.code == cabi.OpFlock && o.a&8 != 0 || e.code == cabi.OpFcntlLock && o.a&0xff == 2 {
			let(kFile, e.on)
		}
	case cabi.OpRead, cabi.OpTake, cabi.OpWrite, cabi.OpGive:
		f, ok := fds[o.obj]
		e.on = f.on
		switch {
		case !ok:
			e.class = Outside
		case f.on&onStream == 0:
			e.class = Disk
		case e.code == cabi.OpRead || e.code == cabi.OpTake:
			e.class = Pipes
			let(kRoom, other(f.on))
		default:
			e.class = Pipes
			let(kData, other(f.on))
		}
	default:
		if e.class == Disk && e.code < cabi.OpStat || e.code == cabi.OpSendfile || e.code == cabi.OpCopyrange {
			f, ok := fds[o.obj]
			e.on = f.on
			if !ok {
				e.class = CPU
			} else if f.on&onStream != 0 {
				e.class = Pipes
			}
		} else if e.class == Disk {
			e.on = o.obj + 1
		}
	}
}

// meet gives two ends of a connection the same stream, whichever comes first.
func meet(mine, theirs map[uint32][]uint32, listener uint32, make func() uint32) uint32 {
	if list := theirs[listener]; len(list) > 0 {
		theirs[listener] = list[1:]
		return list[0]
	}
	s := make()
	mine[listener] = append(mine[listener], s)
	return s
}

// plainClass is the class of an operation, as far as its code says.
func plainClass(code uint16) Class {
	switch code {
	case cabi.OpLock, cabi.OpTrylock, cabi.OpTimedlock, cabi.OpRdlock, cabi.OpWrlock, cabi.OpTryrdlock, cabi.OpTrywrlock, cabi.OpSpinlock, cabi.OpSpintry, cabi.OpFlock, cabi.OpFcntlLock:
		return Locks
	case cabi.OpWait, demand.AtWait, demand.AtSignal, cabi.OpBarrier, cabi.OpSemwait, cabi.OpSemtry, cabi.OpSemtimed, cabi.OpJoin, cabi.OpWaitpid:
		return Waits
	case cabi.OpSleep:
		return Sleep
	case cabi.OpTake, cabi.OpGive, cabi.OpTakeGram, cabi.OpGiveGram, cabi.OpAccept, cabi.OpConnect, cabi.OpShutdown, demand.AtPoll:
		return Pipes
	case cabi.OpOpen, cabi.OpClose, cabi.OpRead, cabi.OpWrite, cabi.OpPread, cabi.OpPwrite, cabi.OpLseek, cabi.OpFsync, cabi.OpFdatasync, cabi.OpSyncfs,
		cabi.OpSyncrange, cabi.OpTruncate, cabi.OpFallocate, cabi.OpFstat, cabi.OpFadvise, cabi.OpStat, cabi.OpAccess, cabi.OpUnlink, cabi.OpMkdir,
		cabi.OpRmdir, cabi.OpRename, cabi.OpLink, cabi.OpTruncateName, cabi.OpSendfile, cabi.OpCopyrange:
		return Disk
	}
	return CPU
}

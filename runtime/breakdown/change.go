package breakdown

import (
	"cmp"
	"slices"

	"prophet/cabi"
)

// Change is a resource that could be another, so that the run would take another time.
type Change struct {
	Resource string
	How      string                              // what is changed of it
	NS       uint64                              // that the critical path has of it: at most as much is won
	Known    bool                                // whether NS is; of a lock it is not, as who holds it does something else
	CPU      float64                             // demand is multiplied with it
	Cores    bool                                // threads get cores whenever they can go on
	Ops      func(n uint64, o *cabi.ProgOp) bool // changes the operations (demand.Vary); nil: none
}

const (
	changesLeast = 50 // what is not one part in so many of the run is not worth a change
	faster       = 0.9
)

// Changes are those that could make an issue that took split another one, the most promising first. object names one of
// the program's objects of synchronisation.
func (p *Program) Changes(split *Split, object func(n uint32) string) []Change {
	list := []Change{
		{Resource: "CPU", How: "10 % faster", NS: split.Path[CPU] / 10, Known: true, CPU: faster},
		{Resource: "cores", How: "as many as threads want", NS: split.Path[Ready], Known: true, CPU: 1, Cores: true},
		{Resource: "syncs", How: "taking no time", NS: split.Syncs, Known: true, CPU: 1, Ops: noSyncs},
		{Resource: "files", How: "reads and writes taking no time", NS: split.Path[Disk] - min(split.Syncs, split.Path[Disk]), Known: true, CPU: 1, Ops: func(n uint64, o *cabi.ProgOp) bool {
			if n >= uint64(len(p.files)) || !p.files[n] {
				return false
			}
			o.Code = cabi.OpNop
			return true
		}},
		{Resource: "sleeps", How: "taking no time", NS: split.Path[Sleep], Known: true, CPU: 1, Ops: noSleeps},
		{Resource: "outside", How: "answering at once", NS: split.Path[Outside], Known: true, CPU: 1, Ops: noOutside},
	}
	var worst uint32
	var most uint64
	for n, ns := range split.waited {
		if p.free(n) && (ns > most || ns == most && n < worst) {
			worst, most = n, ns
		}
	}
	if most > 0 {
		list = append(list, Change{Resource: object(worst), How: "never held by another", NS: most, CPU: 1, Ops: func(_ uint64, o *cabi.ProgOp) bool {
			if o.Obj != worst || !locks(o.Code) {
				return false
			}
			o.Code, o.Flags = cabi.OpNop, 0
			return true
		}})
	}
	list = slices.DeleteFunc(list, func(c Change) bool {
		ns := c.NS
		if c.CPU != 1 {
			ns *= 10 // of a tenth the whole counts
		}
		return ns < split.NS/changesLeast
	})
	slices.SortStableFunc(list, func(a, b Change) int { return cmp.Compare(b.NS, a.NS) })
	return list
}

// free reports whether a lock can be taken out of the program: nothing but its own operations may need it.
func (p *Program) free(obj uint32) bool {
	for i := range p.preds {
		if p.preds[i].Mutex == obj {
			return false
		}
	}
	for i := range p.ops {
		if o := &p.ops[i]; o.obj == obj && locks(o.code) && o.flags&cabi.OpRole != 0 {
			return false
		}
	}
	return true
}

// lockable reports whether an operation waits for an object that is held.
func lockable(code uint16) bool {
	switch code {
	case cabi.OpLock, cabi.OpTimedlock, cabi.OpRdlock, cabi.OpWrlock, cabi.OpSpinlock:
		return true
	}
	return false
}

// locks reports whether an operation takes or lets go of such an object.
func locks(code uint16) bool {
	switch code {
	case cabi.OpTrylock, cabi.OpTryrdlock, cabi.OpTrywrlock, cabi.OpSpintry, cabi.OpUnlock, cabi.OpRwunlock, cabi.OpSpinunlock:
		return true
	}
	return lockable(code)
}

func syncs(code uint16) bool {
	return code == cabi.OpFsync || code == cabi.OpFdatasync || code == cabi.OpSyncfs || code == cabi.OpSyncrange
}

// moves reports whether an operation moves what is in files.
func moves(code uint16) bool {
	switch code {
	case cabi.OpRead, cabi.OpWrite, cabi.OpPread, cabi.OpPwrite, cabi.OpSendfile, cabi.OpCopyrange:
		return true
	}
	return false
}

const synchronous = 0o4010000 // O_SYNC and O_DSYNC, as the trace has them

func noSyncs(_ uint64, o *cabi.ProgOp) bool {
	if o.Code == cabi.OpOpen && o.A&synchronous != 0 {
		o.A &^= synchronous
		return true
	}
	if !syncs(o.Code) {
		return false
	}
	o.Code = cabi.OpNop
	return true
}

func noSleeps(_ uint64, o *cabi.ProgOp) bool {
	if o.Code != cabi.OpSleep || o.Flags&cabi.OpHome != 0 {
		return false
	}
	o.A = 0
	return true
}

func noOutside(_ uint64, o *cabi.ProgOp) bool {
	switch o.Code {
	case cabi.OpSleep:
		if o.Flags&cabi.OpHome == 0 {
			return false
		}
		o.A = 0
	case cabi.OpRead, cabi.OpWrite, cabi.OpTake, cabi.OpGive:
		o.B = 0
	default:
		return false
	}
	return true
}

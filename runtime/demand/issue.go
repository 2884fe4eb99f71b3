package demand

import (
	"slices"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// issue puts the operations that an event is issued as. p has the demand before it.
func (e *emitter) issue(stream *trace.Thread, r *trace.Record, o *op, p *pending, dur int64) {
	if o == nil || o.code == opSignal && !e.signalStays(r) {
		e.other(r, p, dur)
		return
	}
	p.Code, p.Want = o.code, result(r)
	g := e.th.group
	fd := uint32(e.fdOf(r))
	var first, second uint32
	if o.named > 0 && len(e.queue) > 0 {
		first, e.queue = e.queue[0], e.queue[1:]
		if o.named > 1 && len(e.queue) > 0 {
			second, e.queue = e.queue[0], e.queue[1:]
		}
	}
	if o.choice && e.opt.Path == PathFree {
		site := e.site(stream, r)
		if o.named > 0 {
			site.file = first + 1
		}
		p.Flags |= cabi.OpChoice
		p.Site, e.lockSite = e.siteNumber(site), site
	}
	if o.choice && e.opt.Path == PathStrict {
		p.Flags |= cabi.OpChoice | cabi.OpMust
	}
	// calls is what CPU time the call took, as far as it is issued by itself. What was issued counts the demand alone as CPU time.
	if dur > 0 && !e.prefix {
		if r.Note&cabi.NoteWaited != 0 || sleeps(o.code) {
			least, most := e.waitCost(r.Call)
			e.waitsLeast += min(dur, least)
			e.waitsMost += min(dur, most)
		} else {
			e.calls += e.typical(r, dur)
		}
	}
	if e.opt.Path != PathFree && e.strict(r, o, p, dur) {
		return
	}
	switch o.code {
	case cabi.OpLock, cabi.OpUnlock, cabi.OpTrylock, cabi.OpTimedlock:
		p.Obj = e.object(g, r.Obj, cabi.ObjMutex)
		e.hold(o.code, p.Obj, p.Want)
		if o.code == cabi.OpTimedlock {
			p.A = timeLimit(p.Want, dur)
		}
		if role, ok := e.loops.roles.get(p.place); ok && p.Want == 0 {
			p.Flags |= cabi.OpRole
			if role.last {
				p.Flags |= cabi.OpLast
			}
			p.A = int64(role.pred)
		}
	case cabi.OpRdlock, cabi.OpWrlock, cabi.OpTryrdlock, cabi.OpTrywrlock, cabi.OpRwunlock:
		p.Obj = e.object(g, r.Obj, cabi.ObjRwlock)
	case cabi.OpSpinlock, cabi.OpSpintry, cabi.OpSpinunlock:
		p.Obj = e.object(g, r.Obj, cabi.ObjSpin)
	case cabi.OpBarrier:
		p.Obj = e.object(g, r.Obj, cabi.ObjBarrier)
	case cabi.OpSemwait, cabi.OpSemtry, cabi.OpSemtimed, cabi.OpSempost:
		p.Obj = e.object(g, r.Obj, cabi.ObjSem)
		if o.code == cabi.OpSemtimed {
			p.A = timeLimit(p.Want, dur)
		}
	case opCondwait:
		if e.skip > 0 {
			e.skip--
			p.Code, p.as, p.ofLoop = cabi.OpCPU, AtWait, true
			e.put(p)
			return
		}
		// A wait outside of any section that was seen.
		e.info.Lone++
		p.as = AtWait
		e.other(r, p, dur)
		return
	case cabi.OpSignal, cabi.OpBroadcast:
		p.Obj = e.object(g, r.Obj, cabi.ObjCond)
		p.B, p.Want = e.key(p.place), e.released(p.place)
		if told, _ := e.loops.told.get(p.place); told {
			p.A = 1
		}
	case opReset:
		if r.Obj.None() || r.Row.Ret == trace.RetErr && r.Ret != 0 {
			e.other(r, p, dur)
			return
		}
		p.Code = cabi.OpCPU // the engine makes all objects before it starts
	case cabi.OpCreate, cabi.OpJoin:
		th := e.byUID[r.Obj.UID]
		if th == nil || p.Want != 0 {
			e.other(r, p, dur)
			return
		}
		th = th.issuedAs()
		p.Obj = th.n
		if o.code == cabi.OpJoin && e.opt.Path == PathFree {
			e.early(th.n)
		}
	case cabi.OpFork, opSystem:
		e.fork(stream, r, o, p, dur)
		return
	case opWaitpid:
		e.waitpid(r, p, dur)
		return
	case opExec:
		if r.Ret != 0 {
			e.other(r, p, dur)
			return
		}
		p.Code, p.Want = cabi.OpExec, 0
		e.put(p)
		return
	case cabi.OpExit:
		p.A, p.Obj = r.F[0], e.th.n
		e.done = true
		e.put(p)
		return
	case opExitThread:
		p.Code = cabi.OpCPU
	case opSleepFor:
		p.Code, p.Want = cabi.OpSleep, 0
		p.A = max(0, sleepTime(r, dur))
		if e.opt.Path == PathFree {
			p.Site = e.siteNumber(e.site(stream, r))
		}
	case opPoll:
		// What it waited for comes with the call after it; a time that was over is slept.
		if r.Ret == 0 && dur > sleepAdd {
			p.Code, p.Want, p.A = cabi.OpSleep, 0, dur-sleepAdd
			break
		}
		p.Code, p.as = cabi.OpCPU, AtPoll
	case cabi.OpOpen:
		fl, to := openArgs(r)
		p.A, p.B, p.Obj = fl, int64(first), uint32(to)
		p.Want = min(to, 0)
	case cabi.OpClose:
		p.Obj = uint32(r.F[0])
	case opCloseRange:
		p.Code, p.A, p.B = cabi.OpClose, r.F[0], r.F[1]
		if plainName(r.Row.Name) == "closefrom" {
			p.B = 1 << 30
		}
		p.Obj = uint32(p.A)
		p.B++
	case cabi.OpRead, cabi.OpWrite, cabi.OpTake, cabi.OpGive:
		p.Obj, p.A, p.B = fd, max(r.F[0], 0), dur
		if p.Want > p.A || r.Row.Ret != trace.RetErrno {
			p.A = max(p.Want, 0)
		}
		takes := o.code == cabi.OpRead || o.code == cabi.OpTake
		if port, ok := e.grams.port(p.place, takes); ok {
			if p.Code = cabi.OpGiveGram; takes {
				p.Code = cabi.OpTakeGram
			}
			p.Obj, p.A, p.B = port, p.Want, 0
		}
	case opSignal:
		e.signalled(r, p)
		return
	case opSends, opTakes:
		e.manyGrams(r, p, dur, o.code == opTakes)
		return
	case cabi.OpPread, cabi.OpPwrite:
		p.Obj, p.A, p.B = fd, max(r.F[0], p.Want), r.F[1]
		e.looked(stream, r, p)
	case cabi.OpLseek:
		p.Obj, p.A, p.B = fd, r.F[0], r.F[1]
	case cabi.OpFsync, cabi.OpFdatasync, cabi.OpFstat:
		p.Obj = fd
	case cabi.OpSyncfs:
		p.Obj = fd
		if r.Row.Obj == "" {
			p.Obj = ^uint32(0)
		}
	case cabi.OpSyncrange:
		p.Obj, p.A, p.B = fd, r.F[0], r.F[1]
	case cabi.OpTruncate:
		p.Obj, p.A = fd, r.F[0]
	case cabi.OpFallocate:
		p.Obj, p.A, p.B = fd, r.F[1], r.F[2]
		if plainName(r.Row.Name) == "posix_fallocate" {
			p.A, p.B = r.F[0], r.F[1]
		}
	case cabi.OpFadvise:
		p.Obj, p.A = fd, r.F[2]
	case cabi.OpDup:
		p.Obj, p.A = fd, r.Ret
		if r.Ret < 0 {
			e.other(r, p, dur)
			return
		}
		if plainName(r.Row.Name) == "dup3" {
			p.B = closedByExec(r.F[1])
		}
	case cabi.OpPipe, cabi.OpSocketpair:
		if r.Ret < 0 {
			e.other(r, p, dur)
			return
		}
		p.Obj, p.A, p.B = uint32(r.F[0]), r.F[1], closedByExec(r.F[2])
	case cabi.OpFlock:
		p.Obj, p.A = e.lockFd(r), r.F[0]
	case cabi.OpFcntlLock:
		e.fcntl(r, p, dur, fd)
		return
	case cabi.OpStat:
		p.Obj = first
		if e.opt.Path == PathFree && p.Want != 0 { // where there is one here it may be empty
			p.Flags |= cabi.OpState
		}
		e.size = len(e.window)
	case cabi.OpAccess, cabi.OpUnlink, cabi.OpMkdir, cabi.OpRmdir:
		p.Obj = first
	case cabi.OpTruncateName:
		p.Obj, p.A = first, r.F[0]
	case cabi.OpRename, cabi.OpLink:
		p.Obj, p.A = first, int64(second)
	case cabi.OpSendfile, cabi.OpCopyrange:
		out := packed(uint64(r.F[1]))
		p.Obj, p.A, p.B = fd, int64(int32(e.kind(out).at)), max(r.Ret, 0)
	case cabi.OpAccept, cabi.OpConnect:
		// Which listener it is, and whether the other end is inside, says the structured result behind the event.
		e.ends = len(e.window)
		p.A, p.B = r.Ret, dur
		if o.code == cabi.OpConnect {
			p.A = int64(fd)
		}
		p.Code = cabi.OpCPU
	case cabi.OpShutdown:
		p.Obj, p.A = fd, r.F[0]
	case cabi.OpYield:
	default: // opChdir, opMmap
		e.other(r, p, dur)
		return
	}
	e.put(p)
}

// result is what came of an event, as the engine compares it: at least 0, or -errno.
func result(r *trace.Record) int64 {
	if r.Row.Ret == trace.RetErr {
		return -r.Ret
	}
	return r.Ret
}

// closedByExec is 1 where the flags of a call that makes descriptors say that exec closes them: O_CLOEXEC and SOCK_CLOEXEC are one number.
func closedByExec(flags int64) int64 { return flags >> 19 & 1 }

func sleeps(code uint16) bool {
	switch code {
	case opCondwait, opSleepFor, opPoll, opWaitpid, cabi.OpJoin, cabi.OpBarrier, cabi.OpSemwait, cabi.OpSemtimed, cabi.OpFsync, cabi.OpFdatasync, cabi.OpSyncfs, cabi.OpTake, cabi.OpAccept, opTakes, opSignal:
		return true
	}
	return false
}

// timeLimit is how long a call with a limit waits at most: home's time where that was over, otherwise nothing is known of it.
func timeLimit(want, dur int64) int64 {
	if want == -etimedout {
		return max(dur, 1)
	}
	return 1 << 60
}

// sleepTime is how long a sleep was asked to take.
func sleepTime(r *trace.Record, dur int64) int64 {
	ask := int64(0)
	switch plainName(r.Row.Name) {
	case "sleep":
		ask = r.F[0] * 1e9
	case "usleep":
		ask = r.F[0] * 1000
	case "clock_nanosleep":
		ask = r.F[2]
		if r.F[1]&1 != 0 { // until a time
			return dur - sleepAdd
		}
	default:
		ask = r.F[0]
	}
	if r.Ret != 0 || ask > dur { // interrupted
		return dur - sleepAdd
	}
	return ask
}

// fork makes a process, which may become another program at once.
func (e *emitter) fork(stream *trace.Thread, r *trace.Record, o *op, p *pending, dur int64) {
	made := r.Ret > 0
	switch plainName(r.Row.Name) {
	case "vfork":
		made = true
	case "posix_spawn", "posix_spawnp":
		made = r.Ret == 0
	case "system", "popen", "_IO_popen":
		made = r.F[0] > 0 || r.Ret > 0
	}
	if !made {
		e.other(r, p, dur)
		return
	}
	e.forks[stream.UID]++
	child := e.byFork[forkKey{stream.UID, e.forks[stream.UID]}]
	if child == nil {
		e.other(r, p, dur) // a program that cannot be recorded
		return
	}
	p.Code, p.Obj, p.Want = cabi.OpFork, child.issuedAs().n, 0
	e.put(p)
	switch plainName(r.Row.Name) {
	case "vfork":
		e.vforked = child
	case "popen", "_IO_popen":
		e.popened[r.F[0]] = child
	case "system":
		e.put(&pending{ProgOp: cabi.ProgOp{Code: cabi.OpWaitpid, Obj: child.issuedAs().n}})
	}
}

// waitpid waits for the child that home got.
func (e *emitter) waitpid(r *trace.Record, p *pending, dur int64) {
	var child *group
	if plainName(r.Row.Name) == "pclose" {
		child = e.popened[r.F[0]]
	} else {
		pid := r.Ret
		if plainName(r.Row.Name) == "waitid" {
			pid = r.F[1]
		}
		if pid > 0 {
			for _, g := range e.groups {
				if int64(g.pid) == pid && g.parent != nil && g.root == e.th.group.root {
					child = g
				}
			}
		}
	}
	if child == nil {
		e.other(r, p, dur)
		return
	}
	p.Code, p.Obj, p.Want = cabi.OpWaitpid, child.issuedAs().n, 0
	e.put(p)
}

// The commands of fcntl that are issued.
const (
	fDupfd     = 0
	fSetfd     = 2
	fGetlk     = 5
	fSetlk     = 6
	fSetlkw    = 7
	fOfdGetlk  = 36
	fOfdSetlk  = 37
	fOfdSetlkw = 38
	fDupfdExec = 1030
)

// lockFd is the descriptor of a call that locks a part of a file. Who got the lock has its place in the file's order: the event's
// object is that, and the descriptor's stands beside it.
func (e *emitter) lockFd(r *trace.Record) uint32 {
	if r.F[2] != 0 {
		return uint32(e.kind(packed(uint64(r.F[2]))).at)
	}
	return uint32(e.fdOf(r))
}

func (e *emitter) fcntl(r *trace.Record, p *pending, dur int64, fd uint32) {
	p.Obj = fd
	if plainName(r.Row.Name) == "lockf" {
		cmd := int64(fSetlkw)
		kind := int64(1)
		switch r.F[0] {
		case 0:
			kind = 2
		case 2:
			cmd = fSetlk
		case 3:
			e.other(r, p, dur)
			return
		}
		p.Obj, p.A, p.B = e.lockFd(r), cmd<<8|kind, 0
		e.put(p)
		e.put(&pending{ProgOp: cabi.ProgOp{Code: cabi.OpMore, A: r.F[1], B: 1}})
		return
	}
	switch r.F[0] {
	case fGetlk, fOfdGetlk:
		if p.Want != 0 || e.opt.Path != PathFree {
			p.Flags, p.Site = 0, 0
			e.other(r, p, dur)
			return
		}
		p.A = r.F[0] << 8
		p.Flags |= cabi.OpState
		e.lock = len(e.window)
		e.put(p)
		e.put(&pending{ProgOp: cabi.ProgOp{Code: cabi.OpMore}})
	case fSetlk, fSetlkw, fOfdSetlk, fOfdSetlkw:
		p.Obj, p.A = e.lockFd(r), r.F[0]<<8
		e.lock = len(e.window)
		e.put(p)
		e.put(&pending{ProgOp: cabi.ProgOp{Code: cabi.OpMore}})
	case fDupfd, fDupfdExec:
		if r.Ret < 0 {
			e.other(r, p, dur)
			return
		}
		p.Code, p.A, p.Flags, p.Site, p.Want = cabi.OpDup, r.Ret, 0, 0, 0
		e.put(p)
		if r.F[0] == fDupfdExec {
			e.put(&pending{ProgOp: cabi.ProgOp{Code: cabi.OpCloexec, Obj: uint32(r.Ret), A: 1}})
		}
	case fSetfd:
		p.Code, p.A, p.Flags, p.Site, p.Want = cabi.OpCloexec, r.F[1]&1, 0, 0, 0
		e.put(p)
	default:
		p.Flags, p.Site = 0, 0
		e.other(r, p, dur)
	}
}

// input takes the structured result behind an event.
func (e *emitter) input(r *trace.Record) {
	if e.row == nil || e.lock < 0 && e.ends < 0 && e.size < 0 {
		return
	}
	if i := e.lock; i >= 0 && i+1 < len(e.window) {
		e.lock = -1
		if l, ok := lockOf(e.row, r); ok {
			e.locked(&e.window[i], &e.window[i+1], l)
		}
	}
	if e.ends < 0 && e.size < 0 {
		return
	}
	f, ok := trace.ParseInput(nil, e.row, 0, r.Text[0])
	if !ok {
		return
	}
	if i := e.size; i >= 0 && i < len(e.window) {
		e.found(&e.window[i], f)
	}
	e.size = -1
	field := func(name string) string {
		for i := range f {
			if f[i].Name == name {
				return string(f[i].Text)
			}
		}
		return ""
	}
	if i := e.ends; i >= 0 && i < len(e.window) {
		local, peer := field("local"), field("peer")
		w := &e.window[i]
		accepted := plainName(e.row.Name) != "connect"
		key, at := local+" "+peer, local
		if !accepted {
			key, at = peer+" "+local, peer
		}
		if e.connections[key] == 3 {
			n, ok := e.listeners[at]
			if !ok {
				n = uint32(len(e.listeners))
				e.listeners[at] = n
			}
			if accepted {
				w.Code, w.Obj = cabi.OpAccept, n
			} else {
				w.Code, w.Obj, w.A = cabi.OpConnect, uint32(w.A), int64(n)
			}
		} else if w.B > 100_000 {
			e.info.Outside += nsOf(float64(w.B))
			w.Code, w.Flags, w.A = cabi.OpSleep, cabi.OpHome, w.B-sleepAdd
		}
		w.B = 0
		e.ends = -1
	}
}

// found completes the operation of a call that was told what a name stands for.
func (e *emitter) found(w *pending, f []trace.Field) {
	if w.Flags&cabi.OpChoice == 0 {
		return
	}
	w.Flags |= cabi.OpState
	regular, empty := false, false
	for i := range f {
		switch n := f[i].Num; f[i].Name {
		case "mode":
			regular = n&modeType == modeFile
		case "size":
			empty = n == 0
		}
	}
	if regular && empty {
		w.Want = -cabi.ResultEmpty
	}
}

// partLock is a lock of a part of a file, as a call asked for it or was told of it.
type partLock struct{ kind, whence, start, length int64 }

// asked is a part of a file that a call asks for.
type asked struct{ start, length, whence int64 }

const lockWrite, lockNone = 1, 2

// asksForLock tells whether a call wants to know who has a lock.
func asksForLock(r *trace.Record) bool {
	return plainName(r.Row.Name) == "fcntl" && r.Ret == 0 && (r.F[0] == fGetlk || r.F[0] == fOfdGetlk)
}

func lockOf(row *trace.Row, r *trace.Record) (l partLock, ok bool) {
	f, ok := trace.ParseInput(nil, row, 0, r.Text[0])
	if !ok {
		return l, false
	}
	for i := range f {
		switch n := int64(f[i].Num); f[i].Name {
		case "type":
			l.kind = n
		case "whence":
			l.whence = n
		case "start":
			l.start = n
		case "len":
			l.length = n
		}
	}
	return l, true
}

// locked completes the operation w, and more behind it, of a call whose lock is known now.
func (e *emitter) locked(w, more *pending, l partLock) {
	site := e.lockSite
	if w.Flags&cabi.OpState == 0 {
		w.A |= l.kind & 0xff
		site.part, site.kind = l.start, l.kind
	} else {
		// What is told is the lock that is in the way: which part was asked for, other answers at that place tell.
		if w.Want = 0; l.kind != lockNone {
			w.Want = -cabi.ResultHeld
			if a, ok := e.asked[site]; ok {
				l = partLock{lockWrite, a.whence, a.start, a.length}
			}
		}
		w.A |= lockWrite
	}
	w.B, more.A, more.B = l.start, l.length, l.whence
	if w.Flags&cabi.OpChoice != 0 {
		w.Site = e.siteNumber(site)
	}
}

// early lets a thread that joins another with a mutex held wait for it before it takes the mutex, too: at home it joined who had
// come to its end, and who that is may be another one here, which needs the mutex for its end.
func (e *emitter) early(joined uint32) {
	if len(e.held) == 0 {
		return
	}
	for i := len(e.window) - 1; i >= 0; i-- {
		if w := &e.window[i]; w.Code == cabi.OpLock && w.Obj == e.held[0] {
			e.window = slices.Insert(e.window, i, pending{ProgOp: cabi.ProgOp{Code: cabi.OpJoin, Obj: joined}})
			return
		}
	}
}

// hold notes which mutexes the thread has.
func (e *emitter) hold(code uint16, obj uint32, want int64) {
	if want != 0 {
		return
	}
	if code != cabi.OpUnlock {
		if len(e.held) < 64 {
			e.held = append(e.held, obj)
		}
		return
	}
	for i := len(e.held) - 1; i >= 0; i-- {
		if e.held[i] == obj {
			e.held = append(e.held[:i], e.held[i+1:]...)
			return
		}
	}
}

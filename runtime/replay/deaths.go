package replay

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"syscall"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// deaths finds the signals that ended processes: who waited for them was told, also of one that was on its way to its own
// end. One that did not end itself, and that nobody waited for, ends as if it was killed.
func deaths(t *trace.Trace) (map[*trace.Proc]uint32, error) {
	dead := map[*trace.Proc]uint32{}
	became := map[uint32]bool{} // by number: another program
	for _, p := range t.Procs {
		if p.How == cabi.ProcExeced && p.Parent != nil && p.Parent.PID == p.PID {
			became[p.Parent.Number] = true
		}
		if p.How != cabi.ProcRoot { // how the run ended is replayd's affair
			dead[p] = uint32(syscall.SIGKILL)
		}
	}
	for _, th := range t.Threads {
		if dead[th.Proc] == 0 {
			continue
		}
		ended, err := t.Ended(th)
		if err != nil {
			return nil, err
		}
		if ended {
			dead[th.Proc] = 0
		}
	}
	pids := map[int64][]*trace.Proc{} // that had this id, one after the other
	parents := map[*trace.Proc]bool{}
	for _, p := range t.Procs {
		if became[p.Number] {
			delete(dead, p)
		}
		if _, ok := dead[p]; !ok {
			continue
		}
		pids[int64(p.PID)] = append(pids[int64(p.PID)], p)
		for up := p.Parent; up != nil; up = up.Parent {
			parents[up] = true
		}
	}
	if sig := Killed(t); sig != 0 && len(t.Procs) > 0 { // nobody in the run waits for what its first process has become
		for _, p := range t.Procs {
			if dead[p] != 0 && p.How == cabi.ProcExeced && p.PID == t.Procs[0].PID {
				dead[p] = uint32(sig)
			}
		}
	}
	if len(pids) == 0 {
		return dead, nil
	}
	var threads []*trace.Thread
	for _, th := range t.Threads {
		// A child whose parent became another program is waited for by that.
		if parents[th.Proc] || th.Proc.How == cabi.ProcExeced {
			threads = append(threads, th)
		}
	}
	if len(threads) == 0 {
		return dead, nil
	}
	return dead, waits(t, threads, pids, dead)
}

// nth is a process by its birth: which one of a thread's it is.
type nth struct {
	uid uint32
	n   uint64
}

// waits reads what threads were told of ends by signals.
func waits(t *trace.Trace, threads []*trace.Thread, pids map[int64][]*trace.Proc, dead map[*trace.Proc]uint32) error {
	born := map[nth]*trace.Proc{}
	for _, p := range t.Procs {
		if _, uid, n := p.Origin(); p.How == cabi.ProcExeced && (p.Parent == nil || p.Parent.PID != p.PID) {
			born[nth{uid, n}] = p
		}
	}
	told := func(pid int64, ws syscall.WaitStatus, keeps bool) {
		list := pids[pid]
		if len(list) == 0 {
			return
		}
		switch {
		case ws.Signaled():
			dead[list[0]] = uint32(ws.Signal())
		case ws.ExitStatus() > 0:
			dead[list[0]] = 0
		case ws == 0: // or it was not asked for
		default:
			return
		}
		if len(list) > 1 && !keeps {
			pids[pid] = list[1:]
		}
	}
	var pipes []pipe
	known, left := map[nth]bool{}, map[uint32]bool{}
	_, err := t.WalkOnly(cabi.SetOf(cabi.Thread), 1, func(th *trace.Thread) trace.Visit {
		var last trace.Record
		var fields []trace.Field
		opened := -1
		return func(r *trace.Record) error {
			row := trace.RowOf(uint64(r.Call))
			switch {
			case r.Tag == cabi.TagFork:
				at := nth{th.UID, r.Nums[0]}
				known[at] = true
				if opened >= 0 {
					pipes[opened].child = born[at]
				}
				opened = -1
			case r.Tag == cabi.TagLeft && trace.RowOf(r.Nums[0]) != nil && trace.RowOf(r.Nums[0]).Name == "system":
				left[th.UID] = true
			case r.Tag == cabi.TagInput && last.Call != 0:
				var ok bool
				if fields, ok = trace.ParseInput(fields, trace.RowOf(uint64(last.Call)), 0, r.Text[0]); !ok || len(fields) < 5 {
					return nil
				}
				if code := int64(fields[1].Num); code == 2 || code == 3 { // CLD_KILLED, CLD_DUMPED
					told(int64(fields[2].Num), syscall.WaitStatus(fields[4].Num&0x7f), last.F[2]&syscall.WNOWAIT != 0)
				}
			case r.Tag == trace.TagEvent:
				last = trace.Record{}
				if row == nil {
					return nil
				}
				switch row.Name {
				case "wait", "__wait":
					told(r.Ret, syscall.WaitStatus(r.F[0]), false)
				case "wait3":
					told(r.Ret, syscall.WaitStatus(r.F[1]), false)
				case "waitpid", "__waitpid", "wait4":
					told(r.Ret, syscall.WaitStatus(r.F[2]), false)
				case "system":
					if n := len(r.Fields); n > 0 && len(r.Fields[n-1].Text) > 0 { // else it was asked whether there is a shell
						told(int64(r.F[0]), syscall.WaitStatus(r.Ret), false)
					}
				case "popen", "_IO_popen":
					if r.Ret >= 0 {
						opened = len(pipes)
						pipes = append(pipes, pipe{proc: th.Proc, at: r.End, fd: r.F[0]})
					}
				case "pclose":
					pipes = append(pipes, pipe{proc: th.Proc, at: r.End, fd: r.F[0], closed: true, status: syscall.WaitStatus(r.Ret)})
				case "waitid":
					last.Call, last.F[2] = r.Call, r.F[2]
				}
			}
			return nil
		}
	}, threads...)
	if err != nil {
		return err
	}
	slices.SortStableFunc(pipes, func(a, b pipe) int { return cmp.Compare(a.at, b.at) })
	open := map[pipe]*trace.Proc{}
	for _, p := range pipes {
		name := pipe{proc: p.proc, fd: p.fd}
		if !p.closed {
			open[name] = p.child
		} else if child := open[name]; child != nil {
			told(int64(child.PID), p.status, false)
		}
	}
	for at, p := range born { // a cancelled system ends what it started itself
		if left[at.uid] && !known[at] {
			for _, p := range pids[int64(p.PID)] {
				dead[p] = 0
			}
		}
	}
	return nil
}

// pipe is a call that opened or closed a stream to a command.
type pipe struct {
	proc   *trace.Proc
	at     uint64 // ticks
	fd     int64
	closed bool
	status syscall.WaitStatus
	child  *trace.Proc
}

// Deaths are processes that a signal ended, by number, and by which.
type Deaths map[uint32]syscall.Signal

// FindDeaths reads them from an index.
func FindDeaths(index []byte) (Deaths, error) {
	var h cabi.Replay
	if _, err := binary.Decode(index, binary.LittleEndian, &h); err != nil {
		return nil, err
	}
	d := Deaths{}
	var p cabi.ReplayProc
	for at, i := h.ProcsAt, uint32(0); i < h.Procs; at, i = at+uint64(binary.Size(p)), i+1 {
		if at > uint64(len(index)) {
			return nil, fmt.Errorf("the index of the re-execution is damaged")
		}
		if _, err := binary.Decode(index[at:], binary.LittleEndian, &p); err != nil {
			return nil, err
		}
		if p.Death != 0 {
			d[p.Number] = syscall.Signal(p.Death)
		}
	}
	return d, nil
}

// Doomed finds the processes that have done all that they did before their end and are still there: nobody of the run
// waits for them. It answers one thread of each.
func (d Deaths) Doomed(s *State) map[uint32]syscall.Signal {
	out := map[uint32]syscall.Signal{}
	if len(d) == 0 {
		return out
	}
	busy := map[uint32]bool{}
	one := map[uint32]uint32{}
	for i := range s.Threads {
		th := &s.Threads[i]
		if th.UID == 0 || d[th.Proc] == 0 {
			continue
		}
		if th.State == cabi.TurnNone || th.State != cabi.TurnEnd && th.State != cabi.TurnOver && th.Spent != 1 {
			busy[th.Proc] = true
		} else if th.State != cabi.TurnOver {
			one[th.Proc] = th.UID
		}
	}
	for proc, uid := range one {
		if !busy[proc] {
			out[uid] = d[proc]
		}
	}
	return out
}

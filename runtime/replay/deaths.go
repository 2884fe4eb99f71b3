package replay

import (
	"syscall"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// deaths finds the signals that ended processes: who waited for them was told. One that did not end itself, and that
// nobody waited for, ends as if it was killed.
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
		if ended || became[th.Proc.Number] {
			delete(dead, th.Proc)
		}
	}
	if len(dead) == 0 {
		return dead, nil
	}
	pids := map[int64]*trace.Proc{}
	parents := map[*trace.Proc]bool{}
	for p := range dead {
		pids[int64(p.PID)] = p
		for up := p.Parent; up != nil; up = up.Parent {
			parents[up] = true
		}
	}
	for _, th := range t.Threads {
		// A child whose parent became another program is waited for by that.
		if !parents[th.Proc] && th.Proc.How != cabi.ProcExeced {
			continue
		}
		if err := waits(t, th, pids, dead); err != nil {
			return nil, err
		}
	}
	return dead, nil
}

// waits reads what a thread was told of ends by signals.
func waits(t *trace.Trace, th *trace.Thread, pids map[int64]*trace.Proc, dead map[*trace.Proc]uint32) error {
	var last trace.Record
	var fields []trace.Field
	_, err := t.Walk(1, func(*trace.Thread) trace.Visit {
		return func(r *trace.Record) error {
			row := trace.RowOf(uint64(r.Call))
			switch {
			case r.Tag == cabi.TagInput && last.Call != 0:
				var ok bool
				if fields, ok = trace.ParseInput(fields, trace.RowOf(uint64(last.Call)), 0, r.Text[0]); !ok || len(fields) < 5 {
					return nil
				}
				if p := pids[int64(fields[2].Num)]; p != nil && (int64(fields[1].Num) == 2 || int64(fields[1].Num) == 3) { // CLD_KILLED, CLD_DUMPED
					dead[p] = uint32(fields[4].Num)
				}
			case r.Tag == trace.TagEvent:
				last = trace.Record{}
				if row == nil {
					return nil
				}
				status := uint64(0)
				switch row.Name {
				case "wait", "__wait":
					status = uint64(r.F[0])
				case "wait3":
					status = uint64(r.F[1])
				case "waitpid", "__waitpid", "wait4":
					status = uint64(r.F[2])
				case "waitid":
					last.Call = r.Call
					return nil
				default:
					return nil
				}
				if p := pids[r.Ret]; p != nil {
					if ws := syscall.WaitStatus(status); ws.Signaled() {
						dead[p] = uint32(ws.Signal())
					} else if ws.Exited() {
						dead[p] = 0
					}
				}
			}
			return nil
		}
	}, nil, th)
	return err
}

// Deaths are processes that a signal ended, by number, and by which.
type Deaths map[uint32]syscall.Signal

// FindDeaths reads them from a trace.
func FindDeaths(t *trace.Trace) (Deaths, error) {
	dead, err := deaths(t)
	d := Deaths{}
	for p, sig := range dead {
		if sig != 0 {
			d[p.Number] = syscall.Signal(sig)
		}
	}
	return d, err
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

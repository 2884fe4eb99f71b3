package demand

import (
	"slices"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// signals are those that threads of the run send to threads that wait for them (sigwait): who waits for one waits, when it is issued,
// until it is sent there, at a semaphore.
type signals struct {
	sent, taken map[signalKey][]uint64 // when, in ticks
	inside      map[signalKey]bool     // each that was taken was sent before by the run, and each that was sent was taken
}

// signalKey is a process and a signal.
type signalKey struct{ group, sig uint32 }

const signalsMost = 64

// signalOf is what a call sends or takes.
func (c *compiler) signalOf(th *thread, r *trace.Record) (k signalKey, sends, ok bool) {
	sig, to := int64(0), th.group
	switch r.Row.Name {
	case "pthread_kill", "pthread_sigqueue":
		t := c.byUID[r.Obj.UID]
		if t == nil || r.Ret != 0 {
			return k, false, false
		}
		to, sig, sends = t.group, r.F[1], true
	case "kill", "sigqueue":
		i := slices.IndexFunc(c.groups, func(g *group) bool { return int64(g.pid) == r.F[0] })
		if i < 0 || r.Ret != 0 {
			return k, false, false
		}
		to, sig, sends = c.groups[i], r.F[1], true
	case "sigwait":
		sig = r.F[1]
	default:
		sig = r.Ret
	}
	return signalKey{to.n, uint32(sig)}, sends, sig > 0 && sig <= signalsMost
}

// signal takes such a call.
func (s *surveyor) signal(th *thread, r *trace.Record) {
	k, sends, ok := s.signalOf(th, r)
	if !ok {
		return
	}
	if sends {
		s.signals.sent[k] = append(s.signals.sent[k], r.Begin)
	} else {
		s.signals.taken[k] = append(s.signals.taken[k], max(r.Begin, r.End))
	}
}

// known finds those that stay inside. Of one that came twice before it was taken once, or was taken by a handler, nobody knows which.
func (s *signals) known() {
	for k, taken := range s.taken {
		sent := s.sent[k]
		slices.Sort(sent)
		slices.Sort(taken)
		s.inside[k] = len(sent) == len(taken)
		for i := range min(len(sent), len(taken)) {
			s.inside[k] = s.inside[k] && sent[i] <= taken[i]
		}
	}
}

// signalStays tells whether such a call is issued.
func (e *emitter) signalStays(r *trace.Record) bool {
	k, _, ok := e.signalOf(e.th, r)
	return ok && e.signals.inside[k]
}

// signalled issues one.
func (e *emitter) signalled(r *trace.Record, p *pending) {
	k, sends, _ := e.signalOf(e.th, r)
	if p.Code, p.Want = cabi.OpSemwait, 0; sends {
		p.Code = cabi.OpSempost
	}
	// A number that no object of the run has: threads are numbered from 1.
	p.Obj = e.object(e.groups[k.group], trace.Object{Num: uint64(k.sig)}, cabi.ObjSem)
	e.objs[p.Obj].Flags |= cabi.ObjectShared
	e.put(p)
}

package issued

import (
	"slices"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// begin opens the stream that a lane is in.
func (m *maker) begin(l *lane, at uint64) {
	th := l.streams[l.stream].th
	l.uid, l.events, l.data = th.UID, 0, 0
	l.enc = trace.NewEncoder(th.UID, th.Proc.Number, at, m.w.Put)
	n := th.Proc.Number
	if s := m.born[n]; s != nil && m.procs[n] == nil {
		m.procs[n] = s
		delete(m.born, n)
	}
	if m.procs[n] == nil {
		m.procs[n] = newSpace(n)
		if parent, _, _ := th.Proc.Origin(); m.procs[parent] != nil {
			m.procs[n].inherit(m.procs[parent])
		}
	}
	l.space = m.procs[n]
}

// step writes a step.
func (m *maker) step(l *lane, s *step) error {
	if l.enc == nil {
		m.begin(l, s.at(begins(s.u)))
	}
	if s.names {
		r := s.u.event
		m.names(l, &r, ruleOf(r.Row))
		return l.enc.Err()
	}
	if !s.wait {
		for i := range s.u.before {
			m.control(l, s, s.u.before[i])
		}
	}
	if s.u.is {
		if err := m.event(l, s); err != nil {
			return err
		}
	} else if l.stream+1 < len(l.streams) {
		// Another program goes on in the process.
		if err := l.enc.Flush(0); err != nil {
			return err
		}
		l.stream++
		l.enc = nil
	}
	if s.cut {
		m.told(l)
	}
	if l.enc == nil {
		return nil
	}
	return l.enc.Err()
}

// control writes a record that belongs to no event.
func (m *maker) control(l *lane, s *step, r trace.Record) {
	r.Begin = s.at(r.Begin)
	r.End = r.Begin
	switch r.Tag {
	case cabi.TagObject:
		o := trace.Object{UID: uint32(r.Nums[0]), Num: r.Nums[1]}
		was := m.uids[l.uid]
		n := m.name(l, o)
		if n == nil || m.uids[l.uid] != was || n.id.UID != l.uid && o.UID == s.stream.th.UID {
			return // just said, or another has said it
		}
		r.Nums[0], r.Nums[1] = uint64(n.id.UID), n.id.Num
	case cabi.TagCPU:
		r.Nums[0] = l.cpu
	case cabi.TagClock:
		since := uint64(float64(r.Begin-min(m.log.Begin, r.Begin)) * 1e9 / float64(m.log.Hz))
		r.Nums[0], r.Nums[1], r.Nums[2] = r.Begin, m.src.Trace.Mono0()+since, uint64(m.src.Trace.Clock.Real0)+since
	case cabi.TagThread:
		if r.Nums[0] != uint64(l.uid) {
			return
		}
	case cabi.TagExit:
		r.Nums[5] = m.used(l.space.proc)
	}
	l.enc.Copy(&r)
}

// used is the CPU time of a process up to now.
func (m *maker) used(proc uint32) (ns uint64) {
	for _, l := range m.lanes {
		if l.space != nil && l.space.proc == proc {
			ns += l.cpu
		}
	}
	return ns
}

// names gives the objects of an event the names that they have in the issue. It returns its object, and the other one of a wait.
func (m *maker) names(l *lane, event *trace.Record, rule *rowRule) (o, mutex *named) {
	r := *event
	refs := func() {
		for i, is := range rule.refs {
			if !is || r.F[i] == 0 {
				continue
			}
			if n := m.name(l, unpacked(r.F[i])); n != nil {
				event.F[i], mutex = packed(n.id), n
			}
		}
	}
	if rule.first {
		refs()
	}
	if o = m.name(l, r.Obj); o != nil {
		event.Obj = o.id
	}
	if !rule.first {
		refs()
	}
	for i, is := range rule.tail {
		if is && i < len(r.Fields) {
			if n := m.name(l, unpacked(int64(r.Fields[i].Num))); n != nil {
				event.Fields = slices.Clone(r.Fields)
				event.Fields[i].Num = uint64(packed(n.id))
			}
		}
	}
	return o, mutex
}

// event writes a step's event.
func (m *maker) event(l *lane, s *step) error {
	r := s.u.event
	r.Begin, r.End = s.begin, s.end
	rule := ruleOf(r.Row)
	if s.given {
		if r.Row != nil && r.Row.Ret == trace.RetErr {
			r.Ret = -s.ret
		} else if kindOf(r.Ret) != kindOf(s.ret) {
			r.Ret = s.ret
		}
	}
	if s.given && r.Ret < 0 && rule.refs[2] && rule.order == orderTake && r.F[2] != 0 { // a lock that nobody was seen not to get
		r.Obj, r.F[2], r.Seq = unpacked(r.F[2]), 0, 0
	}
	if s.forks {
		if th := m.h.proc(s.fork); th != nil && th.How == cabi.ProcForked {
			m.born[s.fork] = l.space.fork(s.fork)
		}
	}
	o, mutex := m.names(l, &r, rule)
	if r.Row != nil {
		// What another process did: it is told its own numbers.
		switch th := l.streams[l.stream].th; r.Row.Name {
		case "getpid":
			r.Ret = int64(th.Proc.PID)
		case "getppid":
			r.Ret = int64(th.Proc.PPID)
		case "gettid":
			r.Ret = int64(th.TID)
		}
		if o != nil && r.Row.Obj == "barrier" && rule.order == orderNone {
			o.count = uint64(r.F[1])
		}
		place(&r, rule, o, mutex, s.given)
		if s.own {
			m.timed(&r, s, rule)
		}
	}
	l.call = r.Row
	l.enc.Copy(&r)
	l.events++
	for i := range s.u.parts {
		if m.untold(l, &s.u.event, &s.u.parts[i]) {
			continue
		}
		if err := m.part(l, s, s.u.parts[i]); err != nil {
			return err
		}
	}
	l.space.files(m.h, &s.u.event)
	for i := range s.u.after {
		m.control(l, s, s.u.after[i])
	}
	return nil
}

// Calls that take a place and return in less than this did not wait.
const waitedNS = 2000

// timed says when an operation's own event ended, and whether it had to wait.
func (m *maker) timed(r *trace.Record, s *step, rule *rowRule) {
	if rule.order == orderWait && s.end > s.begin { // also where the one at home did not wait: what it takes would be taken for CPU time
		r.Timed = true
	}
	if rule.order != orderTake && rule.order != orderRead && rule.order != orderWrite || r.Row.Class != cabi.Sync {
		return
	}
	r.Note &^= cabi.NoteWaited
	r.Timed = float64(s.end-s.begin)*1e9/float64(m.log.Hz) > waitedNS
	if r.Timed {
		r.Note |= cabi.NoteWaited
	} else {
		r.Begin, r.End = s.end, s.end
	}
}

// part writes what belongs to the event just written.
func (m *maker) part(l *lane, s *step, r trace.Record) error {
	if r.Tag == cabi.TagBigData {
		b, err := m.src.Trace.Data(r.Thread.UID, r.Nums[0])
		if err != nil {
			return err
		}
		th := l.streams[l.stream].th
		if err := m.w.Put(trace.MemChunk{Header: trace.Header{Kind: cabi.ChunkData, UID: th.UID, Proc: th.Proc.Number, Seq: l.data, Base: s.end}, Payload: b}); err != nil {
			return err
		}
		r.Nums[0] = l.data
		l.data++
	}
	l.enc.Copy(&r)
	return nil
}

// proc is a process of home's by its number, or nil.
func (h *home) proc(n uint32) *trace.Proc {
	for _, p := range h.t.Procs {
		if p.Number == n {
			return p
		}
	}
	return nil
}

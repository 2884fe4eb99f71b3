// Package graft joins the part of a trace that a re-execution repeated with what the program did once its harness was off
// into one trace, as if that had been recorded from its start.
//
// A thread's stream is its part before the cut, then what it recorded. Names of objects, numbers of threads and places in orders go
// on over the cut by themselves, as a re-execution keeps them as a recording does; numbers of chunks, stamps, CPU times and
// call sites are brought to those of the first part: the later part begins, by its stamps, where the latest thread of the
// first one was.
package graft

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"path"
	"slices"
	"strings"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// Cut says how far each thread of the first part came.
type Cut struct {
	Events map[uint32]uint64 // of each thread that had begun, by UID: how many of its events were repeated
	Inside map[uint32]bool   // it stood before or in its next one
}

// Join makes the trace dir, a directory that is not there yet. What completes a recording is the caller's.
func Join(first, rest *trace.Trace, cut Cut, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	err := (&joiner{first: first, rest: rest, cut: cut, dir: dir}).join()
	if err != nil {
		os.RemoveAll(dir)
		return fmt.Errorf("joining %s: %w", first.Path, err)
	}
	return nil
}

// joiner is the state of Join.
type joiner struct {
	first, rest *trace.Trace
	cut         Cut
	dir         string

	threads map[uint32]*stem
	at      uint64 // ticks of the first part at which the later one begins
	from    uint64 // and of the later part
	before  map[string]bool
	moved   map[*trace.Proc]map[uint64]uint64 // by module of the later part: what its addresses are more in the first
}

// stem is what is known of a thread's first part.
type stem struct {
	end    uint64 // ticks, of its last event
	cpu    uint64 // ns of CPU time that it had used by then, as far as that was recorded
	data   uint64 // data chunks
	chunks uint64
	shift  uint64 // of CPU times of the later part
}

func (j *joiner) join() error {
	j.threads, j.before, j.moved = map[uint32]*stem{}, map[string]bool{}, map[*trace.Proc]map[uint64]uint64{}
	for _, th := range j.first.Threads {
		if n := j.cut.Events[th.UID]; n > 0 {
			if err := j.look(th, n); err != nil {
				return err
			}
		}
	}
	j.from = ^uint64(0)
	for _, th := range j.rest.Threads {
		j.from = min(j.from, th.First)
		if err := j.modules(th); err != nil {
			return err
		}
	}
	w, err := trace.NewWriter(j.dir)
	if err != nil {
		return err
	}
	_, err = j.first.RewriteParts(w, j.stays, nil)
	if err == nil {
		_, err = j.rest.RewriteParts(w, j.follows, nil)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	if err := j.kept(); err != nil {
		return err
	}
	m := *j.first.Meta
	m.Run, m.State, m.Ended, m.Totals = j.rest.Meta.Run, trace.StateRecording, nil, nil
	m.Options.Flight, m.Options.Chaos = 0, nil
	if m.Issued != nil {
		was := m.Issued
		m.Issued = &trace.Issued{Run: was.Run, Target: was.Target, Scale: was.Scale, Upto: map[uint32]uint64{}}
		for uid, n := range j.cut.Events {
			if n = min(n, was.Events(uid)); n > 0 {
				m.Issued.Upto[uid] = n
			}
		}
	}
	return trace.WriteMeta(j.dir, &m)
}

// look reads a thread's first part, and on to the next reading of its CPU time: of what the thread had used at the cut its share of
// the time between calls tells, as it may have waited for a processor.
func (j *joiner) look(th *trace.Thread, events uint64) error {
	s := &stem{}
	j.threads[th.UID] = s
	var gap, before uint64 // ticks between calls since the last reading; those of them before the cut
	last := th.First
	past := func(to uint64) {
		gap += to - min(to, last)
		last = max(last, to)
	}
	it := j.first.Iter(th)
	var r trace.Record
	for n := uint64(0); ; {
		err := it.Next(&r)
		if err == io.EOF {
			s.cpu += ns(j.first, before)
			break
		}
		if err != nil {
			return err
		}
		switch r.Tag {
		case trace.TagEvent:
			n++
			past(r.Begin)
			last = max(last, r.End)
			if n <= events {
				s.end = r.End
				j.touches(th, &r)
			}
			if n <= events || n == events+1 && j.cut.Inside[th.UID] { // it ran up to there
				before = gap
			}
		case cabi.TagCPU:
			past(r.Begin)
			if n < events {
				s.cpu, gap, before = r.Nums[0], 0, 0
				continue
			}
			if gap > 0 {
				s.cpu += uint64(float64(r.Nums[0]-min(r.Nums[0], s.cpu)) * float64(before) / float64(gap))
			}
			j.at = max(j.at, s.end)
			return nil
		case cabi.TagBigData:
			if n <= events {
				s.data = max(s.data, r.Nums[0]+1)
			}
		case cabi.TagKept:
			if n < events {
				j.before[string(r.Text[0])] = true
			}
		}
	}
	j.at = max(j.at, s.end)
	return nil
}

func ns(t *trace.Trace, ticks uint64) uint64 { return uint64(t.Clock.NS(ticks)) }

// looks are disk calls that leave the files that they name as they were.
var looks = []string{"access", "eaccess", "euidaccess", "stat", "lstat", "fstat", "__x", "__l", "__f", "newfstat", "opendir", "readlink", "realpath", "chdir", "statfs", "statvfs", "getxattr", "lgetxattr",
	"listxattr", "faccess", "scandir", "glob", "pathconf", "inotify"}

// touches notes names that may stand for other files, or changed ones, since: a later recording takes what is there then
// for what was there before the run.
func (j *joiner) touches(th *trace.Thread, r *trace.Record) {
	if r.Row == nil || r.Row.Class != cabi.Disk {
		return
	}
	if slices.ContainsFunc(looks, func(p string) bool { return strings.HasPrefix(r.Row.Name, p) }) {
		return
	}
	const reads = 3 | 0o100 | 0o1000 // access mode, O_CREAT, O_TRUNC
	if strings.HasPrefix(r.Row.Name, "open") && r.F[0]&reads == 0 {
		return
	}
	for i := range r.Fields {
		if r.Fields[i].Kind == trace.FieldPath {
			name := string(r.Fields[i].Text)
			if !path.IsAbs(name) {
				name = path.Join(th.Proc.Cwd, name)
			}
			j.before[path.Clean(name)] = true
		}
	}
}

// modules finds what lies elsewhere in the later part than in the first one: addresses of a re-execution are not random.
func (j *joiner) modules(th *trace.Thread) error {
	it := j.rest.Iter(th)
	var r trace.Record
	for {
		err := it.Next(&r)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if r.Tag == trace.TagEvent {
			return nil
		}
		j.rest.Learn(th, &r)
	}
}

// home is the process of the first part whose modules a process of the later part has, too.
func (j *joiner) home(p *trace.Proc) *trace.Proc {
	for hops := 0; p != nil && hops < 1<<10; hops++ {
		for _, q := range j.first.Procs {
			if q.Number == p.Number {
				return q
			}
		}
		if p.How != cabi.ProcForked {
			return nil
		}
		p = p.Parent
	}
	return nil
}

// site is what an address of the later part is in the first one.
func (j *joiner) site(p *trace.Proc, pc uint64) uint64 {
	m := p.Module(pc)
	if m == nil {
		return pc
	}
	known := j.moved[p]
	if known == nil {
		known = map[uint64]uint64{}
		j.moved[p] = known
	}
	by, ok := known[m.Low]
	if !ok {
		for q := j.home(p); q != nil && !ok; q = q.Parent {
			for _, was := range q.Modules() {
				if was.Path == m.Path {
					by, ok = was.Bias-m.Bias, true
					break
				}
			}
			if q.How != cabi.ProcForked {
				break
			}
		}
		known[m.Low] = by
	}
	return pc + by
}

// stays is what becomes of a thread's first part.
func (j *joiner) stays(th *trace.Thread) trace.Part {
	if th == j.first.Run {
		return trace.Part{}
	}
	s := j.threads[th.UID]
	if s == nil {
		return trace.Part{}
	}
	goesOn := j.rest.ThreadByUID(th.UID) != nil
	p := trace.Part{Edit: func(r *trace.Record) bool { return true }, Upto: j.cut.Events[th.UID]}
	if !goesOn && p.Upto >= j.events(th) {
		p.Upto = 0 // it had come to its end
	}
	inside := j.cut.Inside[th.UID]
	p.Last = func(r *trace.Record) bool { return inside && r.Tag == cabi.TagObject }
	p.Head = func(h *trace.Header) {
		h.Seq = s.chunks
		s.chunks++
		if goesOn {
			h.Flags &^= cabi.ChunkLast
		}
	}
	return p
}

func (j *joiner) events(th *trace.Thread) uint64 { return j.first.EventsBetween(th, 0, 1<<62) }

// follows is what becomes of a thread's later part.
func (j *joiner) follows(th *trace.Thread) trace.Part {
	if th == j.rest.Run {
		return trace.Part{}
	}
	s := j.threads[th.UID]
	begun := s != nil
	if !begun {
		s = &stem{}
	}
	known := j.home(th.Proc)
	first := true
	p := trace.Part{Base: j.stamp, Data: s.data}
	p.Head = func(h *trace.Header) {
		h.Seq = s.chunks
		s.chunks++
	}
	p.Edit = func(r *trace.Record) bool {
		n := &r.Nums
		switch r.Tag {
		case trace.TagEvent:
			if r.Row != nil && r.Row.Name == "__cxa_guard_acquire" { // told by how far it is from the place of the call
				r.F[0] = int64(j.site(th.Proc, uint64(r.F[0])))
			}
		case cabi.TagKey:
			n[2] = j.site(th.Proc, n[2])
		case cabi.TagThread, cabi.TagProc:
			return !begun
		case cabi.TagModule:
			return known == nil || known.Number != th.Proc.Number || j.site(th.Proc, n[0]) == n[0]
		case cabi.TagClock:
			n[0] = j.stamp(n[0])
			since := j.first.Clock.Since(n[0])
			n[1], n[2] = j.first.Mono0()+uint64(since), uint64(j.first.Clock.Real0+since)
		case cabi.TagCPU:
			if first && begun {
				s.shift = s.cpu - n[0]
			}
			first = false
			n[0] += s.shift
		case cabi.TagKept:
			return !j.before[string(r.Text[0])]
		case cabi.TagWas:
			return false // of what it says the first part knows the owner and the mode, or they are as now
		}
		return true
	}
	return p
}

// stamp is what a stamp of the later part is in the first one.
func (j *joiner) stamp(x uint64) uint64 {
	hi, lo := bits.Mul64(x-min(x, j.from), j.first.Clock.Hz)
	if hi >= j.rest.Clock.Hz {
		return j.at // years
	}
	n, _ := bits.Div64(hi, lo, j.rest.Clock.Hz)
	return n + j.at
}

// kept copies the files as they were before the run.
func (j *joiner) kept() error {
	done := map[string]bool{}
	var failed error
	for _, t := range []*trace.Trace{j.first, j.rest} {
		mine := map[string]bool{}
		err := t.CopyKept(j.dir, func(err error) { failed = cmp.Or(failed, err) }, func(name string, _ int64, _ []byte) bool {
			mine[name] = !done[name]
			return mine[name]
		})
		if err != nil {
			return err
		}
		for name := range mine {
			done[name] = true
		}
	}
	return failed
}

package issued

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// Beside makes the trace dir, a directory that is not there yet, of a run and of what other runs of the same program did: their
// threads lie beside its own, with numbers behind its. Nobody starts them. What they did in contexts that the run did not come to
// is known to who compiles it (demand), and can be told in the trace of its issue.
func Beside(main *trace.Trace, others []*trace.Trace, dir string) error {
	if err := main.Meta.Whole(); err != nil {
		return fmt.Errorf("%s: %w", main.Path, err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	err := beside(main, others, dir)
	if err != nil {
		os.RemoveAll(dir)
	}
	return err
}

func beside(main *trace.Trace, others []*trace.Trace, dir string) error {
	w, err := trace.NewWriter(dir)
	if err != nil {
		return err
	}
	m := *main.Meta
	if m.Beside != nil {
		return fmt.Errorf("%s has other runs beside it already", main.Path)
	}
	s := shift{}
	s.count(main)
	m.Beside = &trace.Beside{UID: s.uid, Proc: s.proc}
	mine, err := locksOf(main)
	if err != nil {
		return errors.Join(err, w.Close())
	}
	_, err = main.Rewrite(w, func(*trace.Thread) trace.Edit { return func(*trace.Record) bool { return true } }, nil)
	for _, t := range others {
		if err != nil {
			break
		}
		s.main, s.from = main, t
		var theirs map[string]trace.Object
		if theirs, err = locksOf(t); err != nil {
			break
		}
		s.locks = map[trace.Object]trace.Object{}
		for name, o := range theirs {
			if as, ok := mine[name]; ok {
				s.locks[o] = as
			}
		}
		if s.uid > 1<<23 || s.proc > 1<<23 { // names of objects have room for 2^24
			break
		}
		at := s
		_, err = t.RewriteParts(w, at.part, nil)
		s.count(t)
	}
	err = errors.Join(err, w.Close())
	if err == nil {
		err = main.CopyKept(dir, func(e error) { err = errors.Join(err, e) }, nil)
	}
	if err != nil {
		return err
	}
	return trace.WriteMeta(dir, &m)
}

// shift is by how much the numbers of another run grow.
type shift struct {
	main, from *trace.Trace
	uid, proc  uint32
	locks      map[trace.Object]trace.Object // of files: which one it is in the main run
}

// locksOf finds what the locks of each file are called, by its name: the file itself is another one in each run.
func locksOf(t *trace.Trace) (map[string]trace.Object, error) {
	type descriptor struct {
		proc *trace.Proc
		fd   int64
	}
	names, fds, locks := map[descriptor]string{}, map[trace.Object]int64{}, map[string]trace.Object{}
	for _, th := range t.Threads {
		it := t.Iter(th)
		var r trace.Record
		for {
			err := it.Next(&r)
			if err == io.EOF {
				break
			}
			if trace.IsDamage(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			switch {
			case r.Tag == cabi.TagObject && r.Nums[2] == cabi.ObjFd:
				fds[trace.Object{UID: uint32(r.Nums[0]), Num: r.Nums[1]}] = int64(int32(r.Nums[3]))
			case r.Tag == trace.TagEvent && r.Row != nil && r.Row.Class == cabi.Disk:
				if path, fd, _ := opened(&r); path != "" {
					if !filepath.IsAbs(path) {
						path = filepath.Join(th.Proc.Cwd, path)
					}
					names[descriptor{th.Proc, fd}] = path
				}
				if !ruleOf(r.Row).refs[2] || r.F[2] == 0 || r.Obj.None() {
					continue
				}
				for p, hops := th.Proc, 0; p != nil && hops < 1<<10; p, hops = p.Parent, hops+1 {
					if name := names[descriptor{p, fds[unpacked(r.F[2])]}]; name != "" {
						locks[name] = r.Obj
						break
					}
				}
			}
		}
	}
	return locks, nil
}

// count makes room for the threads and processes of a run.
func (s *shift) count(t *trace.Trace) {
	var uid, proc uint32
	for _, th := range t.Threads {
		uid = max(uid, th.UID)
	}
	for _, p := range t.Procs {
		proc = max(proc, p.Number)
	}
	s.uid, s.proc = s.uid+uid+1, s.proc+proc+1
}

// stamp brings a time to the main run's: both begin at once.
func (s shift) stamp(x uint64) uint64 {
	begin, was := s.main.Clock.Ticks0, s.from.Clock.Ticks0
	return begin + uint64(float64(x-min(x, was))*float64(s.main.Clock.Hz)/float64(max(s.from.Clock.Hz, 1)))
}

func (s shift) part(th *trace.Thread) trace.Part {
	if th == s.from.Run {
		return trace.Part{}
	}
	return trace.Part{Edit: s.edit, Base: s.stamp, UID: s.uid, Proc: s.proc}
}

func (s shift) object(v int64) int64 {
	if v == 0 {
		return 0
	}
	return packed(s.as(unpacked(v)))
}

// as is what an object of the other run is called.
func (s shift) as(o trace.Object) trace.Object {
	if as, ok := s.locks[o]; ok {
		return as
	}
	o.UID += s.uid
	return o
}

func (s shift) edit(r *trace.Record) bool {
	n, uid := &r.Nums, uint64(s.uid)
	switch r.Tag {
	case trace.TagEvent:
		rule := ruleOf(r.Row)
		for i, is := range rule.refs {
			if is {
				r.F[i] = s.object(r.F[i])
			}
		}
		for i, is := range rule.tail {
			if is && i < len(r.Fields) {
				r.Fields[i].Num = uint64(s.object(int64(r.Fields[i].Num)))
			}
		}
	case cabi.TagKey:
		if o := (trace.Object{UID: uint32(n[3]), Num: n[4]}); !o.None() {
			o = s.as(o)
			n[3], n[4] = uint64(o.UID), o.Num
		}
	case cabi.TagObject:
		o := trace.Object{UID: uint32(n[0]), Num: n[1]}
		if _, ok := s.locks[o]; ok {
			return false
		}
		n[0] += uid
	case cabi.TagThread:
		n[0] += uid
		if n[1] != 0 {
			n[1] += uid
		}
	case cabi.TagProc:
		n[0], n[1] = n[0]+uint64(s.proc), n[1]+uint64(s.proc)
		if n[2] != 0 {
			n[2] += uid
		}
	case cabi.TagClock, cabi.TagKept, cabi.TagWas: // of the main run they are known
		return false
	}
	return true
}

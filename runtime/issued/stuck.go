package issued

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// ErrStuck is the error of an issue that came to no end.
var ErrStuck = errors.New("nothing could move any more: what the threads wait for cannot come in the order that they came in here")

// ErrLate is the error of one that took longer than it may.
var ErrLate = errors.New("the issue came to no end")

// waitsMost is how many threads that wait are named.
const waitsMost = 8

// Waiting is a thread that waits for what another has. Threads are named by their numbers in the trace.
type Waiting struct {
	Thread uint32 `json:"thread"`
	On     uint32 `json:"on"`
	Object uint32 `json:"object"`         // of synchronisation, by its number in the program
	Join   bool   `json:"join,omitempty"` // it waits for the other's end, and for no object
}

// Stuck says why nothing could move: the threads of Cycle wait for one another, each for the next one and the last for the first. None:
// it is not known who waits for whom. Of an issue that took too long, with no such cycle, Waits are threads that wait for others.
type Stuck struct {
	Cycle []Waiting     `json:"cycle,omitempty"`
	Waits []Waiting     `json:"waits,omitempty"`
	Late  time.Duration `json:"late_ns,omitempty"` // what it was allowed to take, of one that took longer

	t      *trace.Trace // of names; nil: there are none
	object func(uint32) string
}

// Named is the same with the names that a trace has, and those of objects that object knows.
func (s *Stuck) Named(t *trace.Trace, object func(uint32) string) *Stuck {
	return &Stuck{s.Cycle, s.Waits, s.Late, t, object}
}

func (s *Stuck) thread(uid uint32) string {
	if s.t != nil {
		if th := s.t.ThreadByUID(uid); th != nil {
			return trace.Clean(th.Name)
		}
	}
	return fmt.Sprint(uid)
}

func (s *Stuck) Error() string {
	if len(s.Cycle) == 0 && s.Late == 0 {
		return ErrStuck.Error()
	}
	var list []string
	for _, w := range slices.Concat(s.Cycle, s.Waits) {
		if w.Join {
			list = append(list, fmt.Sprintf("thread %s waits for the end of thread %s", s.thread(w.Thread), s.thread(w.On)))
			continue
		}
		object := ""
		if s.object != nil {
			object = trace.Clean(s.object(w.Object))
		}
		list = append(list, fmt.Sprintf("thread %s waits for %s, which thread %s has", s.thread(w.Thread), cmp.Or(object, fmt.Sprint("lock ", w.Object)), s.thread(w.On)))
	}
	said := strings.Join(list, ", ")
	switch {
	case len(s.Cycle) > 0:
		return "deadlock: in the order that its threads came in here " + said
	case len(list) == 0:
		said = "no thread waits for a lock or for the end of another"
	}
	return fmt.Sprintf("%v in %v: %s", ErrLate, s.Late.Round(time.Millisecond), said)
}

func (s *Stuck) Unwrap() error {
	if len(s.Cycle) == 0 && s.Late > 0 {
		return ErrLate
	}
	return ErrStuck
}

// FindStuck finds who waits for whom, of what the engine said of the threads of a program. late is 0, or how long it was allowed to
// take when it took longer.
func FindStuck(program string, threads []cabi.ProgResultThread, late time.Duration) (*Stuck, error) {
	s := &Stuck{Late: late}
	cycle := cycleOf(threads)
	if len(cycle) == 0 && late == 0 {
		return s, nil
	}
	f, err := os.Open(program)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var h cabi.Prog
	if err := binary.Read(f, binary.LittleEndian, &h); err != nil {
		return nil, err
	}
	at := func(table, n uint64, size int, v any) error {
		return binary.Read(io.NewSectionReader(f, int64(table)+int64(n)*int64(size), int64(size)), binary.LittleEndian, v)
	}
	uid := func(n int) (uint32, error) {
		var t cabi.ProgThread
		err := at(h.ThreadsAt, uint64(n), binary.Size(t), &t)
		return t.UID, err
	}
	named := func(waiting []int) (list []Waiting, err error) {
		for _, n := range waiting {
			w := Waiting{}
			var op cabi.ProgOp
			if err := at(h.OpsAt, threads[n].At, binary.Size(op), &op); err != nil {
				return nil, err
			}
			if w.Join = op.Code == cabi.OpJoin; !w.Join {
				w.Object = op.Obj
			}
			if w.Thread, err = uid(n); err == nil {
				w.On, err = uid(int(threads[n].On - 1))
			}
			if err != nil {
				return nil, err
			}
			list = append(list, w)
		}
		return list, nil
	}
	if s.Cycle, err = named(cycle); err != nil || late == 0 || lasts(s.Cycle) {
		return s, err
	}
	s.Cycle = nil
	var waiting []int
	for n, t := range threads {
		if t.On > 0 && t.On <= uint64(len(threads)) && len(waiting) < waitsMost {
			waiting = append(waiting, n)
		}
	}
	s.Waits, err = named(waiting)
	return s, err
}

// lasts tells whether threads that were seen to wait for one another, while they could still move, do so for good: a lock has one holder,
// so each of them waits for another thing. Where two wait for one it went from the one to the other as they were looked at.
func lasts(cycle []Waiting) bool {
	for i, w := range cycle {
		for _, o := range cycle[:i] {
			if o.Join == w.Join && (!w.Join && o.Object == w.Object || w.Join && o.On == w.On) {
				return false
			}
		}
	}
	return len(cycle) > 1
}

// cycleOf is a cycle of threads each of which waits for the next, by their numbers.
func cycleOf(threads []cabi.ProgResultThread) (cycle []int) {
	seen := make([]int, len(threads)) // by which walk, plus 1
	for first := range threads {
		for n := first; seen[n] == 0; {
			seen[n] = first + 1
			on := threads[n].On
			if on == 0 || on > uint64(len(threads)) {
				break
			}
			if n = int(on - 1); seen[n] != first+1 {
				continue
			}
			for at := n; ; {
				cycle = append(cycle, at)
				if at = int(threads[at].On - 1); at == n {
					return cycle
				}
			}
		}
	}
	return nil
}

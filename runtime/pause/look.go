package pause

import (
	"errors"
	"fmt"
	"os"

	"prophet/cabi"
	"prophet/runtime/shm"
)

// callsBack are calls that run the program's own functions: sleeping in one says nothing.
var callsBack = func() map[uint32]bool {
	m := map[uint32]bool{}
	for _, c := range cabi.Calls {
		switch c.Name {
		case "pthread_once", "__pthread_once", "call_once", "scandir", "scandir64", "scandirat", "scandirat64", "clone", "__clone", "fork", "__fork":
			m[uint32(c.ID)] = true
		}
	}
	return m
}()

// look is the run's processes and threads at one moment.
type look struct {
	threads []Thread
	order   []uint32 // processes, parents before their children
	moves   map[uint32]bool
	world   *shm.World
}

func (l *look) moving() (m []Thread) {
	for _, t := range l.threads {
		if t.State == Running {
			m = append(m, t)
		}
	}
	return m
}

// look finds all threads of the recorder's processes, and of those that they started and that the recorder does not know
// (a forked child that has called nothing yet, a static program). It asks the kernel what a thread does that is not
// parked.
func (r *Run) look(p uint32, halted map[uint32]bool) (*look, error) {
	rings, err := shm.OpenRings(r.c)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("the run's rings cannot be read: %w", err)
	}
	slots := map[uint32]shm.Slot{} // by tid
	pids := map[uint32]bool{}
	world := r.world()
	if rings != nil {
		defer rings.Close()
		for i := range rings.Len() {
			pid := r.c.Owner(i)
			if pid == 0 {
				continue
			}
			h := rings.Head(i)
			if h.Owner != pid || h.State == cabi.SlotFree || h.TID == 0 {
				continue
			}
			tid, ok := h.TID, true
			if world != nil {
				if pid, tid, ok = world.Here(h.TID); !ok {
					continue // it has ended
				}
			} else if r.ns != 0 && (h.NS != 0 && h.NS != r.ns || h.NS == 0 && !shm.Records(int(pid), r.c.Tag())) {
				return nil, fmt.Errorf("process %d of the run is in another pid namespace: pause it from there", pid)
			}
			slots[tid] = h
			pids[pid] = true
		}
	}
	l := &look{moves: map[uint32]bool{}, world: world}
	self := uint32(os.Getpid())
	if world != nil {
		for _, pid := range world.Processes() { // also those that the recorder does not know
			pids[pid] = true
		}
	}
	l.order = family(pids, self)
	for _, pid := range l.order {
		first, stops := len(l.threads), false
		for _, tid := range shm.Tasks(int(pid)) {
			t := Thread{PID: pid, TID: uint32(tid), State: Running}
			s, known := slots[t.TID]
			if known {
				t.UID, t.Call = s.UID, s.Call
			}
			if known && (p&1 != 0 && s.Parked == p || s.Parked == cabi.ParkedHeld) {
				t.State = Parked
				l.threads = append(l.threads, t)
				continue
			}
			switch state := shm.StateOf(int(pid), tid); {
			case state == 0 || state == 'Z' || state == 'X':
				continue
			case state == 'T' || state == 't' || state == 'D' && halted[pid]:
				t.State, stops = Stopped, stops || state == 'T'
			case known && s.Call != 0 && !callsBack[s.Call] && (state == 'S' || state == 'D'):
				t.State = InCall
			}
			l.threads = append(l.threads, t)
		}
		for i := first; i < len(l.threads); i++ {
			if t := &l.threads[i]; t.State == Running {
				// Once one thread has stopped, the kernel lets no other of its process back to the program; those that
				// wait for a CPU only have not come to say so yet.
				if stops && halted[pid] {
					t.State = Stopped
				} else {
					l.moves[pid] = true
				}
			}
		}
	}
	return l, nil
}

// family are the processes and all that descend from them, parents first, without ourselves and what we come from.
func family(pids map[uint32]bool, self uint32) []uint32 {
	var order []uint32
	seen := map[uint32]bool{self: true}
	var walk func(pid uint32)
	walk = func(pid uint32) {
		if seen[pid] {
			return
		}
		seen[pid] = true
		order = append(order, pid)
		for _, child := range shm.Children(int(pid)) {
			walk(uint32(child))
		}
	}
	parent := map[uint32]uint32{}
	for pid := range pids {
		parent[pid] = uint32(shm.ParentOf(int(pid)))
	}
	for pid := range pids {
		if !pids[parent[pid]] {
			walk(pid)
		}
	}
	for pid := range pids {
		walk(pid)
	}
	return order
}

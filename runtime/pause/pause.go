// Package pause stops a run that is live, all threads of all its processes, and lets it go on. The program does not see
// it: virtual time stands still, calls that it interrupts go on with the time they had left (shim/pause.h).
//
// Whoever holds the lock of the control file is the controller; it may die at any step, and the next one goes on from
// what shared memory says (runtime/pausemodel has all of that as a model). Nothing here needs a daemon: a pause
// lasts until somebody resumes.
//
// A pause has two parts. First every thread parks at its next intercepted call; one that sleeps in such a call needs
// nothing more, as it parks before the program sees what the call gave. Second, processes with threads that do neither
// within Grace, because they compute or sleep where we do not see it, get SIGSTOP.
package pause

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"prophet/cabi"
	"prophet/runtime/shm"
)

// Bounds of a pause.
const (
	Grace = 100 * time.Millisecond // before SIGSTOP
	Limit = 300 * time.Millisecond // when what does not stand still is reported
	acks  = 20 * time.Millisecond  // for processes that are asked to stop their timers
	pace  = 500 * time.Microsecond // between two looks at first, longer later
)

// State of a thread.
type State string

// The four states of a thread in a pause, and what it is else.
const (
	Running State = "running"
	Parked  State = "parked"  // before or after an intercepted call
	InCall  State = "in call" // sleeps in one, and parks when that returns
	Stopped State = "stopped" // by SIGSTOP
	Dead    State = "dead"
)

// Thread is a thread as it was found.
type Thread struct {
	PID, TID uint32
	UID      uint32 // 0: the recorder does not know it
	Call     uint32 // it is inside of; 0: none
	State    State
}

// Report is how a pause or a resume went.
type Report struct {
	Took    time.Duration
	Pause   uint32 // the pause word
	Threads []Thread
	Halted  int      // processes that got SIGSTOP
	Moving  []Thread // what did not stand still within Limit
}

// Pauser is the pid of who paused or resumed last, 0 when nobody has.
func (r *Run) Pauser() int { return int(r.c.Pauser()) }

// ErrNotPaused says that there is nothing to resume.
var ErrNotPaused = errors.New("the run is not paused")

// Run is a live run that can be paused. It may be used by several goroutines.
type Run struct {
	dir string
	c   *shm.Control
	ns  uint32

	mu    sync.Mutex
	there *shm.World // where its processes have other pids; what is in shared memory are pids inside
}

// world is what r.there is now; nil when its pids are ours.
func (r *Run) world() *shm.World {
	if r.c.Index() == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.there == nil {
		r.there = shm.WorldOf(r.dir)
	}
	if r.there == nil {
		return nil
	}
	w := *r.there
	w.Look()
	return &w
}

// here are the pids here of those that got SIGSTOP.
func here(w *shm.World, inside []uint32) []uint32 {
	if w == nil {
		return inside
	}
	var pids []uint32
	for _, in := range inside {
		if pid, _, ok := w.Here(in); ok {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Open maps a live run.
func Open(dir string) (*Run, error) {
	c, err := shm.OpenControl(dir)
	if err != nil {
		return nil, err
	}
	return &Run{dir: dir, c: c, ns: shm.PIDNamespace()}, nil
}

// Close lets go of it; it stays paused if it is.
func (r *Run) Close() error { return r.c.Close() }

// Paused reports whether a pause is wanted or in force.
func (r *Run) Paused() bool { return r.c.Pause()&1 != 0 }

// Clock is virtual time: what the program's clocks show, and how far they are behind.
func (r *Run) Clock() (mono, real, behind uint64) { return r.c.VirtualTime() }

// Start is CLOCK_MONOTONIC when the run started.
func (r *Run) Start() uint64 {
	_, mono, _ := r.c.Start()
	return mono
}

// SetOnDeath says what happens to the run when the daemon dies in a pause.
func (r *Run) SetOnDeath(stay bool) {
	v := uint32(cabi.OnDeathGo)
	if stay {
		v = cabi.OnDeathStay
	}
	r.c.SetOnDeath(v)
}

// StaysOnDeath is what SetOnDeath said.
func (r *Run) StaysOnDeath() bool { return r.c.OnDeath() == cabi.OnDeathStay }

// lock waits for other controllers, which take no longer than a pause.
func (r *Run) lock() error {
	for begin := time.Now(); !r.c.Lock(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > 2*time.Second {
			return fmt.Errorf("another command is steering %s", r.dir)
		}
	}
	r.c.SetPauser(uint32(os.Getpid()))
	return nil
}

// Pause stops all threads. It returns when all stand still, or after Limit with those that do not in Moving. A run that
// is paused already is looked at again: new processes may have come.
func (r *Run) Pause() (*Report, error) {
	if err := r.lock(); err != nil {
		return nil, err
	}
	defer r.c.Unlock()
	begin := time.Now()
	before := r.Paused()
	p := r.c.Hold()
	r.timers(nil)
	rep := &Report{Pause: p}
	halted := map[uint32]bool{}
	old, _ := r.c.Halts()
	if len(old) > 0 {
		old = here(r.world(), old)
	}
	for _, pid := range old {
		halted[pid] = true
	}
	for wait := pace; ; wait = min(wait*3/2, 5*time.Millisecond) {
		look, err := r.look(p, halted)
		if err != nil {
			if !before { // who cannot see whether it stands does not leave it standing
				_, _ = r.resume()
			}
			return nil, err
		}
		rep.Threads = look.threads
		rep.Moving = look.moving()
		rep.Took = time.Since(begin)
		if len(rep.Moving) == 0 || rep.Took > Limit {
			break
		}
		if rep.Took > Grace {
			r.halt(look, halted)
		}
		time.Sleep(wait)
	}
	rep.Halted = len(halted)
	return rep, nil
}

// halt sends SIGSTOP to the processes with threads that still move, parents first: a parent that waits for its children
// is stopped before they are. One that was stopped by somebody else is left to them.
func (r *Run) halt(l *look, halted map[uint32]bool) {
	for _, pid := range l.order {
		if halted[pid] || !l.moves[pid] || shm.StateOf(int(pid), int(pid)) == 'T' {
			continue
		}
		r.c.Halt(l.world.Inside(pid))
		halted[pid] = true
		unix.Kill(int(pid), unix.SIGSTOP)
	}
}

// Resume lets all go on: first virtual time and the parked threads, then the processes, children before their parents.
func (r *Run) Resume() (*Report, error) {
	if err := r.lock(); err != nil {
		return nil, err
	}
	defer r.c.Unlock()
	return r.resume()
}

func (r *Run) resume() (*Report, error) {
	begin := time.Now()
	halts, full := r.c.Halts()
	paused := r.Paused() || len(halts) > 0
	r.c.Release() // also then, as who resumed it may have died half-way
	if !paused {
		return nil, ErrNotPaused
	}
	if len(halts) > 0 {
		halts = here(r.world(), halts)
	}
	if full {
		halts = append(halts, r.stopped(halts)...)
	}
	done := map[uint32]bool{}
	for _, pid := range slices.Backward(halts) {
		r.c.Continue(pid)
		done[pid] = true
	}
	r.c.Unhalted()
	rep := &Report{Took: time.Since(begin), Pause: r.c.Pause(), Halted: len(halts)}
	r.timers(done)
	return rep, nil
}

// stopped are the run's processes that are stopped and not in the list, as that was full.
func (r *Run) stopped(list []uint32) (more []uint32) {
	l, err := r.look(r.c.Pause(), nil)
	if err != nil {
		return nil
	}
	for _, pid := range l.order {
		if !slices.Contains(list, pid) && shm.StateOf(int(pid), int(pid)) == 'T' {
			more = append(more, pid)
		}
	}
	return more
}

// timers asks the processes that have a handler of SIGCONT to stop or start their timers, and waits for a moment until
// they have. A process that is stopped is not asked: it would go on.
func (r *Run) timers(done map[uint32]bool) {
	before, asked := r.c.Frozen(), uint32(0)
	last := uint32(0)
	world := r.world()
	for i := range r.c.SlotsEnd() {
		pid := r.c.Owner(i)
		if pid == 0 || pid == last {
			continue
		}
		last = pid
		if world != nil {
			pid, _, _ = world.Here(pid)
		}
		if pid == 0 || done[pid] {
			continue
		}
		if shm.Catches(int(pid), unix.SIGCONT) && shm.StateOf(int(pid), int(pid)) != 'T' && r.c.Continue(pid) == nil {
			asked++
		}
	}
	for begin := time.Now(); r.c.Frozen()-before < asked && time.Since(begin) < acks; time.Sleep(50 * time.Microsecond) {
	}
}

// Threads is what every thread is doing, paused or not.
func (r *Run) Threads() ([]Thread, error) {
	halted := map[uint32]bool{}
	old, _ := r.c.Halts()
	if len(old) > 0 {
		old = here(r.world(), old)
	}
	for _, pid := range old {
		halted[pid] = true
	}
	l, err := r.look(r.c.Pause(), halted)
	if err != nil {
		return nil, err
	}
	return l.threads, nil
}

// Package breakdown says where the time of a run went, and which path through its threads decided how long it took: of the
// recorded run at home, and of an issue of it on a target, by the same rules, so that the two can be laid side by side.
//
// # What it reads
//
// The compiled program (runtime/demand), when home was in which of its operations (demand.At), and the log of an issue
// (runtime/issued). Home's entries and the log's have the same shape: an operation, when it began and when it ended.
//
// # Classes
//
// What lies between two entries of a thread is computing: cpu, and ready as far as the thread could have gone on but no core was
// free. At home the kernel's count of its CPU time tells the two apart; on a target what it took longer than was
// demanded, when that is more than a loop that counts iterations is off by. An entry's time is that of its class. Where
// another thread let it go on, as the last to, what comes after that by more than a wake-up takes is ready, too. Locks and waits
// that took no longer than when nobody is in the way are computing.
//
// # The critical path
//
// It is walked from the end of the first process back to the run's beginning. In front of an entry that waited, it goes to who
// ended the wait, if that came while it waited: the last to let go of the lock, to signal the condition, to write to the stream, to
// come to the barrier, to post, to end. Otherwise it stays. So each moment of the run belongs to one thread and one class, and
// the path is as long as the run.
//
// Not followed: waits in which a thread tries again and again (their sleeps and tries are the path), and what threads tell one
// another through memory.
package breakdown

import (
	"cmp"
	"slices"
)

// Class is what time goes to.
type Class uint8

// The classes; their order is that of tables.
const (
	CPU     Class = iota // computing
	Ready                // could go on, but no core was free
	Disk                 // files
	Locks                // until a lock was free
	Waits                // until another thread or process had come so far
	Pipes                // pipes and connections inside of the run
	Sleep                // until a time came
	Outside              // until something outside of the run happened
	Classes
)

var classNames = [Classes]string{"cpu", "ready", "disk", "locks", "waits", "pipes", "sleep", "outside"}

func (c Class) String() string { return classNames[c] }

// Times is ns by class.
type Times [Classes]uint64

// Sum is all of it.
func (t *Times) Sum() uint64 {
	var n uint64
	for _, v := range t {
		n += v
	}
	return n
}

// Split is where the time of one run went.
type Split struct {
	NS      uint64  // from its beginning to the end of the first process
	Threads []Times // of each thread of the program
	Path    Times
	On      []Times           // the path, by thread
	Stretch []Stretch         // of the path, by what the thread did there; the longest first
	Syncs   uint64            // ns of the path that go to syncs
	waited  map[uint32]uint64 // ns that threads waited for mutexes and the like, by object
	Cut     uint64            // operations that the log had no room for: what follows them in their thread is not known
	Partial bool              // the path was lost before it came to the run's beginning
}

// Stretch is all of the path that one thread spent with one thing.
type Stretch struct {
	Thread  uint32
	Class   Class
	What    uint32 // of demand.Info.Whats; of computing: the call that it came before. 0: not known
	File    uint32 // of demand.Info.Paths, plus 1; 0: none
	NS      uint64
	Longest uint64
	Times   int
}

type stretchKey struct {
	thread uint32
	class  Class
	what   uint32
	file   uint32
}

// limits
const (
	entriesMax = 1 << 24 // of a run: more are not broken down
	wakeMax    = 100_000 // ns that a thread takes to go on when it is let to, with a core free
	tellMax    = 20_000  // ns that letting others go on takes
	freeMax    = 2_000   // ns that a lock takes when nobody has it
	offShare   = 20      // one part in so many may the engine's loop be off by,
	offLeast   = 20_000  // or so many ns
	chainMax   = 1 << 10 // who ended whose wait, at one and the same moment
	forwardMax = 64      // entries behind a signal in which its section's unlock is looked for
	stretchMax = 1 << 16 // different stretches that are told apart
)

// trail is what has been walked of the path.
type trail struct {
	split *Split
	parts map[stretchKey]*Stretch
}

func (p *trail) add(thread uint32, class Class, what, file uint32, ns uint64) {
	if ns == 0 {
		return
	}
	p.split.Path[class] += ns
	p.split.On[thread][class] += ns
	k := stretchKey{thread, class, what, file}
	s := p.parts[k]
	if s == nil && len(p.parts) >= stretchMax {
		k.what, k.file = 0, 0
		s = p.parts[k]
	}
	if s == nil {
		s = &Stretch{Thread: thread, Class: class, What: k.what, File: k.file}
		p.parts[k] = s
	}
	s.NS += ns
	s.Longest = max(s.Longest, ns)
	s.Times++
}

func (p *trail) end() {
	for _, s := range p.parts {
		p.split.Stretch = append(p.split.Stretch, *s)
	}
	slices.SortFunc(p.split.Stretch, func(a, b Stretch) int {
		return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Class, b.Class), cmp.Compare(a.What, b.What), cmp.Compare(a.File, b.File))
	})
}

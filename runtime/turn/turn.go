// Package turn is the pure model of how threads of a re-execution hand turns to one another (shim/turn.c): who waits for
// a place, who calls whom, and when a wake-up could be lost. Each step is one access to shared memory, so that a test
// can drive it through every interleaving. It does no I/O.
package turn

import "slices"

// Never is a step's answer when the thread cannot do one now: it sleeps, or is done.
const Never = -1

// State is what threads share, and where each of them stands. It is a value: Step returns another one.
type State struct {
	Seq     [2]int8 // places taken, per object
	Held    [2]int8 // 1 + the thread that holds the object; 0: nobody
	Waiters int8    // of the one bucket that both objects share
	Word    int8    // modulo 64: changes with each call
	Want    [4]Want // by thread: each has room of its own, but for those with Overflow
	Others  int8
	Threads []Thread
}

// Want is at which place a thread wants to be called.
type Want struct {
	Object, Place int8 // Place 0: nobody's
}

// Acquisition is one lock of the trace: the object, and its place in the object's order.
type Acquisition struct {
	Object, Place int8
}

// Thread is one thread: what it still has to take, and the step it is at.
type Thread struct {
	Todo     []Acquisition
	At       Step
	Saw      int8 // the word before it looked for the last time
	Asleep   bool
	Called   bool // while it slept, or before
	Bits     uint8
	Overflow bool // finds no room in Want
	Early    int8 // so many places before its own it wants to be called, and then looks without sleeping
}

// Step is what a thread does next.
type Step uint8

// The steps, in the order of shim_turn, then of taking the place and calling the next.
const (
	Look    Step = iota // is it my turn?
	Enter               // say where to be called
	Count               // count as a waiter
	Read                // the word
	Again               // look once more
	Sleep               // unless the word has changed
	Uncount             // no longer a waiter
	Take                // the object is locked and the place stored
	Release             // the object is let go; nobody waits for an object that has been let go and whose turn it is
	Check               // is anybody waiting?
	Scan                // for whom this is the place before
	Call                // the word changes, and they are woken
	Done
)

// Faults are ways to build the model wrong, for the test to see that it would notice.
type Faults struct {
	CheckBeforeStore bool // waiters are looked for before the place is stored
	NoAgain          bool // a waiter sleeps without looking once more
}

func (s State) clone() State {
	s.Threads = slices.Clone(s.Threads)
	return s
}

// away is how many places are still to be taken before the thread's.
func (s *State) away(t *Thread) int8 {
	a := t.Todo[0]
	if d := a.Place - 1 - s.Seq[a.Object]; d > 0 {
		return d
	}
	if s.Held[a.Object] != 0 {
		return 1
	}
	return 0
}

// Next is the state after thread i has done its next step; ok is false when it cannot do one.
func (s State) Next(i int, f Faults) (next State, ok bool) {
	n := s.clone()
	t := &n.Threads[i]
	if t.At == Done || (t.Asleep && !t.Called) {
		return s, false
	}
	switch t.At {
	case Look:
		switch d := n.away(t); {
		case d == 0:
			t.At = Take
		case d > t.Early:
			t.At = Enter
		default:
			return s, false // it spins: the same state, until another has done something
		}
	case Enter:
		a := t.Todo[0]
		place := a.Place
		if d := n.away(t); d > t.Early && t.Early > 0 {
			place -= t.Early
		}
		if t.Overflow {
			n.Others++
		} else {
			n.Want[i] = Want{a.Object, place}
		}
		t.At = Count
	case Count:
		n.Waiters++
		t.At = Read
	case Read:
		t.Saw = n.Word
		t.At = Again
		if f.NoAgain {
			t.At = Sleep
		}
	case Again:
		d := n.away(t)
		early := t.Early > 0 && n.Want[i].Place != t.Todo[0].Place && d <= t.Early
		if d == 0 || early {
			t.At = Uncount
		} else {
			t.At = Sleep
		}
	case Sleep:
		switch {
		case t.Asleep: // called
			t.Asleep, t.Called = false, false
			t.At = Read
		case n.Word != t.Saw:
			t.At = Read
		default:
			t.Asleep = true
		}
	case Uncount:
		if t.Overflow {
			n.Others--
		} else {
			n.Want[i] = Want{}
		}
		n.Waiters--
		t.At = Look
	case Take:
		a := t.Todo[0]
		n.Held[a.Object] = int8(i + 1)
		n.Seq[a.Object]++
		t.At = Release
		if f.CheckBeforeStore {
			n.Seq[a.Object]--
			t.At = Check
		}
	case Release:
		n.Held[t.Todo[0].Object] = 0
		t.At = Check
		if f.CheckBeforeStore {
			n.Seq[t.Todo[0].Object]++
			n.finish(t)
		}
	case Check:
		switch {
		case n.Waiters > 0:
			t.At = Scan
		case f.CheckBeforeStore:
			t.At = Release
		default:
			n.finish(t)
		}
	case Scan:
		a := t.Todo[0]
		t.Bits = 0
		for k := range n.Threads {
			if n.Want[k] == (Want{a.Object, a.Place + 1}) || (n.Threads[k].Overflow && n.Others > 0) {
				t.Bits |= 1 << k
			}
		}
		if t.Bits != 0 {
			t.At = Call
		} else if f.CheckBeforeStore {
			t.At = Release
		} else {
			n.finish(t)
		}
	case Call:
		n.Word = (n.Word + 1) % 64
		for k := range n.Threads {
			if t.Bits&(1<<k) != 0 && n.Threads[k].Asleep {
				n.Threads[k].Called = true
			}
		}
		if f.CheckBeforeStore {
			t.At = Release
		} else {
			n.finish(t)
		}
	}
	return n, true
}

// finish goes on to the thread's next acquisition.
func (s *State) finish(t *Thread) {
	t.Todo = t.Todo[1:]
	t.At = Look
	if len(t.Todo) == 0 {
		t.At = Done
	}
}

// Over reports whether every thread is done.
func (s *State) Over() bool {
	for i := range s.Threads {
		if s.Threads[i].At != Done {
			return false
		}
	}
	return true
}

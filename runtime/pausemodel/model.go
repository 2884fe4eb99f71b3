// Package pausemodel is pause and resume as a pure model: what threads (shim/pause.c) and controllers (runtime/pause,
// shm.Control) do to shared memory, one access a step, and what must hold whatever the order of steps is. It does no
// I/O and reads no clock; its test goes through all interleavings of small worlds, with controllers that are killed at any step.
//
// Left out: that a store may be seen a few hundred ns late. Between its stores and its first look a controller waits
// longer than that.
package pausemodel

import "fmt"

// Bounds of a world.
const (
	ThreadsMax = 3
	ProcsMax   = 2
)

// PC is where a thread is.
type PC uint8

// A thread computes, and calls again and again: it looks whether calls are on the fast path, and if not, at the pause
// word, before the call and after it. Reading a clock is a call of its own kind.
const (
	Compute   PC = iota
	Entry        // about to look at Fast
	EntrySlow    // about to look at Pause
	InCall       // may sleep there; Slot.Call says so
	Exit
	ExitSlow
	ParkSet   // has seen an odd word: about to say that it sleeps on it
	ParkWait  // about to sleep, if the word is still that
	Sleeping  // until it is woken
	Woken     // about to look at the word again
	ClockRead // fast path: about to read the kernel's clock
	ClockSure // about to look at Fast again
	ClockWord // slow path: about to look at Pause
	ClockOff  // about to read offset and clock
	ClockSame // about to look whether Pause is the same
)

// Thread is one of the program's.
type Thread struct {
	PC     PC
	Back   PC // where it goes after it was parked
	Word   uint8
	Parked uint8 // Slot.Parked
	Value  int8  // of the clock, read but not given to the program yet
	Floor  int8  // the latest time that was told when this reading began
}

// Step of a controller: each is one access to shared memory, or one signal.
type Step uint8

// The steps of a pause, then those of a resume.
const (
	Idle       Step = iota
	HoldFast        // Fast = 0
	HoldWord        // Pause becomes odd
	HoldClock       // the clock is stopped, unless another controller has
	Look            // at thread Next
	Note            // processes that move are put on the list
	Stop            // and get SIGSTOP
	Paused          // claimed
	FreeClock       // the offset grows by how long the clock was stopped
	FreeWord        // Pause becomes even
	FreeFast        // Fast as before
	FreeWake        // who sleeps on the word is woken
	FreeSignal      // those on the list get SIGCONT
)

// Controller is who pauses and resumes; there is one at a time (the lock of the control file, which death gives back).
type Controller struct {
	At     Step
	Next   uint8
	Moves  uint8 // bit a process
	Pauses uint8 // that are still to be made
	Kills  uint8 // that are still to come
}

// World is all there is. It is comparable, so that a search knows where it has been.
type World struct {
	T       [ThreadsMax]Thread
	Proc    [ThreadsMax]uint8 // of each thread
	N       uint8
	Pause   uint8
	Fast    bool
	Halts   uint8 // list of processes that have got SIGSTOP: bit each
	Stopped uint8 // by the kernel
	Now     int8  // the kernel's clock
	Offset  int8
	Was     int8
	StopAt  int8  // 0: not stopped
	Held    uint8 // the pause that StopAt is of
	Seen    int8  // the latest time that the program was told
	C       Controller
	Ends    int8   // the clock goes no further, which bounds a search
	Bug     string // a rule that was broken by the step that led here
}

// New is a world of n threads, in procs processes.
func New(n, procs int, pauses, kills uint8, ends int8) World {
	w := World{N: uint8(n), Fast: true, Now: 1, Ends: ends, C: Controller{Pauses: pauses, Kills: kills}}
	for i := range n {
		w.Proc[i] = uint8(i % procs)
	}
	return w
}

// Successors are the worlds that one step leads to.
func (w World) Successors(yield func(World)) {
	for i := range int(w.N) {
		if w.Stopped>>w.Proc[i]&1 == 0 {
			w.thread(i, yield)
		}
	}
	w.controller(yield)
	if w.Now < w.Ends {
		n := w
		n.Now++
		yield(n)
	}
}

func (w World) thread(i int, yield func(World)) {
	to := func(f func(w *World, t *Thread)) {
		n := w
		f(&n, &n.T[i])
		if p := n.T[i].PC; (p == Compute || p == ClockRead) && w.C.At == Paused {
			n.Bug = fmt.Sprintf("thread %d goes on in the program while the world is paused", i)
		}
		yield(n)
	}
	t := w.T[i]
	odd := w.Pause&1 != 0
	switch t.PC {
	case Compute:
		to(func(_ *World, t *Thread) { t.PC = Entry })
		to(func(w *World, t *Thread) {
			if t.PC = ClockWord; w.Fast {
				t.PC = ClockRead
			}
			t.Floor = w.Seen
		})
	case Entry:
		to(func(w *World, t *Thread) {
			if t.PC = EntrySlow; w.Fast {
				t.PC = InCall
			}
		})
	case EntrySlow:
		to(func(w *World, t *Thread) { t.lookAt(w.Pause, odd, InCall) })
	case InCall:
		to(func(_ *World, t *Thread) { t.PC = Exit })
	case Exit:
		to(func(w *World, t *Thread) {
			if t.PC = ExitSlow; w.Fast {
				t.PC = Compute
			}
		})
	case ExitSlow:
		to(func(w *World, t *Thread) { t.lookAt(w.Pause, odd, Compute) })
	case ParkSet:
		to(func(_ *World, t *Thread) { t.Parked, t.PC = t.Word, ParkWait })
	case ParkWait:
		to(func(w *World, t *Thread) {
			if t.PC = Woken; w.Pause == t.Word {
				t.PC = Sleeping
			}
		})
	case Woken:
		to(func(w *World, t *Thread) {
			if odd {
				t.Word, t.PC = w.Pause, ParkSet
			} else {
				t.Parked, t.PC, t.Back, t.Word = 0, t.Back, Compute, 0
			}
		})
	case ClockRead:
		to(func(w *World, t *Thread) { t.Value, t.PC = w.Now, ClockSure })
	case ClockSure:
		to(func(w *World, t *Thread) {
			if w.Fast {
				w.tell(t)
			} else {
				t.Value, t.PC = 0, ClockWord
			}
		})
	case ClockWord:
		to(func(w *World, t *Thread) {
			if t.lookAt(w.Pause, odd, ClockOff); !odd {
				t.Word = w.Pause
			} else {
				t.Back = ClockWord
			}
		})
	case ClockOff:
		to(func(w *World, t *Thread) { t.Value, t.PC = w.Now-w.Offset, ClockSame })
	case ClockSame:
		to(func(w *World, t *Thread) {
			if w.Pause == t.Word {
				t.Word = 0
				w.tell(t)
			} else {
				t.Value, t.Word, t.PC = 0, 0, ClockWord
			}
		})
	}
}

// lookAt is what a thread does after it has seen the word: it parks, or goes on.
func (t *Thread) lookAt(word uint8, odd bool, on PC) {
	if t.PC = on; odd {
		t.Word, t.Back, t.PC = word, on, ParkSet
	}
}

func (w *World) tell(t *Thread) {
	if t.Value < t.Floor {
		w.Bug = fmt.Sprintf("the clock goes back from %d to %d", t.Floor, t.Value)
	}
	w.Seen, t.Value, t.Floor, t.PC = max(w.Seen, t.Value), 0, 0, Compute
}

// Quiet is how a controller that looks at a thread judges it.
func (w *World) Quiet(i int) bool {
	t := &w.T[i]
	return w.Pause&1 != 0 && t.Parked == w.Pause || t.PC == InCall || w.Stopped>>w.Proc[i]&1 != 0
}

func (w World) controller(yield func(World)) {
	to := func(next Step, f func(w *World)) {
		n := w
		n.C.At = next
		f(&n)
		yield(n)
	}
	if w.C.At != Idle && w.C.Kills > 0 { // kill -9, and another one comes
		n := w
		n.C = Controller{Pauses: w.C.Pauses, Kills: w.C.Kills - 1}
		n.C.At = HoldFast
		yield(n)
		n.C.At = FreeClock
		yield(n)
	}
	switch w.C.At {
	case Idle:
		if w.C.Pauses > 0 {
			to(HoldFast, func(w *World) { w.C.Pauses-- })
		}
	case HoldFast:
		if w.Pause&1 != 0 { // it is paused already
			to(HoldClock, func(*World) {})
			return
		}
		to(HoldWord, func(w *World) { w.Fast = false })
	case HoldWord:
		to(HoldClock, func(w *World) { w.Pause++ })
	case HoldClock:
		to(Look, func(w *World) {
			if w.Held != w.Pause {
				w.Was, w.StopAt, w.Held = w.Offset, w.Now, w.Pause
			}
			w.C.Next, w.C.Moves = 0, 0
		})
	case Look:
		next := Look
		if w.C.Next+1 == w.N {
			if next = Note; w.C.Moves == 0 && w.Quiet(int(w.C.Next)) {
				next = Paused
			}
		}
		to(next, func(w *World) {
			if !w.Quiet(int(w.C.Next)) {
				w.C.Moves |= 1 << w.Proc[w.C.Next]
			}
			w.C.Next++
		})
	case Note:
		to(Stop, func(w *World) { w.Halts |= w.C.Moves })
		to(Look, func(w *World) { w.C.Next, w.C.Moves = 0, 0 }) // within Grace
	case Stop:
		to(Look, func(w *World) { w.Stopped |= w.C.Moves; w.C.Next, w.C.Moves = 0, 0 })
	case Paused:
		to(FreeClock, func(*World) {})
	case FreeClock:
		to(FreeWord, func(w *World) {
			if w.Pause&1 != 0 && w.Held == w.Pause {
				w.Offset = w.Was + w.Now - w.StopAt
			}
		})
	case FreeWord:
		to(FreeFast, func(w *World) {
			if w.Pause&1 != 0 {
				w.Pause++
			}
		})
	case FreeFast:
		to(FreeWake, func(w *World) { w.Fast = w.Offset == 0 })
	case FreeWake:
		to(FreeSignal, func(w *World) {
			for i := range w.T {
				if w.T[i].PC == Sleeping {
					w.T[i].PC = Woken
				}
			}
		})
	case FreeSignal:
		to(Idle, func(w *World) { w.Stopped &^= w.Halts; w.Halts = 0 })
	}
}

// Check says which rule a world breaks, "" for none.
func (w *World) Check() string {
	if w.Bug != "" {
		return w.Bug
	}
	for i := range int(w.N) {
		t := &w.T[i]
		stopped := w.Stopped>>w.Proc[i]&1 != 0
		switch {
		case w.C.At == Paused && !w.Quiet(i):
			// In a call that returned it parks before the program goes on.
			if t.PC != Exit && t.PC != ExitSlow && t.PC != ParkSet && t.PC != ParkWait {
				return fmt.Sprintf("thread %d moves (at %d) while the world is paused", i, t.PC)
			}
		case w.C.At == Idle && w.Pause&1 == 0 && t.PC == Sleeping:
			return fmt.Sprintf("thread %d has lost its wake-up", i)
		case w.C.At == Idle && stopped:
			return fmt.Sprintf("thread %d stays stopped", i)
		}
	}
	if w.Stopped&^w.Halts != 0 {
		return "a process is stopped that nobody knows of"
	}
	return ""
}

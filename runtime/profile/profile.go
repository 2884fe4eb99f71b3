package profile

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// Type is what time went to.
type Type uint8

// The types. What a call's time counts as is told by its class, and of a descriptor by what that is: see typeOf.
const (
	CPU Type = iota
	LockWait
	LockHold
	Disk
	Network
	Sleep
	Types
)

var typeNames = [Types]string{"cpu", "lock_wait", "lock_hold", "disk", "network", "sleep"}

// countNames are what Values.N counts, by type; of CPU: all events.
var countNames = [Types]string{"events", "lock_waits", "lock_holds", "disk_calls", "network_calls", "sleeps"}

func (t Type) String() string { return typeNames[t] }

// TypeByName is the type of that name.
func TypeByName(s string) (Type, bool) {
	i := slices.Index(typeNames[:], s)
	return Type(max(i, 0)), i >= 0
}

// TypeNames are the names of all types.
func TypeNames() []string { return slices.Clone(typeNames[:]) }

// Values are what a stack stands for.
type Values struct {
	NS [Types]int64
	N  [Types]int64 // calls, waits, holds of each type; of CPU: events
}

func (v *Values) add(o *Values) {
	for i := range v.NS {
		v.NS[i] += o.NS[i]
		v.N[i] += o.N[i]
	}
}

// Stack is where time went. PCs are return addresses in Proc, innermost first: the first is the call site of Call, or, when
// Call is 0, one more than where a timer of CPU time found the thread.
type Stack struct {
	Proc *trace.Proc
	Call uint16
	PCs  []uint64
	Bits uint64 // cabi.StackCut, StackLost: frames are missing at the outer end
	Site bool   // no stack was taken here: there is the call site alone

}

// Sample is what one thread spent at one stack. CPU time is of the program itself, before Call; all else is of Call.
type Sample struct {
	Stack  *Stack
	Thread *trace.Thread // nil: of several threads, as there were too many samples to keep apart
	Values
}

// Profile is what Of finds.
type Profile struct {
	Trace   *trace.Trace
	Samples []Sample
	Stacks  int    // taken in the program
	Timed   bool   // a timer of CPU time took stacks, too
	Events  uint64 // all
	Damage  []error
	Damaged int
	Notes   []string // what was left out
}

// Bounds of what is kept in memory. What goes beyond is put together, and Notes says so.
const (
	maxStacks  = 1 << 19
	maxFrames  = 1 << 24 // of all stacks
	maxSamples = 1 << 20
	maxSites   = 1 << 16 // of one thread
	maxHeld    = 1 << 12 // locks that one thread holds
	maxObjects = 1 << 20
	maxWithin  = 64 // handlers in handlers
)

type stackKey struct {
	proc *trace.Proc
	call uint16
	bits uint8
	pcs  string
}

type sampleKey struct {
	stack  *Stack
	thread *trace.Thread
}

// builder gathers what the threads' visitors find.
type builder struct {
	t       *trace.Trace
	objects map[trace.Object]bool // descriptors that are no files
	timed   map[*trace.Thread]bool

	mu      sync.Mutex
	stacks  map[stackKey]*Stack
	frames  int
	samples map[sampleKey]*Values
	taken   int
	over    [3]int // stacks, samples, sites beyond the bounds
}

// Of reads the trace on up to workers goroutines.
func Of(t *trace.Trace, workers int, prog trace.Progress) (*Profile, error) {
	b := &builder{t: t, stacks: map[stackKey]*Stack{}, samples: map[sampleKey]*Values{}}
	if err := b.survey(workers); err != nil {
		return nil, err
	}
	var parts sync.Map // of the threads that are being read
	res, err := t.WalkDone(workers, func(th *trace.Thread) trace.Visit {
		p := newPart(b, th)
		parts.Store(th, p)
		return p.visit
	}, func(th *trace.Thread) {
		if p, ok := parts.LoadAndDelete(th); ok {
			p.(*part).end()
		}
	}, prog)
	if err != nil {
		return nil, err
	}
	out := &Profile{Trace: t, Events: res.Events, Stacks: b.taken, Timed: len(b.timed) > 0, Damage: append(slices.Clone(t.Damage), res.Damage...), Damaged: res.Damaged + len(t.Damage)}
	for k, v := range b.samples {
		out.Samples = append(out.Samples, Sample{k.stack, k.thread, *v})
	}
	slices.SortFunc(out.Samples, compareSamples)
	for i, what := range []string{"stacks were different from all those kept, and count as their call site", "samples were put together with those of other threads", "call sites were too many, and count as others of their thread"} {
		if b.over[i] > 0 {
			out.Notes = append(out.Notes, fmt.Sprintf("%d %s", b.over[i], what))
		}
	}
	return out, nil
}

func compareSamples(x, y Sample) int {
	if c := cmp.Compare(uid(x.Thread), uid(y.Thread)); c != 0 {
		return c
	}
	if c := slices.Compare(x.Stack.PCs, y.Stack.PCs); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(x.Stack.Call, y.Stack.Call), cmp.Compare(x.Stack.Proc.Number, y.Stack.Proc.Number), cmp.Compare(x.Stack.Bits, y.Stack.Bits))
}

func uid(th *trace.Thread) uint32 {
	if th == nil {
		return 0
	}
	return th.UID
}

// survey reads what concerns all threads before what they did: modules, and which descriptors are no files.
func (b *builder) survey(workers int) error {
	b.objects = map[trace.Object]bool{}
	b.timed = map[*trace.Thread]bool{}
	var mu sync.Mutex
	_, err := b.t.WalkOnly(cabi.ClassSet(1<<cabi.Mark), workers, func(th *trace.Thread) trace.Visit {
		return func(r *trace.Record) error {
			switch r.Tag {
			case cabi.TagModule, cabi.TagObject, cabi.TagSample:
				mu.Lock()
				defer mu.Unlock()
			}
			switch r.Tag {
			case cabi.TagModule:
				b.t.Learn(th, r)
			case cabi.TagSample:
				b.timed[th] = true
			case cabi.TagObject:
				if o := (trace.Object{UID: uint32(r.Nums[0]), Num: r.Nums[1]}); r.Nums[2] == cabi.ObjFd && len(r.Text[0]) > 0 && len(b.objects) < maxObjects {
					b.objects[o] = r.Text[0][0] != '/'
				}
			}
			return nil
		}
	})
	return err
}

// stack is the stack of a call site and its callers; pc 0: callers has all of it.
func (b *builder) stack(proc *trace.Proc, call uint16, bits uint64, pc uint64, callers []uint64, site bool) *Stack {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.intern(proc, call, bits, pc, callers, site)
}

func (b *builder) intern(proc *trace.Proc, call uint16, bits uint64, pc uint64, callers []uint64, site bool) *Stack {
	bits &= cabi.StackCut | cabi.StackLost
	raw := make([]byte, 0, 8*len(callers)+9)
	if pc != 0 {
		raw = binary.LittleEndian.AppendUint64(raw, pc)
	}
	for _, c := range callers {
		raw = binary.LittleEndian.AppendUint64(raw, c)
	}
	if site {
		raw = append(raw, 1)
	}
	k := stackKey{proc, call, uint8(bits), string(raw)}
	s := b.stacks[k]
	if s != nil {
		return s
	}
	s = &Stack{Proc: proc, Call: call, Bits: bits, Site: site}
	if pc != 0 {
		s.PCs = append(s.PCs, pc)
	}
	s.PCs = append(s.PCs, callers...)
	if len(s.PCs) > 1 && (len(b.stacks) >= maxStacks || b.frames+len(s.PCs) > maxFrames) {
		b.over[0]++
		return b.intern(proc, call, 0, s.PCs[0], nil, true)
	}
	b.frames += len(s.PCs)
	b.stacks[k] = s
	return s
}

// put adds what a thread spent at a stack.
func (b *builder) put(th *trace.Thread, s *Stack, v *Values) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := sampleKey{s, th}
	o := b.samples[k]
	if o == nil && len(b.samples) >= maxSamples {
		b.over[1]++
		k.thread = nil
		o = b.samples[k]
	}
	if o == nil {
		o = &Values{}
		b.samples[k] = o
	}
	o.add(v)
}

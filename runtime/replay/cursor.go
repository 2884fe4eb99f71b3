package replay

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// Cursor reads a thread's events by their numbers; forward is cheap.
type Cursor struct {
	t  *trace.Trace
	th *trace.Thread
	it *trace.Iter
	r  trace.Record // the event that was read last
	on bool
}

// NewCursor stands before the thread's first event.
func NewCursor(t *trace.Trace, th *trace.Thread) *Cursor { return &Cursor{t: t, th: th} }

// next reads the next event.
func (c *Cursor) next() bool {
	for {
		err := c.it.Next(&c.r)
		if trace.IsDamage(err) {
			continue
		}
		if err != nil {
			c.on = false
			return false
		}
		if c.r.Tag == trace.TagEvent {
			c.on = true
			return true
		}
	}
}

// Event is the event of that number, counted from 0; nil when there is none. It is good until the next call.
func (c *Cursor) Event(n uint64) *trace.Record {
	if c.it == nil || c.on && c.r.N > n || !c.on {
		c.it, c.on = c.t.Iter(c.th), false
	}
	for !c.on || c.r.N < n {
		if !c.next() {
			return nil
		}
	}
	if c.r.N != n {
		return nil
	}
	return &c.r
}

// scanMax bounds how far a search looks ahead in one thread.
const scanMax = 1 << 20

// ID is an object's name as the index has it.
func ID(o trace.Object) uint64 { return uint64(o.UID)<<40 | o.Num&(1<<40-1) }

// Taker is who takes the next place in an object's order, which place, and by which event, where the threads have had that
// many events (by uid; those that are not there have not begun).
func Taker(t *trace.Trace, events map[uint32]uint64, object uint64) (th *trace.Thread, place, event uint64) {
	for _, of := range t.Threads {
		c := NewCursor(t, of)
		at := events[of.UID]
		for n := at; n < at+scanMax; n++ {
			r := c.Event(n)
			if r == nil {
				break
			}
			if r.Seq != 0 && (ID(r.Obj) == object || uint64(r.F[1]) == object) {
				if th == nil || r.Seq < place {
					th, place, event = of, r.Seq, n
				}
				break
			}
		}
	}
	return th, place, event
}

// Holder is who has taken the last place in an object's order, and which: it may still have the object.
func Holder(t *trace.Trace, events map[uint32]uint64, object uint64) (th *trace.Thread, place uint64) {
	for _, of := range t.Threads {
		c := NewCursor(t, of)
		for n := range events[of.UID] {
			r := c.Event(n)
			if r == nil {
				break
			}
			if r.Seq > place && (ID(r.Obj) == object || uint64(r.F[1]) == object) {
				th, place = of, r.Seq
			}
		}
	}
	return th, place
}

// Before is how many events of each thread, by uid, began before a time since the start of the run.
func Before(t *trace.Trace, ns int64) map[uint32]uint64 {
	ticks := t.Clock.Ticks(ns)
	all := map[uint32]uint64{}
	for _, th := range t.Threads {
		c := NewCursor(t, th)
		n := uint64(0)
		for r := c.Event(0); r != nil && r.Begin < ticks; r = c.Event(n) {
			n++
		}
		all[th.UID] = n
	}
	return all
}

// Clocks is what the clocks of virtual time show, and CLOCK_REALTIME as the last, where each thread has begun that many
// events: later than what any thread was told by then.
func Clocks(t *trace.Trace, begun map[uint32]uint64) [cabi.ClocksVirtual + 1]uint64 {
	const realtime = cabi.ClocksVirtual
	var now [cabi.ClocksVirtual + 1]uint64
	since := int64(0)
	behind := func(clock int, ns uint64, at int64) { // what was told then is what it was when the run started
		now[clock] = max(now[clock], ns-uint64(at))
	}
	behind(cabi.ClockMonotonic, t.Mono0(), 0)
	behind(realtime, uint64(t.Clock.Real0), 0)
	for _, th := range t.Threads {
		c := NewCursor(t, th)
		for n := range begun[th.UID] {
			r := c.Event(n)
			if r == nil {
				break
			}
			at := t.Clock.Since(r.Begin)
			since = max(since, t.Clock.Since(r.End))
			if r.Ret < 0 || r.Row == nil {
				continue
			}
			switch CallName(uint32(r.Call)) {
			case "clock_gettime":
				switch uint64(r.F[1]) {
				case 0, 5: // CLOCK_REALTIME and its coarse kin
					behind(realtime, uint64(r.F[0]), at)
				case 1, 6:
					behind(cabi.ClockMonotonic, uint64(r.F[0]), at)
				case 4:
					behind(cabi.ClockRaw, uint64(r.F[0]), at)
				case 7:
					behind(cabi.ClockBoot, uint64(r.F[0]), at)
				}
			case "gettimeofday":
				behind(realtime, uint64(r.F[0])*1000, at)
			case "timespec_get":
				behind(realtime, uint64(r.F[0]), at)
			}
		}
	}
	for i := range now {
		if now[i] != 0 {
			now[i] += uint64(since) + 1000
		}
	}
	return now
}

// Mark finds the first mark of that name that is to come where the threads stand (events, by uid; those that are not there
// have not begun): its thread, and how many events that has before it.
func Mark(t *trace.Trace, events map[uint32]uint64, name string) (th *trace.Thread, n uint64) {
	first := ^uint64(0)
	for _, of := range t.Threads {
		it := t.Iter(of)
		var r trace.Record
		for {
			err := it.Next(&r)
			if trace.IsDamage(err) {
				continue
			}
			if err != nil || r.Begin >= first {
				break
			}
			at, begun := events[of.UID]
			if r.Tag == cabi.TagMark && string(r.Text[0]) == name && (r.N > at || !begun) {
				th, n, first = of, r.N, r.Begin
				break
			}
		}
	}
	return th, n
}

// Thread is the thread of a name in the trace, or of a uid in decimal.
func Thread(t *trace.Trace, name string) (*trace.Thread, error) {
	if th := t.ThreadByName(name); th != nil {
		return th, nil
	}
	if uid, err := strconv.ParseUint(name, 10, 32); err == nil {
		if th := t.ThreadByUID(uint32(uid)); th != nil {
			return th, nil
		}
	}
	return nil, fmt.Errorf("the trace has no thread %s", trace.Clean(name))
}

// Object is the object of a name as dumps have it, p0/1#7, with the kind before it or not.
func Object(t *trace.Trace, name string) (uint64, error) {
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		name = name[i+1:]
	}
	of, num, ok := strings.Cut(name, "#")
	n, err := strconv.ParseUint(num, 10, 40)
	if !ok || err != nil || n == 0 {
		return 0, fmt.Errorf("%s is no name of an object: THREAD#NUMBER, as prophet dump has it", trace.Clean(name))
	}
	th, err := Thread(t, of)
	if err != nil {
		return 0, err
	}
	return uint64(th.UID)<<40 | n, nil
}

// ObjectName is the name of an object as dumps have it.
func ObjectName(t *trace.Trace, id uint64) string {
	return cmp.Or(threadName(t, uint32(id>>40)), "?") + "#" + strconv.FormatUint(id&(1<<40-1), 10)
}

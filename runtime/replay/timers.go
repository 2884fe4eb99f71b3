package replay

import (
	"cmp"
	"runtime"
	"slices"
	"sort"
	"sync"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// Timers that start threads (SIGEV_THREAD) do that when it is time, which a re-execution does not have. So does asynchronous
// I/O that is over, each operation as a timer that was made and set by one call. What each such
// thread overlapped with is told by events of the thread that had set its timer: those that were over when it began, and
// those that began when it was over. That thread starts it and waits for it, between the same events.

// span is when an event, or a thread, began and ended.
type span struct{ begin, end uint64 }

// timer is one of a process's timers that start threads.
type timer struct {
	made uint64
	sets []armed
}

// armed is one setting of it.
type armed struct {
	begin uint64
	by    *trace.Thread
}

var (
	timerCreate, timerSet = callNumbered("timer_create"), callNumbered("timer_settime")
	asynchronous          = map[uint16]bool{
		callNumbered("aio_read"): true, callNumbered("aio_read64"): true, callNumbered("aio_write"): true, callNumbered("aio_write64"): true,
		callNumbered("aio_fsync"): true, callNumbered("aio_fsync64"): true, callNumbered("lio_listio"): true, callNumbered("lio_listio64"): true,
	}
)

func callNumbered(name string) uint16 {
	i := slices.IndexFunc(cabi.Calls, func(c cabi.Call) bool { return c.Name == name })
	return cabi.Calls[i].ID
}

// sigevThread is SIGEV_THREAD, as recorded of timer_create.
const sigevThread = 2

// timers completes what the index has of threads that timers have started.
func timers(t *trace.Trace, threads []cabi.ReplayThread) error {
	in := map[uint32]bool{} // processes that have such threads
	for _, th := range t.Threads {
		if _, nth := th.Origin(); th.How == cabi.ThreadFound && nth > 0 {
			threads[th.UID].Timer = uint32(nth)
			in[th.Proc.Number] = true
		}
	}
	if len(in) == 0 {
		return nil
	}
	var list []*trace.Thread
	for _, th := range t.Threads {
		if in[th.Proc.Number] {
			list = append(list, th)
		}
	}
	var mu sync.Mutex
	made := map[uint32]map[trace.Object]*timer{}
	begun := map[uint32][]*timer{}
	spans := map[*trace.Thread]*[]span{}
	for _, th := range list {
		made[th.Proc.Number] = map[trace.Object]*timer{}
		spans[th] = new([]span)
	}
	_, err := t.Walk(runtime.NumCPU(), func(th *trace.Thread) trace.Visit {
		events := spans[th]
		return func(r *trace.Record) error {
			if r.Tag != trace.TagEvent || events == nil {
				return nil
			}
			*events = append(*events, span{r.Begin, r.End})
			once := asynchronous[r.Call] && r.F[2] == sigevThread
			if r.Ret != 0 || r.Call != timerCreate && r.Call != timerSet && !once {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			if once {
				begun[th.Proc.Number] = append(begun[th.Proc.Number], &timer{max(r.End, 1), []armed{{r.Begin, th}}})
				return nil
			}
			all := made[th.Proc.Number]
			m := all[r.Obj]
			if m == nil {
				m = &timer{}
				all[r.Obj] = m
			}
			if r.Call == timerSet {
				m.sets = append(m.sets, armed{r.Begin, th})
			} else if r.F[1] == sigevThread {
				m.made = max(r.End, 1)
			}
			return nil
		}
	}, nil, list...)
	if err != nil {
		return err
	}
	for number := range in {
		all := begun[number]
		for _, m := range made[number] {
			if m.made > 0 {
				all = append(all, m)
			}
		}
		slices.SortFunc(all, func(a, b *timer) int { return cmp.Compare(a.made, b.made) })
		started(number, all, list, spans, threads)
	}
	return nil
}

// started says of each of a process's threads that its timers have started who starts it, and when.
func started(proc uint32, all []*timer, list []*trace.Thread, spans map[*trace.Thread]*[]span, threads []cabi.ReplayThread) {
	type one struct {
		span
		uid uint32
	}
	var ones []one
	for _, th := range list {
		if n := threads[th.UID].Timer; th.Proc.Number != proc || n == 0 || int(n) > len(all) {
			continue
		}
		own := one{span{th.First, th.First}, th.UID}
		for _, s := range *spans[th] {
			own.end = max(own.end, s.end)
		}
		ones = append(ones, own)
	}
	slices.SortFunc(ones, func(a, b one) int { return cmp.Compare(a.begin, b.begin) })
	tops := map[*trace.Thread][]span{}
	last := map[*trace.Thread]uint32{} // that it starts
	for i, own := range ones {
		x := &threads[own.uid]
		var by armed
		for _, a := range all[x.Timer-1].sets {
			if a.begin < own.begin && a.begin >= by.begin {
				by = a
			}
		}
		if by.by == nil {
			continue
		}
		if tops[by.by] == nil {
			tops[by.by] = rising(*spans[by.by])
		}
		events := tops[by.by]
		x.Starter = by.by.UID
		x.Start = uint64(sort.Search(len(events), func(i int) bool { return events[i].end > own.begin }))
		x.Behind = uint64(sort.Search(len(events), func(i int) bool { return events[i].begin > own.end }))
		if prior, ok := last[by.by]; ok {
			threads[prior].Next = own.uid
		} else {
			threads[x.Starter].Starts = own.uid
		}
		last[by.by] = own.uid
		if i > 0 && ones[i-1].end < own.begin { // of all that were over: they wait in turn
			x.After = ones[i-1].uid
		}
	}
}

// rising is events, each with the latest begin and end so far: outer calls come behind those that they made.
func rising(events []span) []span {
	out := slices.Clone(events)
	for i := 1; i < len(out); i++ {
		out[i].begin, out[i].end = max(out[i].begin, out[i-1].begin), max(out[i].end, out[i-1].end)
	}
	return out
}

package replay

import (
	"runtime"
	"slices"
	"sync"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// A process's descriptors of one number come to be one after the other, and threads that make them at the same time
// have to do so in the recorded order: a number that is free says nothing of whose turn it is. Whoever got a number had
// returned from its call before anybody could close it, and who got it next returned after that, so the ends of the
// calls tell the order.

// makes are the calls that make descriptors whose numbers are kept (shim/stand_fd.c), by where their events say which.
var makes = func() map[uint16]func(r *trace.Record) []int64 {
	m := map[uint16]func(r *trace.Record) []int64{}
	add := func(f func(r *trace.Record) []int64, names ...string) {
		for _, c := range cabi.Calls {
			if slices.Contains(names, c.Name) {
				m[c.ID] = f
			}
		}
	}
	number := func(r *trace.Record, i int) int64 {
		if i >= len(r.Fields) || r.Fields[i].Kind != trace.FieldNum {
			return -1
		}
		return int64(r.Fields[i].Num)
	}
	add(func(r *trace.Record) []int64 { return []int64{r.Ret} },
		"open", "open64", "__open", "__open64", "openat", "openat64", "__open_2", "__open64_2", "__openat_2", "__openat64_2", "creat", "creat64",
		"mkstemp", "mkstemp64", "mkostemp", "mkostemp64", "mkstemps", "mkstemps64", "mkostemps", "mkostemps64",
		"memfd_create", "shm_open", "posix_openpt", "getpt", "inotify_init", "inotify_init1", "dup", "dup2", "__dup2", "dup3",
		"epoll_create", "epoll_create1", "eventfd", "timerfd_create", "socket", "accept", "accept4")
	add(func(r *trace.Record) []int64 {
		if r.F[0] != 0 && r.F[0] != 1030 { // F_DUPFD, F_DUPFD_CLOEXEC
			return nil
		}
		return []int64{r.Ret}
	}, "fcntl", "fcntl64", "__fcntl")
	add(func(r *trace.Record) []int64 {
		if int32(r.F[0]) >= 0 { // it changes that one
			return nil
		}
		return []int64{r.Ret}
	}, "signalfd")
	add(func(r *trace.Record) []int64 { return []int64{r.F[0], r.F[1]} }, "pipe", "__pipe", "pipe2", "socketpair")
	add(func(r *trace.Record) []int64 { return []int64{number(r, 0), number(r, 1)} }, "openpty")
	add(func(r *trace.Record) []int64 {
		if r.Ret <= 0 {
			return nil
		}
		return []int64{number(r, 0)}
	}, "fopen", "fopen64", "tmpfile", "tmpfile64")
	return m
}()

// closes are the calls by which a thread may close what another made.
var closes = func() map[uint16]bool {
	m := map[uint16]bool{}
	for _, c := range cabi.Calls {
		if c.Name == "close" || c.Name == "__close" {
			m[c.ID] = true
		}
	}
	return m
}()

// made is one descriptor that a thread made, or closed.
type made struct {
	fd         int64
	begin, end uint64 // of the call
	closed     bool
}

// descriptors are what each thread makes with numbers that others of its process make, too, in its own order.
func descriptors(t *trace.Trace) (map[uint32][]cabi.ReplayFd, error) {
	several := map[uint32]int{}
	for _, th := range t.Threads {
		several[th.Proc.Number]++
	}
	var mu sync.Mutex
	all := map[uint32]*[]made{}
	var threads []*trace.Thread
	for _, th := range t.Threads {
		if several[th.Proc.Number] > 1 {
			threads = append(threads, th)
		}
	}
	if len(threads) == 0 {
		return nil, nil
	}
	_, err := t.WalkOnly(cabi.SetOf(cabi.Disk, cabi.Net), runtime.NumCPU(), func(th *trace.Thread) trace.Visit {
		if several[th.Proc.Number] < 2 {
			return func(*trace.Record) error { return nil }
		}
		mu.Lock()
		list := all[th.UID]
		if list == nil {
			list = new([]made)
			all[th.UID] = list
		}
		mu.Unlock()
		return func(r *trace.Record) error {
			if r.Tag != trace.TagEvent || r.Ret < 0 || r.Note&cabi.NoteVforked != 0 {
				return nil
			}
			if f := makes[r.Call]; f != nil {
				for _, fd := range f(r) {
					if fd >= 0 {
						*list = append(*list, made{fd: fd, begin: r.Begin, end: r.End})
					}
				}
			} else if closes[r.Call] {
				*list = append(*list, made{fd: r.F[0], begin: r.Begin, end: r.End, closed: true})
			}
			return nil
		}
	})
	if err != nil {
		return nil, err
	}
	return ordered(threads, all), nil
}

// ordered gives each its place among those of its number, where more than one thread makes or closes them. Who closes one, which
// another thread may have made, does so after all that had been made before.
func ordered(threads []*trace.Thread, all map[uint32]*[]made) map[uint32][]cabi.ReplayFd {
	type key struct {
		proc uint32
		fd   int64
	}
	by := map[key][][]one{} // a list for each thread
	for _, th := range threads {
		if all[th.UID] == nil {
			continue
		}
		for i, m := range *all[th.UID] {
			k := key{th.Proc.Number, m.fd}
			if n := len(by[k]); n == 0 || by[k][n-1][0].uid != th.UID {
				by[k] = append(by[k], nil)
			}
			list := &by[k][len(by[k])-1]
			*list = append(*list, one{m, th.UID, uint32(i)})
		}
	}
	places := map[uint32]map[uint32]cabi.ReplayFd{}
	for _, lists := range by {
		if len(lists) < 2 {
			continue
		}
		made := uint32(0)
		for _, o := range merged(lists) {
			f := cabi.ReplayFd{FD: uint32(o.fd), Place: made}
			if o.closed {
				f.FD |= cabi.ReplayCloses
			} else {
				made++
			}
			if places[o.uid] == nil {
				places[o.uid] = map[uint32]cabi.ReplayFd{}
			}
			places[o.uid][o.index] = f
		}
	}
	out := map[uint32][]cabi.ReplayFd{}
	for uid, m := range places {
		for i := range *all[uid] {
			if p, ok := m[uint32(i)]; ok {
				out[uid] = append(out[uid], p)
			}
		}
	}
	return out
}

type one struct {
	made
	uid, index uint32
}

// merged are the calls of several threads on one number in an order in which they may have come: none before one that had
// ended when it began, and what is made is closed before it is made again, but where that was done by a call that is not
// among these. Ends alone do not tell, as a thread may be held up between what a call does and its end.
func merged(lists [][]one) []one {
	n := 0
	for _, l := range lists {
		n += len(l)
	}
	out := make([]one, 0, n)
	for len(out) < n {
		first := ^uint64(0)
		for _, l := range lists {
			if len(l) > 0 {
				first = min(first, l[0].end)
			}
		}
		next, fits := -1, false
		for i, l := range lists {
			if len(l) == 0 || l[0].begin > first {
				continue
			}
			f := l[0].closed == (len(out) > 0 && !out[len(out)-1].closed)
			if next < 0 || f && !fits || f == fits && l[0].end < lists[next][0].end {
				next, fits = i, f
			}
		}
		out = append(out, lists[next][0])
		lists[next] = lists[next][1:]
	}
	return out
}

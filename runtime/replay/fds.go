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

// made is one descriptor that a thread made.
type made struct {
	fd  int64
	end uint64
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
						*list = append(*list, made{fd, r.End})
					}
				}
			}
			return nil
		}
	})
	if err != nil {
		return nil, err
	}
	return ordered(threads, all), nil
}

// ordered gives each its place among those of its number, where more than one thread makes them.
func ordered(threads []*trace.Thread, all map[uint32]*[]made) map[uint32][]cabi.ReplayFd {
	type key struct {
		proc uint32
		fd   int64
	}
	type one struct {
		uid, index uint32
		end        uint64
	}
	by := map[key][]one{}
	for _, th := range threads {
		if all[th.UID] == nil {
			continue
		}
		for i, m := range *all[th.UID] {
			k := key{th.Proc.Number, m.fd}
			by[k] = append(by[k], one{th.UID, uint32(i), m.end})
		}
	}
	places := map[uint32]map[uint32]cabi.ReplayFd{}
	for k, list := range by {
		if !slices.ContainsFunc(list, func(o one) bool { return o.uid != list[0].uid }) {
			continue
		}
		slices.SortStableFunc(list, func(a, b one) int {
			switch {
			case a.uid == b.uid:
				return int(a.index) - int(b.index)
			case a.end < b.end:
				return -1
			case a.end > b.end:
				return 1
			}
			return 0
		})
		for place, o := range list {
			if places[o.uid] == nil {
				places[o.uid] = map[uint32]cabi.ReplayFd{}
			}
			places[o.uid][o.index] = cabi.ReplayFd{FD: uint32(k.fd), Place: uint32(place)}
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

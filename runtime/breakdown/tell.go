package breakdown

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"

	"prophet/cabi"
	"prophet/runtime/demand"
	"prophet/runtime/symbols"
	"prophet/runtime/trace"
)

// Part is a thread's time of one class, at home and on a target.
type Part struct {
	Thread       string
	Class        Class
	Home, Target uint64 // ns
}

// threadsMax is how many threads are told apart: those of the longest time on either side, which is more than a person reads.
const threadsMax = 256

// Compare lays the times of threads at home beside those of the same threads on a target: the threads of the longest times first.
// What there are too many of is summed under a name that says so.
func Compare(home, target []Times, names []string) []Part {
	order := make([]int, len(names))
	for i := range order {
		order[i] = i
	}
	most := func(i int) uint64 { return max(home[i].Sum(), target[i].Sum()) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(most(b), most(a)) })
	var list []Part
	row := func(name string, h, t *Times) {
		for c := range Classes {
			if h[c]+t[c] > 0 {
				list = append(list, Part{name, c, h[c], t[c]})
			}
		}
	}
	var h, t Times
	for n, i := range order {
		if n < threadsMax {
			row(names[i], &home[i], &target[i])
			continue
		}
		for c := range Classes {
			h[c] += home[i][c]
			t[c] += target[i][c]
		}
	}
	if n := len(order) - threadsMax; n > 0 {
		row(fmt.Sprintf("%d others", n), &h, &t)
	}
	return list
}

// Place is what an operation is in the words of home.
type Place struct {
	Call   string
	Object string // "" none
	At     string // function, file and line, as far as files tell; "" not known
}

// Places finds words for stretches, in their order.
func Places(t *trace.Trace, info *demand.Info, list []Stretch) []Place {
	table := symbols.New()
	site := func(w *demand.What) (symbols.Module, uint64, bool) {
		if w.Proc == nil || w.PC == 0 {
			return symbols.Module{}, 0, false
		}
		m := w.Proc.Module(w.PC)
		if m == nil {
			return symbols.Module{}, 0, false
		}
		return symbols.Module{Path: m.Path, BuildID: string(m.BuildID)}, w.PC - 1 - m.Bias, true
	}
	what := func(n uint32) *demand.What {
		if int(n) < len(info.Whats) {
			return &info.Whats[n]
		}
		return &demand.What{}
	}
	for _, s := range list {
		if m, at, ok := site(what(s.What)); ok {
			table.Want(m, at)
		}
	}
	table.Resolve(nil)
	threads := threadNames(t)
	places := make([]Place, len(list))
	for i, s := range list {
		w, p := what(s.What), &places[i]
		if w.Row != nil {
			p.Call = w.Row.Name
		}
		if m, at, ok := site(w); ok {
			p.At = words(table.At(m, at), m.Path, at+1)
		}
		if s.File > 0 && int(s.File) <= len(info.Paths) {
			p.Object = info.Paths[s.File-1]
		} else {
			p.Object = objectName(w, threads)
		}
	}
	return places
}

// Object is the name of an object of synchronisation of the program, as reports have it.
func Object(t *trace.Trace, info *demand.Info, n uint32) string {
	if int(n) >= len(info.Objects) {
		return ""
	}
	return objectName(&info.Objects[n], threadNames(t))
}

func threadNames(t *trace.Trace) map[uint32]string {
	names := map[uint32]string{}
	for _, th := range t.Threads {
		names[th.UID] = th.Name
	}
	return names
}

func objectName(w *demand.What, threads map[uint32]string) string {
	switch {
	case w.Obj.None() || w.Kind == cabi.ObjFd || w.Kind == cabi.ObjPath || w.Kind == 0:
		return ""
	case w.Kind == cabi.ObjThread || w.Kind == cabi.ObjProcess:
		return threads[w.Obj.UID]
	}
	return trace.ObjKindName(w.Kind) + ":" + threads[w.Obj.UID] + "#" + strconv.FormatUint(w.Obj.Num, 10)
}

// words are those of a place in the program: the function that stands there itself, and its line.
func words(frames []symbols.Frame, module string, at uint64) string {
	if len(frames) == 0 {
		return fmt.Sprintf("%s+0x%x", path.Base(module), at)
	}
	f := frames[0]
	if f.File == "" {
		return f.Func
	}
	return fmt.Sprintf("%s (%s:%d)", f.Func, path.Base(f.File), f.Line)
}

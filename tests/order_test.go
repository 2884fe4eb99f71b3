package tests

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"testing"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// place is one taken place in the order of an object.
type place struct {
	seq    uint64
	begin  uint64 // the call's stamps
	end    uint64 // the call's end, or where it has none of its own the next event of the thread: the place was taken before
	thread *trace.Thread
	call   string
	ret    int64
	f2     int64
}

// object identifies an object of a run: one in private memory belongs to its process as well.
type object struct {
	proc uint32
	obj  trace.Object
}

// orders is what a trace says about who had what when.
type orders struct {
	places map[object][]place
	reads  map[object]map[int64]uint64 // readers in each epoch of a read-write lock
	shared map[trace.Object]bool
	values map[object]int64 // what a semaphore began with
}

// readOrders collects the places of all objects and hands each thread's events on to see.
func readOrders(t *testing.T, tr *trace.Trace, see func(th *trace.Thread, r *trace.Record, seq uint64)) *orders {
	t.Helper()
	o := &orders{places: map[object][]place{}, reads: map[object]map[int64]uint64{}, shared: map[trace.Object]bool{}, values: map[object]int64{}}
	each := func(visit func(th *trace.Thread, r *trace.Record)) {
		for _, th := range tr.Threads {
			it := tr.Iter(th)
			for {
				var r trace.Record
				err := it.Next(&r)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Errorf("thread %s: %v", th.Name, err)
					break
				}
				visit(th, &r)
			}
		}
	}
	each(func(_ *trace.Thread, r *trace.Record) {
		if r.Tag == cabi.TagObject && r.Nums[2] == cabi.ObjSharedSync {
			o.shared[trace.Object{UID: uint32(r.Nums[0]), Num: r.Nums[1]}] = true
		}
	})
	open := map[*trace.Thread]*place{} // places whose end is the thread's next event
	where := map[*trace.Thread]object{}
	each(func(th *trace.Thread, r *trace.Record) {
		if r.Tag != trace.TagEvent {
			return
		}
		if p := open[th]; p != nil {
			p.end = r.Begin
			o.places[where[th]] = append(o.places[where[th]], *p)
			delete(open, th)
		}
		name := cabi.ByID(r.Call).Name
		obj := r.Obj
		if r.Row.F[1] == "mutex" { // a condition wait: its place is one in the order of the mutex
			obj = trace.Object{UID: uint32(uint64(r.F[1]) >> 40), Num: uint64(r.F[1]) & (1<<40 - 1)}
		}
		key := object{th.Proc.Number, obj}
		if o.shared[obj] {
			key.proc = 0
		}
		if r.Row.F[1] == "epoch" && r.Ret == 0 {
			if o.reads[key] == nil {
				o.reads[key] = map[int64]uint64{}
			}
			o.reads[key][r.F[1]]++
		}
		if name == "sem_init" && r.Ret == 0 {
			o.values[key] = r.F[1]
		}
		see(th, r, r.Seq)
		if r.Seq == 0 {
			return
		}
		p := place{seq: r.Seq, begin: r.Begin, end: r.End, thread: th, call: name, ret: r.Ret, f2: r.F[1]}
		if r.Timed {
			o.places[key] = append(o.places[key], p)
		} else {
			open[th], where[th] = &p, key
		}
	})
	for th, p := range open {
		p.end = ^uint64(0)
		o.places[where[th]] = append(o.places[where[th]], *p)
	}
	return o
}

// check fails where an order has a hole, a double, or goes against the time.
func (o *orders) check(t *testing.T, tr *trace.Trace) (objects, places int) {
	t.Helper()
	const skew = 4000 // ticks that the clocks of two cores may be apart
	bad := 0
	fail := func(format string, args ...any) {
		if bad++; bad <= 10 {
			t.Errorf(format, args...)
		}
	}
	for key, list := range o.places {
		sort.SliceStable(list, func(i, j int) bool { return list[i].seq < list[j].seq })
		objects++
		places += len(list)
		first := list[0].seq
		namer := tr.ThreadByUID(key.obj.UID)
		inherited := namer != nil && namer.Proc.Number != key.proc && !o.shared[key.obj]
		if first != 1 && !inherited {
			fail("object %v of process %d: the order begins with %d", key.obj, key.proc, first)
		}
		exclusive := true
		for _, p := range list {
			switch p.call {
			case "sem_wait", "sem_trywait", "sem_timedwait", "sem_clockwait", "sem_post", "pthread_barrier_wait",
				"pthread_cond_signal", "pthread_cond_broadcast", "semop", "semtimedop":
				exclusive = false // nobody holds the object when the place is taken
			}
		}
		latest := uint64(0)
		for i, p := range list {
			if p.seq != first+uint64(i) {
				fail("object %v of process %d: place %d (%s of %s) where %d should be", key.obj, key.proc, p.seq, p.call, p.thread.Name, first+uint64(i))
				break
			}
			// Place n was taken after its call began and before its end; so no later place can have ended before.
			if exclusive && p.end != ^uint64(0) && p.end+skew < latest {
				fail("object %v of process %d: place %d (%s of %s) was over at %d, before one ahead of it began at %d", key.obj, key.proc, p.seq, p.call,
					p.thread.Name, p.end, latest)
			}
			latest = max(latest, p.begin)
		}
		// A wait comes after the post that let it through.
		if value, ok := o.values[key]; ok && !inherited {
			for _, p := range list {
				if p.call != "sem_post" {
					value--
				} else if p.ret == 0 {
					value++
				}
				if value < 0 {
					fail("object %v of process %d: place %d (%s of %s) got what nobody had posted", key.obj, key.proc, p.seq, p.call, p.thread.Name)
					break
				}
			}
		}
		// What a writer says about the readers before it is what they say about themselves.
		for _, p := range list {
			switch p.call {
			case "pthread_rwlock_wrlock", "pthread_rwlock_trywrlock", "pthread_rwlock_timedwrlock", "pthread_rwlock_clockwrlock":
				if n := o.reads[key][int64(p.seq)-1]; n != uint64(p.f2) && !(inherited && p.seq == first) {
					fail("object %v of process %d: writer %d counts %d readers, there were %d", key.obj, key.proc, p.seq, p.f2, n)
				}
			}
		}
	}
	if bad > 10 {
		t.Errorf("… and %d more", bad-10)
	}
	return objects, places
}

// What tests/order/torture.c notes.
const (
	noteOwn = iota
	noteLock
	noteRead
	noteWrite
	noteWait
	noteArrive
	noteOnce
)

type orderNote struct {
	Addr, N, M    uint64
	Kind, Process uint32
}

// readNotes gives each thread's notes by the address of its own mutex and its process.
func readNotes(t *testing.T, path string) map[orderNote][]orderNote {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, _ := f.Stat()
	all := make([]orderNote, st.Size()/int64(binary.Size(orderNote{})))
	if err := binary.Read(f, binary.LittleEndian, all); err != nil {
		t.Fatal(err)
	}
	m := map[orderNote][]orderNote{}
	for i := 0; i < len(all); {
		k := i + 1
		for k < len(all) && all[k].Kind != noteOwn {
			k++
		}
		m[orderNote{Addr: all[i].Addr}] = all[i+1 : k]
		i = k
	}
	return m
}

var noteOf = map[string]uint32{
	"pthread_mutex_lock": noteLock, "pthread_mutex_trylock": noteLock, "pthread_mutex_timedlock": noteLock,
	"mtx_lock": noteLock, "mtx_trylock": noteLock, "pthread_spin_lock": noteLock, "pthread_spin_trylock": noteLock,
	"pthread_rwlock_rdlock": noteRead, "pthread_rwlock_tryrdlock": noteRead, "pthread_rwlock_timedrdlock": noteRead,
	"pthread_rwlock_wrlock": noteWrite, "pthread_rwlock_trywrlock": noteWrite, "pthread_rwlock_timedwrlock": noteWrite,
	"pthread_cond_timedwait": noteWait, "pthread_barrier_wait": noteArrive, "pthread_once": noteOnce,
}

// TestOrderTorture compares the recorded order of every object with what the owners counted themselves.
func TestOrderTorture(t *testing.T) {
	bin := compile(t, filepath.Join(top, "tests", "order", "torture.c"))
	rows := []struct{ seed, threads, ops, processes int }{
		{1, 2, 8000, 1}, {2, 4, 4000, 1}, {3, 16, 1500, 1}, {4, 64, 320, 1}, {5, 1, 3000, 3}, {6, 4, 1500, 4},
	}
	visited := 0
	for _, row := range rows {
		visited++
		t.Run(fmt.Sprintf("%d threads in %d processes, seed %d", row.threads, row.processes, row.seed), func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			argv := []string{bin, strconv.Itoa(row.seed), strconv.Itoa(row.threads), strconv.Itoa(row.ops), strconv.Itoa(row.processes), log}
			rec := Cmd{Argv: argv}.Recorded(t)
			if rec.Status != "exit status 0" || rec.Stderr != "" || len(rec.Stdout) != 17 {
				t.Fatalf("%s: %q %q", rec.Status, rec.Stdout, rec.Stderr)
			}
			tr, err := trace.Open(rec.Trace)
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			notes := readNotes(t, log)
			told := map[*trace.Thread][]orderNote{}
			known := map[*trace.Thread]bool{}
			compared, wrong := 0, 0
			o := readOrders(t, tr, func(th *trace.Thread, r *trace.Record, seq uint64) {
				name := cabi.ByID(r.Call).Name
				addr := uint64(r.F[0])
				if !known[th] {
					if list, ok := notes[orderNote{Addr: addr}]; ok && name == "pthread_mutex_lock" {
						known[th], told[th] = true, list
					}
					return
				}
				kind, ok := noteOf[name]
				if !ok || len(told[th]) == 0 || (seq == 0 && kind != noteRead && kind != noteOnce) || (kind == noteRead && r.Ret != 0) {
					return
				}
				n := told[th][0]
				got := orderNote{Addr: addr, Kind: kind, N: seq}
				switch kind {
				case noteRead:
					got.N = uint64(r.F[1])
				case noteWrite:
					got.M = uint64(r.F[1])
				case noteArrive:
					got.N = uint64(r.F[1])
					if r.Ret != 0 {
						got.M = 1
					}
				case noteWait:
					got.Addr = n.Addr // the event names the condition, and the mutex by its name
				case noteOnce:
					got.N = uint64(r.F[1])
				}
				n.Process = 0
				if got != n {
					if wrong++; wrong <= 5 {
						t.Errorf("thread %s, %s: recorded %+v, true is %+v", th.Name, name, got, n)
					}
				}
				told[th] = told[th][1:]
				compared++
			})
			for th, rest := range told {
				if len(rest) > 0 {
					t.Errorf("thread %s: %d of its acquisitions are not in the trace", th.Name, len(rest))
				}
			}
			if len(known) != row.threads*row.processes {
				t.Errorf("%d threads found of %d", len(known), row.threads*row.processes)
			}
			objects, places := o.check(t, tr)
			if compared < row.threads*row.processes*row.ops/4 || objects < 20 {
				t.Errorf("only %d acquisitions of %d objects compared", compared, objects)
			}
			t.Logf("%d acquisitions compared, %d places of %d objects checked", compared, places, objects)
		})
	}
	if visited != len(rows) {
		t.Fatal("not all rows visited")
	}
}

// TestOrderOfCalls checks the orders in the traces of the programs of tests/calls that synchronise.
func TestOrderOfCalls(t *testing.T) {
	programs := []string{"mutex", "mutexes", "rwlock", "cond", "oldcond", "spin", "barrier", "sem", "named", "c11", "sysv", "once"}
	visited := 0
	for _, p := range programs {
		visited++
		t.Run(p, func(t *testing.T) {
			rec := Cmd{Argv: []string{compile(t, filepath.Join(top, "tests", "calls", p+".c"))}}.Recorded(t)
			tr, err := trace.Open(rec.Trace)
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			objects, places := readOrders(t, tr, func(*trace.Thread, *trace.Record, uint64) {}).check(t, tr)
			t.Logf("%d places of %d objects", places, objects)
		})
	}
	if visited != len(programs) {
		t.Fatal("not all programs visited")
	}
}

// TestOrderOfMany follows more objects than the first levels of the recorder's table hold.
func TestOrderOfMany(t *testing.T) {
	_, rec := Same(t, Cmd{Argv: []string{compile(t, filepath.Join(top, "tests", "order", "many.c"))}})
	tr, err := trace.Open(rec.Trace)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	objects, places := readOrders(t, tr, func(*trace.Thread, *trace.Record, uint64) {}).check(t, tr)
	if objects < 200000 || places != 600000 {
		t.Errorf("%d places of %d objects", places, objects)
	}
}

// TestGuardsOutOfSight has a C++ library that nobody else sees use the guards of statics.
func TestGuardsOutOfSight(t *testing.T) {
	lib := filepath.Join(t.TempDir(), "plugin.so")
	if out, err := exec.Command("g++", "-O1", "-shared", "-fPIC", "-o", lib, filepath.Join(top, "tests", "order", "plugin.cc")).CombinedOutput(); err != nil {
		t.Fatalf("g++: %v\n%s", err, out)
	}
	_, rec := Same(t, Cmd{Argv: []string{compile(t, filepath.Join(top, "tests", "order", "host.c")), lib}})
	calls := recordedCalls(t, rec.Trace)
	for _, name := range []string{"__cxa_guard_acquire", "__cxa_guard_release", "__cxa_guard_abort"} {
		if !calls[name] {
			t.Errorf("%s is not in the trace", name)
		}
	}
}

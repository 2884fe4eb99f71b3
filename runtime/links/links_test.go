package links

import (
	"math/rand/v2"
	"slices"
	"testing"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// world makes records as trace.Merge gives them, of threads that need no trace.
type world struct {
	k       *Tracker
	threads map[uint32]*trace.Thread
	n       map[uint32]uint64
	got     []Link
}

func newWorld() *world {
	t := &trace.Trace{}
	t.Clock = trace.NewClock(0, 1e9) // a tick is a ns
	return &world{k: New(t), threads: map[uint32]*trace.Thread{}, n: map[uint32]uint64{}}
}

var ids = func() map[string]uint16 {
	m := map[string]uint16{}
	for _, c := range cabi.Calls {
		if _, ok := m[c.Name]; !ok {
			m[c.Name] = c.ID
		}
	}
	return m
}()

func (w *world) thread(uid uint32) *trace.Thread {
	if w.threads[uid] == nil {
		w.threads[uid] = &trace.Thread{UID: uid, Proc: &trace.Proc{Number: uid / 100}, How: cabi.ThreadFound}
	}
	return w.threads[uid]
}

func (w *world) event(uid uint32, call string, begin, end uint64, set func(r *trace.Record)) {
	r := &trace.Record{Thread: w.thread(uid), Call: ids[call], Row: trace.RowOf(uint64(ids[call])), Begin: begin, End: end, Timed: begin != end, N: w.n[uid]}
	w.n[uid]++
	if set != nil {
		set(r)
	}
	w.got = append(w.got, w.k.Add(r)...)
}

func on(num, seq uint64, note uint8) func(*trace.Record) {
	return func(r *trace.Record) { r.Obj, r.Seq, r.Note = trace.Object{UID: 1, Num: num}, seq, note }
}

const wait = cabi.NoteWaited

func TestRecursive(t *testing.T) {
	w := newWorld()
	w.event(1, "pthread_mutex_lock", 10, 10, on(1, 1, 0))
	w.event(1, "pthread_mutex_lock", 20, 20, on(1, 2, 0))
	w.event(2, "pthread_mutex_lock", 30, 200, on(1, 3, wait))
	w.event(1, "pthread_mutex_unlock", 40, 40, on(1, 0, 0)) // still holds it
	w.event(1, "pthread_mutex_unlock", 150, 150, on(1, 0, 0))
	if len(w.got) != 1 || w.got[0].From.N != 3 || w.got[0].Cause != 150 || w.got[0].Effect != 200 || w.got[0].Held.N != 0 {
		t.Errorf("%+v", w.got)
	}
}

// Stamps of two threads may contradict the order a little: the order is right.
func TestStamps(t *testing.T) {
	w := newWorld()
	w.event(1, "pthread_mutex_lock", 10, 10, on(1, 1, 0))
	w.event(2, "pthread_mutex_lock", 30, 190, on(1, 2, wait))
	w.event(1, "pthread_mutex_unlock", 200, 200, on(1, 0, 0)) // stamped after who it let in
	w.event(2, "pthread_mutex_unlock", 300, 300, on(1, 0, 0))
	w.event(3, "pthread_mutex_lock", 301, 400, on(1, 3, wait)) // stamped after what let it in
	if len(w.got) != 2 || w.got[0].Cause != 200 || w.got[0].Effect != 200 || w.got[1].From.Thread.UID != 2 || w.got[1].To.Thread.UID != 3 {
		t.Errorf("%+v", w.got)
	}
}

// A private object's name means another one in another process, a shared one's does not.
func TestProcesses(t *testing.T) {
	for _, shared := range []bool{false, true} {
		w := newWorld()
		if shared {
			r := &trace.Record{Tag: cabi.TagObject, Thread: w.thread(1)}
			r.Nums = [8]uint64{1, 1, cabi.ObjSharedSync}
			w.k.Add(r)
		}
		w.event(1, "pthread_mutex_lock", 10, 10, on(1, 1, 0))
		w.event(101, "pthread_mutex_lock", 30, 190, on(1, 2, wait))
		w.event(1, "pthread_mutex_unlock", 100, 100, on(1, 0, 0))
		if len(w.got) == 1 != shared {
			t.Errorf("shared %v: %+v", shared, w.got)
		}
	}
}

// What does not fit is forgotten and counted, and memory stays where it is.
func TestBounds(t *testing.T) {
	was := []int{maxObjects, maxPending, maxSegments, maxAlone, maxSnapshots, maxEntries, maxUnread}
	defer func() {
		maxObjects, maxPending, maxSegments, maxAlone, maxSnapshots, maxEntries, maxUnread = was[0], was[1], was[2], was[3], was[4], was[5], was[6]
	}()
	maxObjects, maxPending, maxSegments, maxAlone, maxSnapshots, maxEntries, maxUnread = 8, 8, 8, 4, 8, 8, 32
	w := newWorld()
	pipe := func(i uint64) {
		w.event(1, "pipe", i, i, func(r *trace.Record) {
			r.Obj, r.F = trace.Object{UID: 1, Num: 1000 + 2*i}, [3]int64{int64(2 * i), int64(2*i + 1)}
			r.Fields = []trace.Field{{Num: 1<<40 | (1001 + 2*i)}}
		})
	}
	for i := range uint64(100) {
		w.event(1, "pthread_mutex_lock", i, i, on(i, 1, 0))
		w.event(1, "pthread_create", i, i, func(r *trace.Record) { r.Obj = trace.Object{UID: uint32(1000 + i)} })
		w.event(1, "sem_wait", i, 1000, on(1<<20, i+1, wait))
		w.event(1, "fork", i, i, nil)
		fork := &trace.Record{Tag: cabi.TagFork, Thread: w.thread(1)}
		fork.Nums[0] = i
		w.k.Add(fork)
		pipe(i)
		for range 20 {
			w.event(1, "write", i, i, func(r *trace.Record) { r.Obj, r.Ret = trace.Object{UID: 1, Num: 1001 + 2*i}, 10 })
		}
		k := w.k
		if len(k.objects) > maxObjects || len(k.made) > maxSnapshots || len(k.forks) > maxSnapshots || k.unread > maxUnread || len(k.full) > maxUnread {
			t.Fatal(len(k.objects), len(k.made), len(k.forks), k.unread, len(k.full))
		}
	}
	if w.k.Forgot() == 0 {
		t.Error("nothing was counted as forgotten")
	}
	// What was written last is still there.
	w.event(1, "read", 2000, 2000, func(r *trace.Record) { r.Obj, r.Ret = trace.Object{UID: 1, Num: 1000 + 2*99}, 200 })
	if n := len(w.got); n == 0 || w.got[n-1].Kind != Data || w.got[n-1].Bytes != 10 {
		t.Errorf("%+v", w.got)
	}
}

// FuzzTracker: any records do no harm, and no effect comes before its cause.
func FuzzTracker(f *testing.F) {
	f.Add([]byte("locks and pipes"), uint64(1))
	rnd := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 4000)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	f.Add(b, uint64(2))
	known := []uint16{}
	for id, d := range deeds {
		if d != nil {
			known = append(known, uint16(id))
		}
	}
	slices.Sort(known)
	tags := []uint8{cabi.TagObject, cabi.TagFork, cabi.TagInput, cabi.TagExit, cabi.TagThread}
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		w := newWorld()
		now := uint64(0)
		rnd := rand.New(rand.NewPCG(seed, 3))
		small := func() int64 { return int64(rnd.IntN(12)) - 2 }
		for i := 0; i+4 <= len(b); i += 4 {
			uid := uint32(b[i] % 8 * 50)
			th := w.thread(uid)
			if b[i] > 200 {
				th.How = cabi.ThreadCreated
			}
			now += uint64(b[i+1] % 32)
			r := &trace.Record{Thread: th, Begin: now, End: now + uint64(b[i+2])*1000, N: uint64(i), Note: uint8(rnd.IntN(16)), Timed: b[i+2]&1 != 0}
			r.Obj = trace.Object{UID: uint32(b[i+3] % 4), Num: uint64(b[i+3] % 16)}
			r.Ret, r.F, r.Seq = small(), [3]int64{small(), small(), small()}, uint64(max(0, small()))
			if b[i+1] >= 32 {
				r.Call = known[(int(b[i+1])<<3|int(b[i+2]&7))%len(known)]
				r.Row = trace.RowOf(uint64(r.Call))
				for range b[i+3] >> 6 {
					r.Fields = append(r.Fields, trace.Field{Num: 1<<40 | uint64(small())})
				}
			} else {
				r.Tag = tags[int(b[i+2])%len(tags)]
				r.Nums = [8]uint64{uint64(small()), uint64(small()), uint64(b[i+3] % 20), uint64(small())}
				r.Text[0] = b[i:min(len(b), i+int(b[i+3]))]
			}
			for _, l := range w.k.Add(r) {
				if l.Cause > l.Effect || l.From.Thread == nil || l.To.Thread == nil {
					t.Fatalf("%+v", l)
				}
			}
		}
		w.k.Finish()
	})
}

func BenchmarkLocks(b *testing.B) {
	w := newWorld()
	r := trace.Record{Row: trace.RowOf(1)}
	i := uint64(0)
	for b.Loop() {
		i++
		r.Thread = w.thread(uint32(1 + i/2%4))
		r.Call = uint16(1 + i%2)
		r.Row = trace.RowOf(uint64(r.Call))
		r.Obj = trace.Object{UID: 1, Num: 1 + i/2%4}
		r.Begin, r.End = i*30, i*30
		r.Seq = i / 8 * (i % 2)
		w.k.Add(&r)
	}
}

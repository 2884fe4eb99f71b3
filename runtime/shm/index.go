package shm

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"prophet/cabi"
)

// Index is the mapped index of a re-execution (cabi.Replay), for whoever steers it. Its threads look at what is set here
// before each event; Steer makes those that stand look again.
type Index struct {
	mem     []byte
	h       *cabi.Replay
	threads []cabi.ReplayThread
}

// OpenIndex maps an index.
func OpenIndex(path string) (*Index, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	mem, err := mapFile(f, max(st.Size(), int64(unsafe.Sizeof(cabi.Replay{}))))
	if err != nil {
		return nil, err
	}
	x := &Index{mem: mem, h: (*cabi.Replay)(unsafe.Pointer(&mem[0]))}
	size := uint64(unsafe.Sizeof(cabi.ReplayThread{}))
	at, n := x.h.ThreadsAt, uint64(x.h.Threads)
	if x.h.Magic != cabi.ReplayMagic || n == 0 || at%8 != 0 || at > uint64(len(mem)) || n > (uint64(len(mem))-at)/size {
		unix.Munmap(mem)
		return nil, fmt.Errorf("%s is no index of a re-execution", path)
	}
	x.threads = unsafe.Slice((*cabi.ReplayThread)(unsafe.Pointer(&mem[at])), n)
	return x, nil
}

// Close unmaps it.
func (x *Index) Close() error { return unix.Munmap(x.mem) }

// Bytes is a copy of it as it is now.
func (x *Index) Bytes() []byte { return append([]byte(nil), x.mem...) }

// IndexThread is where a thread stands.
type IndexThread struct {
	UID    uint32
	State  uint32 // cabi.Turn…
	Call   uint32
	Event  uint64
	Until  uint64
	Object uint64
	Turn   uint64
}

// Threads are all threads of the trace, begun or not.
func (x *Index) Threads() []IndexThread {
	var all []IndexThread
	for i := range x.threads {
		t := &x.threads[i]
		if t.UID != uint32(i) || i == 0 {
			continue
		}
		all = append(all, IndexThread{UID: t.UID, State: atomic.LoadUint32(&t.State), Call: atomic.LoadUint32(&t.Call), Event: atomic.LoadUint64(&t.Event),
			Until: atomic.LoadUint64(&t.Until), Object: atomic.LoadUint64(&t.Object), Turn: atomic.LoadUint64(&t.Turn)})
	}
	return all
}

// Diverged reports whether the world has stopped at a difference.
func (x *Index) Diverged() bool { return atomic.LoadUint32(&x.h.Diverged) != 0 }

// Reported reports whether the difference has been written down.
func (x *Index) Reported() bool { return atomic.LoadUint32(&x.h.Reported) != 0 }

// SetUntil lets a thread have that many events in all.
func (x *Index) SetUntil(uid uint32, n uint64) {
	if uint64(uid) < uint64(len(x.threads)) {
		atomic.StoreUint64(&x.threads[uid].Until, n)
	}
}

// SetPass lets a thread's event of this number, counted from 1, pass the breaks.
func (x *Index) SetPass(uid uint32, n uint64) {
	if uint64(uid) < uint64(len(x.threads)) {
		atomic.StoreUint64(&x.threads[uid].Pass, n)
	}
}

// SetBreaks sets the places before which threads stand.
func (x *Index) SetBreaks(b []cabi.ReplayBreak) {
	atomic.StoreUint32(&x.h.Breaks, 0)
	n := copy(x.h.Places[:], b)
	atomic.StoreUint32(&x.h.Breaks, uint32(n))
}

// Broke is the thread that came to a break first, 0 when none did; Unbroke forgets it.
func (x *Index) Broke() uint32 { return atomic.LoadUint32(&x.h.Broke) }

// Unbroke forgets who came to a break.
func (x *Index) Unbroke() { atomic.StoreUint32(&x.h.Broke, 0) }

// Steer makes threads look at limits, breaks and pauses before each event, or no longer; those that stand look at once.
func (x *Index) Steer(on bool) {
	if on {
		atomic.OrUint32(&x.h.Hold, cabi.HoldControl)
	} else {
		atomic.AndUint32(&x.h.Hold, ^uint32(cabi.HoldControl))
	}
	atomic.AddUint32(&x.h.Go, 1)
	const futexWake = 1
	unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&x.h.Go)), futexWake, 1<<30, 0, 0, 0)
}

// Free takes all limits and breaks away.
func (x *Index) Free() {
	x.SetBreaks(nil)
	for uid := range x.threads {
		x.SetUntil(uint32(uid), cabi.NoLimit)
	}
	x.Unbroke()
	x.Steer(false)
}

// Detach takes the harness off: threads that stand, or wait for a turn, look at once.
func (x *Index) Detach() {
	atomic.OrUint32(&x.h.Hold, cabi.HoldDetached)
	x.Free()
	size := uint64(unsafe.Sizeof(cabi.ReplayTurn{}))
	const futexWake = 1
	for i := range uint64(cabi.TurnBuckets) {
		at := x.h.TurnsAt + i*size
		if at%8 != 0 || at > uint64(len(x.mem))-size {
			return
		}
		b := (*cabi.ReplayTurn)(unsafe.Pointer(&x.mem[at]))
		if atomic.LoadUint32(&b.Waiters) != 0 {
			atomic.AddUint32(&b.Word, 1)
			unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&b.Word)), futexWake, 1<<30, 0, 0, 0)
		}
	}
}

// Stops counts how often a thread has come to stand.
func (x *Index) Stops() uint32 { return atomic.LoadUint32(&x.h.Stops) }

// AwaitStop returns when Stops is no longer that, or after a while.
func (x *Index) AwaitStop(was uint32, limit time.Duration) {
	const futexWait = 0
	ts := unix.NsecToTimespec(limit.Nanoseconds())
	unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&x.h.Stops)), futexWait, uintptr(was), uintptr(unsafe.Pointer(&ts)), 0, 0)
}

package shm

import (
	"bytes"
	"os"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"prophet/cabi"
)

// What follows are the steps of a pause and a resume that write shared memory, in the order in which they are made
// (runtime/pause makes them, runtime/pausemodel explains why). Each may be made again by another controller after the
// one that began has died. The caller holds Lock.

// Pause is the pause word: odd while a pause is wanted or in force.
func (c *Control) Pause() uint32 { return atomic.LoadUint32(&c.c.Pause) }

// Index is the path of the index of the trace that this run re-executes; "" when it records.
func (c *Control) Index() string {
	b := c.c.Index[:]
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// Pauser is the pid of who paused or resumed last.
func (c *Control) Pauser() uint32 { return atomic.LoadUint32(&c.c.Pauser) }

// SetPauser says who.
func (c *Control) SetPauser(pid uint32) { atomic.StoreUint32(&c.c.Pauser, pid) }

// OnDeath is what is to be done when the daemon dies in a pause: cabi.OnDeath….
func (c *Control) OnDeath() uint32 { return atomic.LoadUint32(&c.c.OnDeath) }

// SetOnDeath says what is to be done.
func (c *Control) SetOnDeath(v uint32) { atomic.StoreUint32(&c.c.OnDeath, v) }

var clockIDs = [cabi.ClocksVirtual]int32{cabi.ClockMonotonic: unix.CLOCK_MONOTONIC, cabi.ClockRaw: unix.CLOCK_MONOTONIC_RAW, cabi.ClockBoot: unix.CLOCK_BOOTTIME}

func read(clock int) uint64 {
	var ts unix.Timespec
	if unix.ClockGettime(clockIDs[clock], &ts) != nil {
		return 0
	}
	return uint64(ts.Nano())
}

func (c *Control) pausing(p uint32) *cabi.Pausing { return &c.c.Pauses[p/2%cabi.PausesKept] }

// Hold makes every thread park at its next call, and stops virtual time. Calls take the slow path first: who read a
// clock on the fast one and then still found it allowed read it before the clock stops here. The clock is read when the
// pause word is odd: who read it on the slow path found the word even afterwards.
func (c *Control) Hold() uint32 {
	p := c.Pause()
	if p&1 == 0 {
		atomic.StoreUint32(&c.c.Fast, 0)
		for begin := Now().Mono; Now().Mono < begin+2000; {
			runtime.Gosched()
		}
		e := c.pausing(p + 1)
		atomic.StoreUint64(&e.Stop, 0)
		atomic.StoreUint64(&e.Go, 0)
		p++
		atomic.StoreUint32(&c.c.Pause, p)
	}
	if e := c.pausing(p); atomic.LoadUint64(&e.Stop) == 0 {
		for i := range c.c.Clocks {
			k := &c.c.Clocks[i]
			atomic.StoreUint64(&k.Was, atomic.LoadUint64(&k.Offset))
			atomic.StoreUint64(&k.Stop, read(i))
		}
		// The kernel's count lags behind its clock, each time by another amount: from now on it is computed.
		if atomic.LoadUint64(&c.c.Times) == 0 {
			if n, err := unix.Times(&unix.Tms{}); err == nil {
				atomic.StoreUint64(&c.c.Times, uint64(n+1)*tickNS-atomic.LoadUint64(&c.c.Clocks[cabi.ClockMonotonic].Stop))
			}
		}
		atomic.StoreUint64(&e.Stop, Now().Ticks)
	}
	return p
}

// Release lets virtual time and all parked threads go on. Offsets are computed from what Hold kept, so that a second
// controller that does it again gives no other clock than one that was released later.
func (c *Control) Release() {
	p := c.Pause()
	if p&1 == 0 { // who released it may have died before the rest
		c.setFast()
		c.wake()
		return
	}
	e := c.pausing(p)
	if atomic.LoadUint64(&e.Stop) != 0 { // else who paused died before the clock had stopped
		for i := range c.c.Clocks {
			k := &c.c.Clocks[i]
			stop := atomic.LoadUint64(&k.Stop)
			atomic.StoreUint64(&k.Offset, atomic.LoadUint64(&k.Was)+max(read(i), stop)-stop)
		}
		atomic.StoreUint64(&e.Go, Now().Ticks)
	}
	atomic.StoreUint32(&c.c.Pause, p+1)
	c.setFast()
	c.wake()
}

func (c *Control) wake() {
	const futexWake = 1
	unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&c.c.Pause)), futexWake, 1<<30, 0, 0, 0)
}

// setFast lets calls take the fast path where nothing forbids it.
func (c *Control) setFast() {
	fast := c.Level()
	if atomic.LoadUint64(&c.c.Clocks[cabi.ClockMonotonic].Offset) != 0 {
		fast &^= 1 << cabi.Time
	}
	if c.Index() != "" || c.Serial() || atomic.LoadUint32(&c.c.Chaos) != 0 || atomic.LoadUint32(&c.c.Delayed) != 0 || c.Pause()&1 != 0 {
		fast = 0
	}
	atomic.StoreUint32(&c.c.Fast, fast)
}

// Halt notes that a process gets SIGSTOP from us. ok is false when the list is full: it must then be found by its state.
func (c *Control) Halt(pid uint32) (ok bool) {
	p := c.Pause()
	if atomic.LoadUint32(&c.c.HaltsOf) != p {
		atomic.StoreUint32(&c.c.HaltsLen, 0)
		atomic.StoreUint32(&c.c.HaltsOf, p)
	}
	atomic.StoreUint32(&c.c.Halted, 1)
	n := atomic.LoadUint32(&c.c.HaltsLen)
	if n >= cabi.HaltsMax {
		return false
	}
	atomic.StoreUint32(&c.c.Halts[n], pid)
	atomic.StoreUint32(&c.c.HaltsLen, n+1)
	return true
}

// Halts are the processes that have got SIGSTOP and no SIGCONT yet. full: there are more of them.
func (c *Control) Halts() (pids []uint32, full bool) {
	if atomic.LoadUint32(&c.c.Halted) == 0 {
		return nil, false
	}
	n := min(atomic.LoadUint32(&c.c.HaltsLen), cabi.HaltsMax)
	for i := range n {
		pids = append(pids, atomic.LoadUint32(&c.c.Halts[i]))
	}
	return pids, n == cabi.HaltsMax
}

// Unhalted says that all have got their SIGCONT. The list stays: parents still hear of it.
func (c *Control) Unhalted() { atomic.StoreUint32(&c.c.Halted, 0) }

// Continue sends SIGCONT, marked as ours so that no handler of the program sees it.
func (c *Control) Continue(pid uint32) error {
	const siQueue = -1
	info := struct {
		signo, errno, code, pad int32
		pid, uid                int32
		value                   uint64
		rest                    [96]byte
	}{signo: int32(unix.SIGCONT), code: siQueue, pid: int32(os.Getpid()), uid: int32(os.Getuid()), value: c.Tag() & 0xffffffff}
	if _, _, e := unix.Syscall(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), uintptr(unix.SIGCONT), uintptr(unsafe.Pointer(&info))); e != 0 {
		return e
	}
	return nil
}

// Frozen counts how often a process has stopped or started its timers when SIGCONT asked it to.
func (c *Control) Frozen() uint32 { return atomic.LoadUint32(&c.c.Frozen) }

// BeginAt makes a run that re-executed record from here on, where the pause in force ends: its clocks go on from these (0:
// nobody was told that one, it is behind as the monotonic one is), the last being CLOCK_REALTIME; threads and processes
// are numbered from uid and proc on.
func (c *Control) BeginAt(clocks [cabi.ClocksVirtual + 1]uint64, uid, proc uint32) {
	k := &c.c.Clocks
	behind := atomic.LoadUint64(&k[cabi.ClockMonotonic].Stop) - clocks[cabi.ClockMonotonic]
	now := Now()
	real := now.Real - (now.Mono - atomic.LoadUint64(&k[cabi.ClockMonotonic].Stop)) // when it stopped
	atomic.StoreUint64(&c.c.RealShift, real-behind-clocks[cabi.ClocksVirtual])
	for i := range k {
		off := behind
		if clocks[i] != 0 {
			off = atomic.LoadUint64(&k[i].Stop) - clocks[i]
		}
		atomic.StoreUint64(&k[i].Was, off)
		atomic.StoreUint64(&k[i].Offset, off)
	}
	atomic.StoreUint32(&c.c.NextUID, uid)
	atomic.StoreUint32(&c.c.NextProc, proc)
	atomic.StoreUint32(&c.c.Inputs, cabi.InputsDefault)
}

// VirtualTime is what the program's clocks show: CLOCK_MONOTONIC and CLOCK_REALTIME, and by how much they are behind.
func (c *Control) VirtualTime() (mono, real, behind uint64) {
	for {
		p := c.Pause()
		k := &c.c.Clocks[cabi.ClockMonotonic]
		behind = atomic.LoadUint64(&k.Offset)
		now := Now()
		if p&1 != 0 && atomic.LoadUint64(&c.pausing(p).Stop) != 0 {
			stop := atomic.LoadUint64(&k.Stop)
			behind = atomic.LoadUint64(&k.Was) + max(now.Mono, stop) - stop
		}
		if c.Pause() == p {
			return now.Mono - behind, now.Real - behind - atomic.LoadUint64(&c.c.RealShift), behind
		}
	}
}

// Package shm maps what a run's processes share: the control page and the rings. It is the only package with unsafe and
// with mapping calls. What it maps may be written by live processes at any time, and by anybody once they are dead:
// every number read from it is checked before it is used, and copied first where it is used twice.
//
//	Control   the file `control` of a trace directory: level, owners of slots, clock. Where files are copied on writing it is a
//	          link to <tag>.control beside the rings
//	Rings     /dev/shm/prophet-<euid>/<tag>.rings: a slot a thread; slot i at i*cabi.SlotSize
//	Flight    /dev/shm/prophet-<euid>/<tag>.flight: the last chunks of a run that keeps only its last part
//
// A mapping may be used by many goroutines; Close must come after all of them.
package shm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"prophet/cabi"
)

// The layout that C and Go share is asserted here, where it is laid over memory: each fits the room it has.
var (
	_ [cabi.SlotHeader - unsafe.Sizeof(cabi.Slot{})]struct{}
	_ [cabi.OwnersAt - unsafe.Sizeof(cabi.Control{})]struct{}
)

// ErrNoControl says that the trace has no control file: its run has ended and was completed.
var ErrNoControl = errors.New("the run is not live: it has no control file")

// Control is a mapped control file.
type Control struct {
	mem []byte
	c   *cabi.Control
	f   *os.File
}

// OpenControl maps the control file of a trace directory.
func OpenControl(dir string) (*Control, error) {
	f, err := os.OpenFile(controlPath(dir), os.O_RDWR|unix.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNoControl
	}
	if err != nil {
		return nil, err
	}
	mem, err := mapFile(f, cabi.ControlSize)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("map control: %w", err)
	}
	c := &Control{mem: mem, c: (*cabi.Control)(unsafe.Pointer(&mem[0])), f: f}
	if magic, version := atomic.LoadUint64(&c.c.Magic), atomic.LoadUint32(&c.c.Version); magic != cabi.ControlMagic || version != cabi.FormatVersion {
		c.Close()
		return nil, fmt.Errorf("control: not a control file of format %d (magic %#x, format %d)", cabi.FormatVersion, magic, version)
	}
	return c, nil
}

// apart is what a link named control may point to: the same file of any user. What lies there is checked as any other.
var apart = regexp.MustCompile(`^/dev/shm/prophet-[0-9]{1,10}/([0-9a-f]{16})\.control$`)

// controlPath is where the control file of a trace directory lies.
func controlPath(dir string) string {
	path := filepath.Join(dir, "control")
	if link, err := os.Readlink(path); err == nil && apart.MatchString(link) {
		return link
	}
	return path
}

// mapFile maps a regular file, which must be at least size bytes long.
func mapFile(f *os.File, size int64) ([]byte, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() < size {
		return nil, fmt.Errorf("%s: %d bytes, of %d at least", f.Name(), st.Size(), size)
	}
	return unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// Close unmaps it.
func (c *Control) Close() error {
	c.c = nil
	return errors.Join(unix.Munmap(c.mem), c.f.Close())
}

// Lock takes the control file for one command at a time; false when another has it.
func (c *Control) Lock() bool { return unix.Flock(int(c.f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil }

// Unlock lets the next command in.
func (c *Control) Unlock() { unix.Flock(int(c.f.Fd()), unix.LOCK_UN) }

// Tag is the random name of the run.
func (c *Control) Tag() uint64 { return atomic.LoadUint64(&c.c.Tag) }

// Level is what is recorded: a bit a class.
func (c *Control) Level() uint32 { return atomic.LoadUint32(&c.c.Level) }

// SetLevel switches what is recorded from the next event of each thread on. Fast follows Level except where every call
// must take the slow path (serial runs, chaos, injected delays, a pause). Level is stored first: a thread that sees the new Fast
// sees the new Level.
func (c *Control) SetLevel(l uint32) {
	atomic.StoreUint32(&c.c.Level, l)
	c.setFast()
}

// Serial reports whether one token goes round.
func (c *Control) Serial() bool { return atomic.LoadUint32(&c.c.Serial) != 0 }

// Flight is the size of the flight area, 0 when streams are written as usual.
func (c *Control) Flight() uint64 { return atomic.LoadUint64(&c.c.Flight) }

// FlightPos counts the chunks ever put into the flight area.
func (c *Control) FlightPos() uint64 { return atomic.LoadUint64(&c.c.FlightPos) }

// SlotsEnd is one more than the highest slot ever used.
func (c *Control) SlotsEnd() int { return int(min(atomic.LoadUint32(&c.c.SlotsEnd), cabi.SlotsMax)) }

// Procs is how many processes the run has had.
func (c *Control) Procs() uint32 { return atomic.LoadUint32(&c.c.NextProc) }

// Lost is how many things were lost.
func (c *Control) Lost() uint32 { return atomic.LoadUint32(&c.c.Lost) }

// Start is the run's first reading of all clocks: ticks, CLOCK_MONOTONIC, CLOCK_REALTIME.
func (c *Control) Start() (ticks, mono, real uint64) {
	return atomic.LoadUint64(&c.c.Ticks0), atomic.LoadUint64(&c.c.Mono0), atomic.LoadUint64(&c.c.Real0)
}

// TicksHz is what the recorder measured, 0 before.
func (c *Control) TicksHz() uint64 { return atomic.LoadUint64(&c.c.TicksHz) }

// SetEnded tells late processes to leave the trace alone.
func (c *Control) SetEnded() { atomic.StoreUint32(&c.c.Ended, 1) }

func (c *Control) owner(slot int) *uint32 {
	return (*uint32)(unsafe.Pointer(&c.mem[cabi.OwnersAt+4*slot]))
}

// Owner is the pid that has a slot, 0 when free.
func (c *Control) Owner(slot int) uint32 {
	if slot < 0 || slot >= cabi.SlotsMax {
		return 0
	}
	return atomic.LoadUint32(c.owner(slot))
}

// Free gives a dead owner's slot back; false when it has another owner by now.
func (c *Control) Free(slot int, pid uint32) bool {
	if slot < 0 || slot >= cabi.SlotsMax || !atomic.CompareAndSwapUint32(c.owner(slot), pid, 0) {
		return false
	}
	atomic.AddUint32(&c.c.Live, ^uint32(0))
	return true
}

// Dir is the per-user directory of rings.
func Dir() string { return fmt.Sprintf("/dev/shm/prophet-%d", os.Geteuid()) }

// RingsName, FlightName, LinkName and ApartName are the files of a run in Dir.
func RingsName(tag uint64) string  { return fmt.Sprintf("%016x.rings", tag) }
func FlightName(tag uint64) string { return fmt.Sprintf("%016x.flight", tag) }
func LinkName(tag uint64) string   { return fmt.Sprintf("%016x.dir", tag) }
func ApartName(tag uint64) string  { return fmt.Sprintf("%016x.control", tag) }

// trusted reports whether Dir is a directory of ours that no one else can write to.
func trusted() error {
	st, err := os.Lstat(Dir())
	if err != nil {
		return err
	}
	s, ok := st.Sys().(*unix.Stat_t)
	if ok && int(s.Uid) != os.Geteuid() || !st.IsDir() || st.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is not a private directory of this user", Dir())
	}
	return nil
}

// Rings are the mapped rings of a run.
type Rings struct {
	mem  []byte
	n    int
	f    *os.File
	size int64 // of the file when it was last looked at: the last slot gets the rest of its memory late
}

// OpenRings maps the rings of a run: as many slots as the control file says and the file has.
func OpenRings(c *Control) (r *Rings, err error) {
	if err := trusted(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(Dir(), RingsName(c.Tag())), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if r == nil || r.f == nil {
			f.Close()
		}
	}()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	n := min(c.SlotsEnd(), int((st.Size()+cabi.SlotSize-cabi.SlotFirst)/cabi.SlotSize)) // the last one may not have all of its memory yet
	if n == 0 || !st.Mode().IsRegular() {
		return &Rings{}, nil
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, n*cabi.SlotSize, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map rings: %w", err)
	}
	return &Rings{mem, n, f, st.Size()}, nil
}

// Close unmaps them.
func (r *Rings) Close() error {
	if r.mem == nil {
		return nil
	}
	m := r.mem
	r.mem, r.n = nil, 0
	r.f.Close()
	return unix.Munmap(m)
}

// Len is how many slots are mapped.
func (r *Rings) Len() int { return r.n }

func (r *Rings) slot(i int) *cabi.Slot { return (*cabi.Slot)(unsafe.Pointer(&r.mem[i*cabi.SlotSize])) }

// Slot is a copy of the head of a slot.
type Slot struct {
	Owner, TID, UID, Proc uint32
	Pos, Flushes          uint32 // the halves of cabi.Slot.Pos: bytes committed, flushes so far
	Seq, Base, Gen        uint64
	Start, Begin          uint64
	State, Call           uint32
	Parked, NS            uint32
}

// Head copies the head of slot i. Its fields are read one by one: those of a live thread may not fit each other.
func (r *Rings) Head(i int) Slot {
	s := r.slot(i)
	pos := atomic.LoadUint64(&s.Pos)
	return Slot{
		Owner: atomic.LoadUint32(&s.Owner), TID: atomic.LoadUint32(&s.TID), UID: atomic.LoadUint32(&s.UID), Proc: atomic.LoadUint32(&s.Proc),
		Pos: uint32(pos), Flushes: uint32(pos >> 32), Seq: atomic.LoadUint64(&s.Seq), Base: atomic.LoadUint64(&s.Base), Gen: atomic.LoadUint64(&s.Gen),
		Start: atomic.LoadUint64(&s.Start), Begin: atomic.LoadUint64(&s.Begin),
		State: atomic.LoadUint32(&s.State), Call: atomic.LoadUint32(&s.Call),
		Parked: atomic.LoadUint32(&s.Parked), NS: atomic.LoadUint32(&s.NS),
	}
}

// has says whether the file is that long: to touch the mapping behind its end would be SIGBUS.
func (r *Rings) has(end int64) bool {
	if end > r.size {
		if st, err := r.f.Stat(); err == nil {
			r.size = st.Size()
		}
	}
	return end <= r.size
}

// tailTries bounds how often Tail tries again when the owner flushes under it.
const tailTries = 64

// Tail copies what slot i holds that is not in the stream yet. ok is false when the owner flushed at every try: then
// the stream has it. With dead, the owner is known to be dead and Gen is not looked at: what a flush had begun to write
// may be in the stream as well, under the same Seq.
//
// Gen is read before and after (acquire by atomic loads): it is odd while the owner flushes and another after. Pos is
// committed after the bytes below it, so that the copy up to Pos is whole.
func (r *Rings) Tail(i int, dead bool) (s Slot, tail []byte, ok bool) {
	for range tailTries {
		s = r.Head(i)
		if s.Gen&1 != 0 && !dead {
			continue
		}
		at := i*cabi.SlotSize + cabi.SlotHeader + cabi.ChunkHeader
		if s.Pos > cabi.RingCap || !r.has(int64(at)+int64(s.Pos)) {
			return s, nil, false
		}
		tail = append(tail[:0], r.mem[at:at+int(s.Pos)]...)
		again := r.Head(i)
		if dead || again.Gen == s.Gen && again.Flushes == s.Flushes && again.UID == s.UID && again.Seq == s.Seq {
			return s, tail, true
		}
	}
	return s, nil, false
}

// ReadFlight copies the places of a run's flight area, the oldest chunk first. What lies in a place is not checked.
func ReadFlight(c *Control) ([][]byte, error) {
	if err := trusted(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(Dir(), FlightName(c.Tag())), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	places := min(c.Flight(), uint64(st.Size())) / cabi.SlotSize
	if places == 0 || !st.Mode().IsRegular() {
		return nil, nil
	}
	pos := c.FlightPos()
	first := uint64(0)
	if pos > places {
		first = pos - places
	}
	var out [][]byte
	for n := first; n < pos; n++ {
		b := make([]byte, cabi.SlotSize)
		if _, err := f.ReadAt(b, int64(n%places*cabi.SlotSize)); err != nil {
			return out, err
		}
		out = append(out, b)
	}
	return out, nil
}

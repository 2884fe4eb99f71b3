package recovery

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"prophet/cabi"
	"prophet/runtime/shm"
	"prophet/runtime/trace"
)

// fake is a run as its processes leave it: a directory with a control file, and rings in shared memory.
type fake struct {
	dir, rings string
	tag        uint64
	control    []byte
	ring       []byte
}

func (f *fake) save(t *testing.T) {
	t.Helper()
	for path, b := range map[string][]byte{filepath.Join(f.dir, "control"): f.control, f.rings: f.ring} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Offsets of cabi.Control and cabi.Slot that the test writes; TestOffsets holds them to what shm reads.
const (
	atVersion, atSize, atTag, atLevel, atFast, atFlight, atFlightPos = 8, 12, 16, 24, 28, 40, 48
	atSlotsEnd, atLive                                               = 68, 72
)

func newFake(t *testing.T) *fake {
	t.Helper()
	if err := os.MkdirAll(shm.Dir(), 0o700); err != nil {
		t.Fatal("these tests need a /dev/shm that can be written: ", err)
	}
	f := &fake{dir: filepath.Join(t.TempDir(), "r.prophet"), tag: rand.Uint64(), control: make([]byte, cabi.ControlSize)}
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f.rings = filepath.Join(shm.Dir(), shm.RingsName(f.tag))
	t.Cleanup(func() { os.Remove(f.rings); os.Remove(filepath.Join(shm.Dir(), shm.FlightName(f.tag))) })
	le := binary.LittleEndian
	le.PutUint64(f.control, cabi.ControlMagic)
	le.PutUint32(f.control[atVersion:], cabi.FormatVersion)
	le.PutUint32(f.control[atSize:], cabi.ControlSize)
	le.PutUint64(f.control[atTag:], f.tag)
	le.PutUint32(f.control[atLevel:], cabi.LevelFull)
	m := trace.Meta{Format: 1, State: trace.StateRecording, Run: fmt.Sprintf("%016x", f.tag), TicksHz: 1_000_000_000, Command: []string{"x"}}
	if err := trace.WriteMeta(f.dir, &m); err != nil {
		t.Fatal(err)
	}
	return f
}

// slot adds a slot of this owner with events in it.
func (f *fake) slot(pid, uid uint32, seen uint64, events int, damage bool) {
	le := binary.LittleEndian
	n := len(f.ring) / cabi.SlotSize
	f.ring = append(f.ring, make([]byte, cabi.SlotSize)...)
	s := f.ring[n*cabi.SlotSize:]
	payload := payloadOf(uid, events)
	if damage {
		payload = append(payload, 0, 0xff, 3)
	}
	le.PutUint32(s[0:], pid)
	le.PutUint32(s[8:], uid)
	le.PutUint64(s[16:], 7<<32|uint64(len(payload))) // flushed seven times
	le.PutUint64(s[32:], 1000)
	le.PutUint64(s[48:], seen)
	le.PutUint32(s[56:], cabi.SlotLive)
	copy(s[cabi.SlotHeader+cabi.ChunkHeader:], payload)
	le.PutUint32(f.control[cabi.OwnersAt+4*n:], pid)
	le.PutUint32(f.control[atSlotsEnd:], uint32(n+1))
	le.PutUint32(f.control[atLive:], uint32(n+1))
}

func payloadOf(uid uint32, events int) []byte {
	var out []byte
	e := trace.NewEncoder(uid, 0, 1000, func(c trace.MemChunk) error { out = append(out, c.Payload...); return nil })
	for i := range events {
		e.Event(&trace.Record{Call: 2, Begin: uint64(1000 + i), Obj: trace.Object{UID: uid, Num: 1}})
	}
	e.Flush(0)
	return out
}

func deadPID(t *testing.T) uint32 {
	t.Helper()
	c := exec.Command("true")
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	return uint32(c.Process.Pid)
}

func events(t *testing.T, dir string) int {
	t.Helper()
	tr, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	res, err := tr.Verify(1, nil)
	if err != nil || res.Damaged != 0 {
		t.Fatal(err, res.Damage)
	}
	return int(res.Events)
}

func TestRecoverDead(t *testing.T) {
	f := newFake(t)
	dead := deadPID(t)
	f.slot(dead, 1, 1<<62, 100, false)
	f.slot(dead, 2, 1<<62, 50, true) // what lies behind its last whole record is left out
	f.slot(dead, 3, 1<<62, 0, false)
	f.save(t)
	rep, err := Recover(f.dir, Options{})
	if err != nil || rep.Tails != 2 || !rep.Done || len(rep.Errs) != 0 {
		t.Fatalf("%+v %v", rep, err)
	}
	if n := events(t, f.dir); n != 150 {
		t.Errorf("%d events", n)
	}
	for _, gone := range []string{f.rings, filepath.Join(f.dir, "control")} {
		if _, err := os.Lstat(gone); err == nil {
			t.Errorf("%s is still there", gone)
		}
	}
	tr, _ := trace.Open(f.dir)
	defer tr.Close()
	if m := tr.Meta; m.State != trace.StateComplete || m.Ended == nil || m.Ended.How != "signal" || !m.Ended.Recovered || m.Totals.Events != 150 {
		t.Errorf("meta: %+v %+v", m, m.Ended)
	}
	if rep, err = Recover(f.dir, Options{}); err != nil || !rep.Was {
		t.Errorf("again: %+v %v", rep, err)
	}
}

// While one process lives, the tails of the dead are saved, its own are read along, and nothing is taken away.
func TestRecoverLive(t *testing.T) {
	f := newFake(t)
	f.slot(deadPID(t), 1, 1<<62, 10, false)
	f.slot(uint32(os.Getpid()), 2, 1<<62, 20, false)
	f.save(t)
	tr, live, _, err := Open(f.dir, nil)
	if err != nil || !live {
		t.Fatal(live, err)
	}
	defer tr.Close()
	res, err := tr.Verify(1, nil)
	if err != nil || res.Events != 30 || res.Damaged != 0 {
		t.Fatalf("%+v %v", res, err)
	}
	if n := events(t, f.dir); n != 10 {
		t.Errorf("%d events are in the stream; those of the live thread are not ours to write", n)
	}
	if _, err := os.Lstat(f.rings); err != nil {
		t.Error("the rings of a live run are gone")
	}
}

// A pid that another process has by now is dead; a tail that was flushed before the kill is not counted twice.
func TestRecoverReusedAndDoubled(t *testing.T) {
	f := newFake(t)
	f.slot(uint32(os.Getpid()), 1, 1, 10, false) // seen 1 ns after boot
	f.save(t)
	w, err := trace.NewWriter(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	w.Put(trace.MemChunk{Header: trace.Header{Kind: cabi.ChunkEvents, UID: 1, Base: 1000}, Payload: payloadOf(1, 10)})
	w.Close()
	rep, err := Recover(f.dir, Options{})
	if err != nil || !rep.Done {
		t.Fatalf("%+v %v", rep, err)
	}
	if n := events(t, f.dir); n != 10 {
		t.Errorf("%d events", n)
	}
}

func TestFlight(t *testing.T) {
	f := newFake(t)
	const places = 4
	le := binary.LittleEndian
	le.PutUint64(f.control[atFlight:], places*cabi.SlotSize)
	le.PutUint64(f.control[atFlightPos:], 6)
	area := make([]byte, places*cabi.SlotSize)
	for n := range uint64(6) {
		c := trace.MemChunk{Header: trace.Header{Kind: cabi.ChunkEvents, UID: 1, Seq: n, Base: 1000 * n}, Payload: payloadOf(1, 10)}
		copy(area[n%places*cabi.SlotSize:], trace.AppendChunk(nil, c))
	}
	area[3*cabi.SlotSize+70] ^= 1 // a place that a writer was killed in
	if err := os.WriteFile(filepath.Join(shm.Dir(), shm.FlightName(f.tag)), area, 0o600); err != nil {
		t.Fatal(err)
	}
	f.slot(deadPID(t), 2, 1<<62, 5, false)
	f.save(t)
	rep, err := Recover(f.dir, Options{})
	if err != nil || rep.Flight != 3 || rep.Tails != 1 {
		t.Fatalf("%+v %v", rep, err)
	}
}

// What lies in shared memory is not trusted.
func TestHostileControl(t *testing.T) {
	rows := 0
	for seed := range uint64(60) {
		f := newFake(t)
		f.slot(deadPID(t), 1, 1<<62, 10, false)
		r := rand.New(rand.NewPCG(seed, 1))
		for range 40 {
			f.control[16+r.IntN(120)] = byte(r.Uint32())
			f.ring[r.IntN(300)] = byte(r.Uint32())
		}
		le := binary.LittleEndian
		le.PutUint64(f.control[atTag:], f.tag)
		f.save(t)
		Recover(f.dir, Options{}) // an error is fine, a crash is not
		rows++
	}
	if rows != 60 {
		t.Fatalf("%d rows visited", rows)
	}
}

func TestSweep(t *testing.T) {
	f := newFake(t)
	f.slot(deadPID(t), 1, 1<<62, 1, false)
	f.save(t)
	link := filepath.Join(shm.Dir(), shm.LinkName(f.tag))
	if err := os.Symlink(f.dir, link); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(link)
	old := time.Now().Add(-time.Hour)
	os.Chtimes(f.rings, old, old)
	if _, err := Sweep(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(f.rings); err != nil {
		t.Fatal("rings whose trace is still there were removed")
	}
	os.RemoveAll(f.dir)
	if _, err := Sweep(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(f.rings); err == nil {
		t.Error("rings whose trace is gone are still there")
	}
}

// A rate that is measured now is that of a trace whose clocks went on at it.
func TestRateSince(t *testing.T) {
	const hz = 2_500_000_000
	at := func(s float64, rate float64, off uint64) trace.ClockPoint {
		return trace.ClockPoint{Ticks: uint64(s*rate) + off, Mono: uint64(s * 1e9)}
	}
	from, to := at(5000, hz, 77), at(5000.02, hz, 77)
	for _, c := range []struct {
		name    string
		earlier trace.ClockPoint
		want    bool
	}{
		{"a moment ago", at(4999.99, hz, 77), true},
		{"at the start of the machine", at(1, hz, 77), true},
		{"another machine's, which was up for longer", at(9000, hz, 77), false},
		{"another's rate", at(4000, 2_400_000_000, 77), false},
		{"counted from elsewhere", at(4999, hz, 77+hz/10), false},
	} {
		got := rateSince(c.earlier, from, to)
		if c.want && (got < hz-1000 || got > hz+1000) || !c.want && got != 0 {
			t.Errorf("%s: %d", c.name, got)
		}
	}
}

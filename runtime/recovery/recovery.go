// Package recovery finishes what the processes of a run could not: it saves the tails that killed processes left in
// shared memory, completes meta.json, and removes what is not needed any more. Every command opens traces through it, so
// that a run that has ended is complete for whoever looks first.
package recovery

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"prophet/cabi"
	"prophet/runtime/shm"
	"prophet/runtime/summary"
	"prophet/runtime/trace"
)

// Report is what Recover did.
type Report struct {
	Live    int  // slots whose process still runs
	Tails   int  // tails of dead processes saved
	Bytes   int  // of them
	Flight  int  // chunks of the flight area written
	Done    bool // the trace is complete now
	Was     bool // it was complete before
	Skipped bool // another command is at it
	Errs    []error
}

// Options changes what Recover does.
type Options struct {
	Progress trace.Progress
	Signal   string // that ended the first process, for whoever knows
	Status   *int64 // its exit status
	TimedOut bool   // the signal was sent as it took too long
}

// Recover saves the tails of dead processes and, when none of the run is left, completes the trace.
func Recover(dir string, o Options) (*Report, error) {
	rep := &Report{}
	c, err := shm.OpenControl(dir)
	if errors.Is(err, shm.ErrNoControl) {
		return rep, completeDir(dir, o, rep)
	}
	if err != nil {
		return rep, err
	}
	defer c.Close()
	if !c.Lock() {
		rep.Skipped = true
		return rep, nil
	}
	defer c.Unlock()
	dead, live := slots(c)
	rep.Live = len(live)
	if len(live) == 0 && shm.Mapped(dir) {
		rep.Live = 1
	}
	if rep.Live == 0 {
		c.SetEnded()
	}
	if err := saveTails(dir, c, dead, rep); err != nil {
		return rep, err
	}
	if rep.Live > 0 {
		return rep, nil
	}
	if c.Flight() != 0 {
		if err := SaveFlight(dir, c, rep); err != nil {
			rep.Errs = append(rep.Errs, err)
		}
	}
	if err := completeDir(dir, o, rep); err != nil {
		return rep, err
	}
	// Last: while control is there, a command that was interrupted is done again.
	rep.Errs = append(rep.Errs, removeShared(c)...)
	return rep, os.Remove(filepath.Join(dir, "control"))
}

// removeShared removes what a run that has ended has in shared memory.
func removeShared(c *shm.Control) (errs []error) {
	for _, name := range []string{shm.RingsName(c.Tag()), shm.FlightName(c.Tag()), shm.LinkName(c.Tag()), shm.ApartName(c.Tag())} {
		if err := os.Remove(filepath.Join(shm.Dir(), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errs
}

// Discard removes a trace that nobody wants, with what its run has in shared memory. While processes of the run are live
// it removes nothing and returns their pids.
func Discard(dir string) (live []int, err error) {
	c, err := shm.OpenControl(dir)
	if errors.Is(err, shm.ErrNoControl) {
		return nil, os.RemoveAll(dir)
	}
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if !c.Lock() {
		return nil, fmt.Errorf("%s: another command has it", dir)
	}
	defer c.Unlock()
	if live = LivePids(c); len(live) > 0 {
		return live, nil
	}
	c.SetEnded()
	if err := errors.Join(removeShared(c)...); err != nil {
		return nil, err
	}
	return nil, os.RemoveAll(dir)
}

// LivePids are the processes of a run that go on.
func LivePids(c *shm.Control) []int {
	_, live := slots(c)
	return live
}

// slots finds the slots of dead owners, and the pids of the live ones.
func slots(c *shm.Control) (dead, live []int) {
	var w shm.Watch
	r, err := shm.OpenRings(c)
	if err == nil {
		defer r.Close()
	}
	for i := range c.SlotsEnd() {
		pid := c.Owner(i)
		if pid == 0 {
			continue
		}
		var seen uint64
		var ns uint32
		if err == nil && i < r.Len() {
			if h := r.Head(i); h.Owner == pid {
				seen, ns = h.Start, h.NS
			}
		}
		if here, ok := w.Alive(pid, ns, seen); ok {
			live = append(live, here)
		} else {
			dead = append(dead, i)
		}
	}
	return dead, live
}

// saveTails appends what dead owners left to the streams, and frees their slots.
func saveTails(dir string, c *shm.Control, dead []int, rep *Report) error {
	if len(dead) == 0 {
		return nil
	}
	var r *shm.Rings
	if rings, err := shm.OpenRings(c); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			rep.Errs = append(rep.Errs, fmt.Errorf("rings: %w; the last events of killed processes are lost", err))
		}
	} else {
		r = rings
		defer r.Close()
	}
	w, err := trace.NewWriter(dir)
	if err != nil {
		return err
	}
	defer w.Close()
	for _, i := range dead {
		if r == nil || i >= r.Len() {
			continue
		}
		if m, ok := tail(r, i, true); ok {
			m.Flags = cabi.ChunkRecovered
			if err := w.Put(m); err != nil {
				return err
			}
			rep.Tails++
			rep.Bytes += len(m.Payload)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, i := range dead {
		c.Free(i, c.Owner(i))
	}
	return nil
}

// tail makes a chunk of what a slot holds; false when it holds nothing.
func tail(r *shm.Rings, i int, dead bool) (trace.MemChunk, bool) {
	s, b, ok := r.Tail(i, dead)
	if !ok || s.State == cabi.SlotFree || s.UID == 0 || len(b) == 0 {
		return trace.MemChunk{}, false
	}
	b = b[:trace.WholePrefix(b, s.Base)]
	if len(b) == 0 {
		return trace.MemChunk{}, false
	}
	h := trace.Header{Kind: cabi.ChunkEvents, UID: s.UID, Proc: s.Proc, Seq: s.Seq, Base: s.Base}
	h.Seal(b)
	return trace.MemChunk{Header: h, Payload: b}, true
}

// SaveFlight writes the chunks of the flight area, and the tails of live threads, that the streams do not have yet.
func SaveFlight(dir string, c *shm.Control, rep *Report) error {
	places, err := shm.ReadFlight(c)
	if err != nil {
		return fmt.Errorf("flight area: %w", err)
	}
	have, err := trace.Open(dir)
	if err != nil {
		return err
	}
	defer have.Close()
	w, err := trace.NewWriter(dir)
	if err != nil {
		return err
	}
	defer w.Close()
	put := func(m trace.MemChunk) error {
		if have.HasChunk(m.Header) {
			return nil
		}
		rep.Flight++
		return w.Put(m)
	}
	for _, b := range places {
		h, err := trace.ParseHeader(b)
		if err != nil || int(h.Len) > len(b)-cabi.ChunkHeader {
			continue // a place that a writer was in
		}
		m := trace.MemChunk{Header: h, Payload: b[cabi.ChunkHeader : cabi.ChunkHeader+int(h.Len)]}
		if m.Seal(m.Payload); m.Sum != h.Sum {
			continue
		}
		if err := put(m); err != nil {
			return err
		}
	}
	live, err := LiveTails(c)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, m := range live {
		if err := put(m); err != nil {
			return err
		}
	}
	return w.Close()
}

// LiveTails copies what all threads of the run have not flushed yet.
func LiveTails(c *shm.Control) ([]trace.MemChunk, error) {
	r, err := shm.OpenRings(c)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out []trace.MemChunk
	for i := range r.Len() {
		if c.Owner(i) == 0 {
			continue
		}
		if m, ok := tail(r, i, false); ok {
			out = append(out, m)
		}
	}
	return out, nil
}

// Open opens a trace for reading: one that has ended is completed first, one that is live is read as far as it is, the
// rings included. notes are things that a person should be told.
func Open(path string, prog trace.Progress) (t *trace.Trace, live bool, notes []string, err error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, false, nil, err
	}
	if !st.IsDir() {
		t, err = trace.Open(path)
		return t, false, nil, err
	}
	rep, err := Recover(path, Options{Progress: prog})
	if err != nil {
		notes = append(notes, fmt.Sprintf("the trace could not be completed: %v", err))
	} else if rep.Tails > 0 {
		notes = append(notes, fmt.Sprintf("%d tails of killed processes were recovered (%d bytes)", rep.Tails, rep.Bytes))
	}
	for _, e := range rep.Errs {
		notes = append(notes, e.Error())
	}
	opts := []trace.Option{}
	if rep.Live > 0 {
		live = true
		if c, cerr := shm.OpenControl(path); cerr == nil {
			if tails, terr := LiveTails(c); terr == nil {
				opts = append(opts, trace.WithChunks(tails))
			}
			opts = append(opts, trace.WithTicksHz(rate(c)))
			c.Close()
		}
	}
	t, err = trace.Open(path, opts...)
	return t, live, notes, err
}

// rate is the rate of the ticks of a live run: as the recorder measured it, or from the run's start to now.
func rate(c *shm.Control) uint64 {
	if hz := c.TicksHz(); hz != 0 {
		return hz
	}
	t0, m0, _ := c.Start()
	return trace.Calibrate([]trace.ClockPoint{{Ticks: t0, Mono: m0}, shm.Now()})
}

// completeDir completes meta.json of a run that has ended.
func completeDir(dir string, o Options, rep *Report) error {
	t, err := trace.Open(dir)
	if err != nil {
		return err
	}
	defer t.Close()
	if t.Meta.State == trace.StateComplete || t.Meta.Format == 0 {
		rep.Was = true
		return nil
	}
	if t.Meta.TicksHz == 0 {
		if !t.Calibrated() {
			t.Clock = trace.NewClock(t.Clock.Ticks0, here(t))
		}
		t.Meta.TicksHz = t.Clock.Hz
	}
	s, err := summary.Of(t, runtime.GOMAXPROCS(0), o.Progress)
	if err != nil {
		return err
	}
	if hz := trace.Calibrate(s.Points); hz != 0 {
		t.Meta.TicksHz = hz
	}
	m := t.Meta
	m.State = trace.StateComplete
	m.Totals = s.Totals()
	m.Totals.KeptBytes = keptBytes(dir)
	m.Cover = &s.Cover
	m.Ended = &trace.Ended{How: "unknown", At: s.Duration(&t.Clock), Recovered: s.Recovered}
	switch {
	case s.Root != nil:
		m.Ended.How, m.Ended.Status = trace.ExitHow(s.Root.How), s.Root.Status
	case s.Recovered || rep.Tails > 0:
		m.Ended.How = trace.ExitHow(cabi.ExitSignal)
	}
	if o.Signal != "" {
		m.Ended.How, m.Ended.Signal = trace.ExitHow(cabi.ExitSignal), o.Signal
		m.Ended.TimedOut = o.TimedOut
	}
	if o.Status != nil {
		m.Ended.Status = *o.Status // who waited for it knows better than what it left
		if s.Root == nil {
			m.Ended.How = trace.ExitHow(cabi.ExitNormal)
		}
	}
	rep.Done = true
	return trace.WriteMeta(dir, m)
}

// here is the rate of this machine's ticks, for a trace of this machine since it was started; otherwise 0.
func here(t *trace.Trace) uint64 {
	p, ok := t.ClockPoint()
	if name, err := os.Hostname(); !ok || err != nil || name != t.Meta.Machine.Nodename {
		return 0
	}
	a := shm.Now()
	time.Sleep(20 * time.Millisecond)
	return rateSince(p, a, shm.Now())
}

// rateSince is the rate of the ticks between two readings of the clocks, 0 where both clocks did not go on to there from an
// earlier reading, which is then another machine's, or of before this one was started.
func rateSince(earlier, from, to trace.ClockPoint) uint64 {
	hz := trace.Calibrate([]trace.ClockPoint{from, to})
	if hz == 0 || to.Ticks < earlier.Ticks || to.Mono < earlier.Mono {
		return 0
	}
	clock := trace.NewClock(earlier.Ticks, hz)
	ns := int64(to.Mono - earlier.Mono)
	if off := clock.Since(to.Ticks) - ns; max(off, -off) > int64(time.Millisecond)+ns/20000 { // 20 ms tell a rate about as well
		return 0
	}
	return hz
}

func keptBytes(dir string) int64 {
	var n int64
	list, _ := os.ReadDir(filepath.Join(dir, "kept"))
	for _, e := range list {
		if i, err := e.Info(); err == nil && trace.KeptName(e.Name()) {
			n += i.Size()
		}
	}
	return n
}

// keepUnknown is how long shared memory is kept that does not say where its trace is and that nobody has mapped.
const keepUnknown = 24 * time.Hour

// Sweep removes shared memory that nobody can want any more: no process has it mapped, and the trace directory that it
// belongs to is gone. It returns the names it removed.
func Sweep() (removed []string, err error) {
	list, err := os.ReadDir(shm.Dir())
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	var used map[string]bool
	for _, e := range list {
		tag, ext, _ := strings.Cut(e.Name(), ".")
		if len(tag) != 16 || ext != "rings" && ext != "flight" && ext != "dir" && ext != "control" {
			continue
		}
		if used == nil {
			used = shm.InUse()
		}
		i, err := e.Info()
		if err != nil || used[tag] {
			continue
		}
		// A run that has just begun may not have mapped its file yet.
		wait := 10 * time.Second
		dir, known := shm.TraceOf(tag)
		if !known {
			wait = keepUnknown
		}
		if dir != "" || time.Since(i.ModTime()) < wait {
			continue
		}
		if os.Remove(filepath.Join(shm.Dir(), e.Name())) == nil {
			removed = append(removed, e.Name())
		}
	}
	return removed, nil
}

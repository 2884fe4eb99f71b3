package run

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"prophet/cabi"
	"prophet/runtime/recovery"
	"prophet/runtime/shm"
	"prophet/runtime/trace"
)

// Locate finds the trace directory that a person means: a path, or the pid of a process that is being recorded.
func Locate(arg string) (string, error) {
	if _, err := os.Stat(arg); err == nil {
		return arg, nil
	}
	if pid, err := strconv.Atoi(arg); err == nil && pid > 0 {
		return shm.TraceOfPID(pid)
	}
	return "", fmt.Errorf("%s is neither a trace nor the pid of a process", arg)
}

// ErrEnded says that the run is over.
var ErrEnded = errors.New("the run has ended")

// live maps the control file of a run that is live.
func live(dir string) (*shm.Control, error) {
	c, err := shm.OpenControl(dir)
	if errors.Is(err, shm.ErrNoControl) {
		return nil, fmt.Errorf("%s: %w", dir, ErrEnded)
	}
	return c, err
}

// SetLevel switches the level of a live run, at once, and says so in its trace. It returns the level before.
func SetLevel(dir string, level uint32) (uint32, error) {
	c, err := live(dir)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	was := c.Level()
	now := shm.Now()
	c.SetLevel(level)
	w, err := trace.NewWriter(dir)
	if err != nil {
		return was, err
	}
	payload := trace.AppendV(trace.AppendV(trace.AppendV(nil, cabi.TagLevel), now.Ticks), uint64(level))
	err = w.Put(trace.MemChunk{Header: trace.Header{Kind: cabi.ChunkControl, Seq: now.Ticks, Base: now.Ticks}, Payload: payload})
	return was, errors.Join(err, w.Close())
}

// Flight writes what the flight recorder of a run holds into its streams; the run goes on. It returns how many chunks
// were written.
func Flight(dir string) (int, error) {
	c, err := live(dir)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if c.Flight() == 0 {
		return 0, fmt.Errorf("%s has no flight recorder: it keeps all its events", dir)
	}
	if !c.Lock() {
		return 0, fmt.Errorf("another command is writing %s", dir)
	}
	defer c.Unlock()
	var rep recovery.Report
	err = recovery.SaveFlight(dir, c, &rep)
	return rep.Flight, err
}

// Status is what a live run is doing now.
type Status struct {
	Trace   string         `json:"trace"`
	Level   string         `json:"level"`
	Serial  bool           `json:"serial"`
	Flight  uint64         `json:"flight"`
	Lost    uint32         `json:"lost"`
	Threads []ThreadStatus `json:"threads"`
}

// ThreadStatus is what one thread is doing.
type ThreadStatus struct {
	PID     uint32 `json:"pid"`
	TID     uint32 `json:"tid"`
	UID     uint32 `json:"uid"`
	Name    string `json:"name"`
	Events  uint64 `json:"events"`
	Call    string `json:"call,omitempty"` // that it is inside of
	SinceNS int64  `json:"since_ns,omitempty"`
	Last    string `json:"last,omitempty"` // its last event's call
	LastNS  int64  `json:"last_ns,omitempty"`
	Dead    bool   `json:"dead,omitempty"`
}

// Watcher follows a live run without reading its streams again and again.
type Watcher struct {
	dir  string
	c    *shm.Control
	hz   uint64
	seen map[uint32]*counted
}

type counted struct {
	seq    uint64 // chunks below this are counted
	events uint64
	name   string
}

// Attach maps a live run.
func Attach(dir string) (*Watcher, error) {
	c, err := live(dir)
	if err != nil {
		return nil, err
	}
	return &Watcher{dir: dir, c: c, seen: map[uint32]*counted{}}, nil
}

// Close lets go of it.
func (w *Watcher) Close() error { return w.c.Close() }

// Look is the run's state now.
func (w *Watcher) Look() (*Status, error) {
	rings, err := shm.OpenRings(w.c)
	if err != nil {
		return nil, fmt.Errorf("the run's rings cannot be read: %w", err)
	}
	defer rings.Close()
	now := shm.Now()
	if w.hz == 0 {
		w.hz = w.rate(now)
	}
	clock := trace.NewClock(0, w.hz)
	s := &Status{Trace: w.dir, Level: trace.LevelName(w.c.Level()), Serial: w.c.Serial(), Flight: w.c.Flight(), Lost: w.c.Lost()}
	var alive shm.Watch
	for i := range rings.Len() {
		pid := w.c.Owner(i)
		if pid == 0 {
			continue
		}
		h, tail, ok := rings.Tail(i, false)
		if h.State == cabi.SlotFree || h.UID == 0 || h.Owner != pid {
			continue
		}
		_, lives := alive.Alive(pid, h.NS, h.Start)
		t := ThreadStatus{PID: pid, TID: h.TID, UID: h.UID, Dead: !lives}
		if h.Call != 0 && h.Begin != 0 && h.Begin <= now.Ticks {
			t.Call, t.SinceNS = trace.CallName(uint64(h.Call)), clock.NS(now.Ticks-h.Begin)
		}
		c := w.count(h.UID, h.Seq)
		t.Events, t.Name = c.events, c.name
		if ok {
			n, last, end := trace.CountEvents(tail, h.Base)
			t.Events += n
			if n > 0 {
				t.Last = trace.CallName(uint64(last))
				if end <= now.Ticks {
					t.LastNS = clock.NS(now.Ticks - end)
				}
			}
		}
		s.Threads = append(s.Threads, t)
	}
	return s, nil
}

// count is how many events the thread's chunks below seq hold. The streams are read when a chunk was added.
func (w *Watcher) count(uid uint32, seq uint64) *counted {
	c := w.seen[uid]
	if c == nil {
		c = &counted{}
		w.seen[uid] = c
	}
	if c.name != "" && c.seq >= seq {
		return c
	}
	tails, _ := recovery.LiveTails(w.c)
	t, err := trace.Open(w.dir, trace.WithChunks(tails), trace.WithTicksHz(w.hz))
	if err != nil {
		return c
	}
	defer t.Close()
	for _, th := range t.Threads {
		k := w.seen[th.UID]
		if k == nil {
			k = &counted{}
			w.seen[th.UID] = k
		}
		k.name = th.Name
		k.events += t.EventsBetween(th, k.seq, seqOf(th.UID, uid, seq, tails))
		k.seq = max(k.seq, seqOf(th.UID, uid, seq, tails))
	}
	return c
}

// seqOf is up to which chunk the streams count for a thread: those from there on are still in its ring.
func seqOf(uid, asked uint32, seq uint64, tails []trace.MemChunk) uint64 {
	if uid == asked {
		return seq
	}
	for i := range tails {
		if tails[i].UID == uid {
			return tails[i].Seq
		}
	}
	return 0
}

func (w *Watcher) rate(now trace.ClockPoint) uint64 {
	if hz := w.c.TicksHz(); hz != 0 {
		return hz
	}
	t0, m0, _ := w.c.Start()
	return trace.Calibrate([]trace.ClockPoint{{Ticks: t0, Mono: m0}, now})
}

package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"prophet/cabi"
	"prophet/replayd/proto"
	"prophet/runtime/pause"
	"prophet/runtime/replay"
	"prophet/runtime/shm"
	"prophet/runtime/trace"
)

// Again is the world of a re-execution. A pause is a live run's, with virtual time; besides that each thread has a limit in
// the index, the number of events that it may have, which is how the world is stepped and run to somewhere: limits are
// set while all stand, all go on, and when they have come to where they were to, there is a pause again. Breaks are
// looked at by the threads, too; whoever comes to one stands, and Poll makes a pause.
type Again struct {
	t        *trace.Trace
	name     string // of the trace
	dir      string // of the re-execution's own control file
	index    *shm.Index
	stay     bool
	realtime bool
	done     <-chan struct{} // closed when the program has ended
	stands   chan struct{}   // closed when it stands before its first event; nil: it is not to

	mu     sync.Mutex // who steers
	look   sync.Mutex // the run is opened once
	run    *pause.Run
	breaks []cabi.ReplayBreak
	free   *Live           // once the harness is off
	inside map[uint32]bool // threads that stood before or in an event then
}

// How long is waited for the program to begin, between two looks at who moves, and how long nobody may move until it is
// said who waits for whom.
const (
	beginLimit = 10 * time.Second
	between    = 20 * time.Millisecond
	stuckStep  = 60 * time.Millisecond
	stuckRun   = 2 * time.Second
	stuckCall  = 500 * time.Millisecond // where a thread is inside of a call that the index says nothing of
)

// NewAgain is the world of the re-execution whose control file lies, or will, in dir. done is closed when its program has
// ended.
func NewAgain(t *trace.Trace, name, dir string, index *shm.Index, stay, realtime bool, done <-chan struct{}) *Again {
	return &Again{t: t, name: name, dir: dir, index: index, stay: stay, realtime: realtime, done: done}
}

// Close lets go of the run.
func (w *Again) Close() error {
	w.look.Lock()
	defer w.look.Unlock()
	if w.run == nil {
		return nil
	}
	err := w.run.Close()
	w.run = nil
	if w.free != nil {
		err = errors.Join(err, w.free.Close())
	}
	return err
}

func (w *Again) ended() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// stood waits until a program that is to stand before its first event does: nobody is told of anything else.
func (w *Again) stood() error {
	if w.stands == nil {
		return nil
	}
	select {
	case <-w.stands:
		return nil
	case <-w.done:
		return proto.Errorf(proto.Ended, "the re-execution has ended")
	}
}

// opened maps the run's control file, once there is one.
func (w *Again) opened() (*pause.Run, error) {
	if err := w.stood(); err != nil {
		return nil, err
	}
	for begin := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		if w.ended() {
			return nil, proto.Errorf(proto.Ended, "the re-execution has ended")
		}
		if r, err := w.open(); r != nil || err != nil {
			return r, err
		}
		if time.Since(begin) > beginLimit {
			return nil, &proto.Error{Code: proto.NotStarted, Text: "the program has not begun yet", Hint: "try again in a moment"}
		}
	}
}

// open is nil without an error as long as no thread has begun.
func (w *Again) open() (*pause.Run, error) {
	w.look.Lock()
	defer w.look.Unlock()
	if w.run != nil {
		return w.run, nil
	}
	if !slices.ContainsFunc(w.index.Threads(), func(t shm.IndexThread) bool { return t.State != cabi.TurnNone }) {
		return nil, nil
	}
	r, err := pause.Open(w.dir)
	if errors.Is(err, shm.ErrNoControl) || errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r.SetOnDeath(w.stay)
	w.run = r
	return r, nil
}

// Stands reports whether the world is kept from going on, or steered just now.
func (w *Again) Stands() bool {
	if !w.mu.TryLock() {
		return true
	}
	defer w.mu.Unlock()
	r, err := w.open()
	return err == nil && r != nil && r.Paused()
}

// Hello is part of World.
func (w *Again) Hello() proto.Hello {
	return proto.Hello{Hello: "prophet", V: proto.Version, World: "re-execution", Trace: w.name, PID: os.Getpid()}
}

func stateName(t *shm.IndexThread, p *pause.Thread) string {
	switch t.State {
	case cabi.TurnWaits:
		return "waiting"
	case cabi.TurnHeld, cabi.TurnBroke:
		return string(pause.Parked)
	case cabi.TurnEnd:
		return "ending"
	case cabi.TurnOver:
		return "ended"
	case cabi.TurnStopped:
		return "diverged"
	}
	if p == nil {
		return string(pause.Dead)
	}
	return string(p.State)
}

func begun(list []shm.IndexThread) map[uint32]uint64 {
	at := map[uint32]uint64{}
	for i := range list {
		if list[i].State != cabi.TurnNone {
			at[list[i].UID] = list[i].Event
		}
	}
	return at
}

// Status is part of World. Pids and tids are those by which the processes are found here, by gdb for example, not those
// that the program sees.
func (w *Again) Status() (*proto.Status, error) {
	if f := w.Detached(); f != nil {
		return f.Status()
	}
	r, err := w.opened()
	if err != nil {
		return nil, err
	}
	list := w.index.Threads()
	states, err := r.Threads()
	if err != nil {
		return nil, err
	}
	by := map[uint32]*pause.Thread{}
	for i := range states {
		by[states[i].UID] = &states[i]
	}
	s := &proto.Status{World: "re-execution", Trace: w.name, Paused: r.Paused(), Threads: []proto.Thread{}}
	for i := range list {
		t := &list[i]
		if t.State == cabi.TurnNone {
			continue
		}
		th := w.thread(t, begun(list))
		if p := by[t.UID]; p != nil {
			th.PID, th.TID = p.PID, p.TID
		}
		th.State = stateName(t, by[t.UID])
		s.Threads = append(s.Threads, th)
	}
	for _, b := range w.places() {
		s.Breaks = append(s.Breaks, w.breakName(b))
	}
	return s, nil
}

func (w *Again) threadName(uid uint32) string {
	if th := w.t.ThreadByUID(uid); th != nil {
		return th.Name
	}
	return fmt.Sprint(uid)
}

// thread is what the index and the trace say of a thread.
func (w *Again) thread(t *shm.IndexThread, at map[uint32]uint64) proto.Thread {
	th := proto.Thread{Name: w.threadName(t.UID), UID: t.UID, Event: t.Event}
	if t.Call != 0 {
		th.Call = trace.CallName(uint64(t.Call))
	}
	if of := w.t.ThreadByUID(t.UID); of != nil && t.Event > 0 {
		if r := replay.NewCursor(w.t, of).Event(t.Event - 1); r != nil {
			th.Last = trace.CallName(uint64(r.Call))
		}
	}
	if t.State == cabi.TurnWaits {
		th.Object, th.Turn = replay.ObjectName(w.t, t.Object), t.Turn
		of, place, _ := replay.Taker(w.t, at, t.Object)
		if of != nil && of.UID == t.UID { // its place is next, but not let go of
			of, place = replay.Holder(w.t, at, t.Object)
		}
		if of != nil && of.UID != t.UID {
			th.At, th.For = place, of.Name
		}
	}
	return th
}

// Clock is part of World: what the recorded clocks showed when the latest event of those that have been began.
func (w *Again) Clock() (*proto.Clock, error) {
	if f := w.Detached(); f != nil {
		return f.Clock()
	}
	r, err := w.opened()
	if err != nil {
		return nil, err
	}
	since := int64(0)
	for _, t := range w.index.Threads() {
		of := w.t.ThreadByUID(t.UID)
		if of == nil || t.Event == 0 {
			continue
		}
		if e := replay.NewCursor(w.t, of).Event(t.Event - 1); e != nil {
			since = max(since, w.t.Clock.Since(e.Begin))
		}
	}
	mono := w.t.Mono0()
	return &proto.Clock{Paused: r.Paused(), SinceNS: uint64(since), MonoNS: mono + uint64(since), RealNS: uint64(w.t.Clock.Real0 + since)}, nil
}

// Pause is part of World.
func (w *Again) Pause(ctx context.Context) (*proto.Stop, error) {
	if f := w.Detached(); f != nil {
		return f.Pause(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r, err := w.opened()
	if err != nil {
		return nil, err
	}
	return w.pause(r, "paused")
}

func (w *Again) pause(r *pause.Run, reason string) (*proto.Stop, error) {
	w.index.Steer(true)
	rep, err := r.Pause()
	if err != nil {
		return nil, err
	}
	s := &proto.Stop{Reason: reason, TookNS: rep.Took.Nanoseconds(), Halted: rep.Halted}
	for _, t := range rep.Moving {
		s.Moving = append(s.Moving, int(t.TID))
	}
	return s, nil
}

// release lets all go on as far as limits and breaks let them.
func (w *Again) release(r *pause.Run, limited bool) (*pause.Report, error) {
	w.pass()
	w.index.Unbroke()
	w.index.Steer(limited || len(w.breaks) > 0)
	return r.Resume()
}

// pass lets those that stand at a break have that event.
func (w *Again) pass() {
	for _, t := range w.index.Threads() {
		if t.State == cabi.TurnBroke {
			w.index.SetPass(t.UID, t.Event+1)
		}
	}
}

// limit sets the limit of each thread.
func (w *Again) limit(of func(t *shm.IndexThread) uint64) {
	for _, t := range w.index.Threads() {
		w.index.SetUntil(t.UID, of(&t))
	}
}

func free(*shm.IndexThread) uint64 { return cabi.NoLimit }

// Resume is part of World.
func (w *Again) Resume(ctx context.Context) (*proto.Stop, error) {
	if f := w.Detached(); f != nil {
		return f.Resume(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r, err := w.opened()
	if err != nil {
		return nil, err
	}
	if !r.Paused() {
		return nil, proto.Errorf(proto.NotPaused, "the re-execution is not paused")
	}
	w.limit(free)
	rep, err := w.release(r, false)
	if err != nil {
		return nil, err
	}
	return &proto.Stop{Reason: "resumed", TookNS: rep.Took.Nanoseconds(), Halted: rep.Halted}, nil
}

// Continue is part of World.
func (w *Again) Continue(ctx context.Context) (*proto.Stop, error) {
	return w.steer(ctx, func(*pause.Run) (func() bool, *aim, error) {
		w.limit(free)
		return func() bool { return false }, &aim{stuck: stuckRun * 1000}, nil
	})
}

// aim is what a run-to or a step is for.
type aim struct {
	reason string        // when it is reached
	uid    uint32        // the thread that it is about; 0: all
	stuck  time.Duration // how long nobody may move
	settle bool          // that nobody moves is what is wanted
}

// over reports whether a thread has no further event to come.
func over(t *shm.IndexThread) bool {
	return t.State == cabi.TurnEnd || t.State == cabi.TurnOver
}

// steer pauses, lets prepare set the limits, lets all go on, and pauses again when it is reached, or cannot be.
func (w *Again) steer(ctx context.Context, prepare func(r *pause.Run) (reached func() bool, a *aim, err error)) (*proto.Stop, error) {
	if w.Detached() != nil {
		return nil, only("be steered, and this one's harness is off")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	begin := time.Now()
	r, err := w.opened()
	if err != nil {
		return nil, err
	}
	if !r.Paused() {
		if _, err := w.pause(r, ""); err != nil {
			return nil, err
		}
	}
	reached, a, err := prepare(r)
	if err != nil {
		return nil, err
	}
	if _, err := w.release(r, true); err != nil {
		return nil, err
	}
	reason, err := w.await(ctx, r, reached, a)
	if err != nil {
		w.pause(r, "")
		return nil, err
	}
	s := &proto.Stop{Reason: reason}
	if reason != "ended" {
		if s, err = w.pause(r, reason); err != nil {
			return nil, err
		}
	}
	s.TookNS = time.Since(begin).Nanoseconds()
	w.where(s, a)
	return s, nil
}

// where says about which thread it is, and whom that waits for.
func (w *Again) where(s *proto.Stop, a *aim) {
	uid := a.uid
	if s.Reason == "broke" {
		uid = w.index.Broke()
	}
	list := w.index.Threads()
	for i := range list {
		if t := &list[i]; t.UID == uid {
			th := w.thread(t, begun(list))
			s.Thread, s.Event, s.Call, s.Object, s.For = th.Name, th.Event, th.Call, th.Object, th.For
		}
	}
}

// await waits until it is reached, a thread has come to a break, the world has ended or differs, or nobody moves.
func (w *Again) await(ctx context.Context, r *pause.Run, reached func() bool, a *aim) (string, error) {
	looked, moved := time.Now(), time.Now()
	var before uint64
	for {
		stops := w.index.Stops()
		switch {
		case w.index.Diverged():
			return "diverged", nil
		case w.ended():
			return "ended", nil
		case reached():
			return a.reason, nil
		case w.index.Broke() != 0:
			return "broke", nil
		case ctx.Err() != nil:
			return "", ctx.Err()
		}
		if time.Since(looked) > between {
			looked = time.Now()
			moves, sure, events, err := w.moves(r)
			if err != nil {
				return "", err
			}
			stuck := a.stuck
			if !sure {
				stuck = max(stuck, stuckCall)
			}
			if moves || events != before {
				before, moved = events, time.Now()
			} else if time.Since(moved) > stuck {
				if a.settle {
					return a.reason, nil
				}
				return "waiting", nil
			}
		}
		w.index.AwaitStop(stops, time.Millisecond)
	}
}

// moves reports whether a thread runs, or may by itself, whether the index says so of all, and how many events there have
// been.
func (w *Again) moves(r *pause.Run) (moves, sure bool, events uint64, err error) {
	runs := map[uint32]bool{}
	sure = true
	for _, t := range w.index.Threads() {
		events += t.Event
		runs[t.UID] = t.State == cabi.TurnRuns
		sure = sure && !runs[t.UID]
	}
	states, err := r.Threads()
	if err != nil {
		return false, false, 0, err
	}
	for _, p := range states {
		if p.State == pause.Running || w.realtime && p.State == pause.InCall && runs[p.UID] { // it sleeps, perhaps
			return true, sure, events, nil
		}
	}
	return false, sure, events, nil
}

// RunTo is part of World.
func (w *Again) RunTo(ctx context.Context, thread string, event, timeNS uint64, mark string) (*proto.Stop, error) {
	return w.steer(ctx, func(*pause.Run) (func() bool, *aim, error) {
		if timeNS != 0 {
			return w.toTime(timeNS)
		}
		a := &aim{reason: "reached", stuck: stuckRun}
		at := begun(w.index.Threads())
		if mark != "" {
			th, n := replay.Mark(w.t, at, mark)
			if th == nil {
				return nil, nil, proto.Errorf(proto.Failed, "no mark %s is to come", trace.Clean(mark))
			}
			a.uid = th.UID
			w.only(th.UID, n)
			return func() bool {
				t := w.at(th.UID)
				return t.Event >= n && (t.State == cabi.TurnHeld || over(&t)) // the mark is made behind the event
			}, a, nil
		}
		th, err := replay.Thread(w.t, thread)
		if err != nil {
			return nil, nil, &proto.Error{Code: proto.BadRequest, Text: err.Error(), Hint: "prophet info names them"}
		}
		if n := w.t.EventsBetween(th, 0, 1<<62); event > n {
			return nil, nil, proto.Errorf(proto.Failed, "thread %s has %d events", th.Name, n)
		}
		if at[th.UID] > event {
			return nil, nil, proto.Errorf(proto.Failed, "thread %s has had %d events already", th.Name, at[th.UID])
		}
		a.uid = th.UID
		w.only(th.UID, event)
		return func() bool { return w.at(th.UID).Event >= event }, a, nil
	})
}

// only limits one thread.
func (w *Again) only(uid uint32, n uint64) {
	w.limit(func(t *shm.IndexThread) uint64 {
		if t.UID == uid {
			return n
		}
		return cabi.NoLimit
	})
}

func (w *Again) at(uid uint32) shm.IndexThread {
	for _, t := range w.index.Threads() {
		if t.UID == uid {
			return t
		}
	}
	return shm.IndexThread{}
}

// toTime limits each thread to what it had begun by then. One that was inside of a call, as its turn came later, is there
// now, too.
func (w *Again) toTime(ns uint64) (func() bool, *aim, error) {
	till := replay.Before(w.t, int64(ns))
	for _, t := range w.index.Threads() {
		if t.Event > till[t.UID] {
			return nil, nil, proto.Errorf(proto.Failed, "thread %s is further than %v already", w.threadName(t.UID), time.Duration(ns))
		}
	}
	w.limit(func(t *shm.IndexThread) uint64 { return till[t.UID] })
	return w.allThere, &aim{reason: "reached", stuck: stuckStep, settle: true}, nil
}

// allThere reports whether every thread that has begun stands at its limit or has ended.
func (w *Again) allThere() bool {
	for _, t := range w.index.Threads() {
		stands := t.State == cabi.TurnHeld && t.Event >= t.Until // one that is yet to wake up does not
		if t.State != cabi.TurnNone && !stands && !over(&t) {
			return false
		}
	}
	return true
}

// Step is part of World. Threads that begin meanwhile stand before their first event.
func (w *Again) Step(ctx context.Context, thread string, count uint64) (*proto.Stop, error) {
	return w.steer(ctx, func(*pause.Run) (func() bool, *aim, error) {
		if thread == "" {
			until := map[uint32]uint64{}
			for _, t := range w.index.Threads() {
				if t.State != cabi.TurnNone && !over(&t) {
					until[t.UID] = t.Event + count
				}
			}
			w.limit(func(t *shm.IndexThread) uint64 { return cmp.Or(until[t.UID], t.Event) })
			return func() bool {
				for _, t := range w.index.Threads() {
					if t.Event < until[t.UID] && !over(&t) {
						return false
					}
				}
				return true
			}, &aim{reason: "stepped", stuck: stuckStep, settle: true}, nil
		}
		th, err := replay.Thread(w.t, thread)
		if err != nil {
			return nil, nil, &proto.Error{Code: proto.BadRequest, Text: err.Error(), Hint: "prophet info names them"}
		}
		now := w.at(th.UID)
		if now.State == cabi.TurnNone {
			return nil, nil, proto.Errorf(proto.Failed, "thread %s has not begun", th.Name)
		}
		if over(&now) {
			return nil, nil, proto.Errorf(proto.Failed, "thread %s has had all of its %d events", th.Name, now.Event)
		}
		till := now.Event + count
		w.limit(func(t *shm.IndexThread) uint64 {
			if t.UID == th.UID {
				return till
			}
			return t.Event
		})
		return func() bool {
			t := w.at(th.UID)
			return t.Event >= till || over(&t)
		}, &aim{reason: "stepped", uid: th.UID, stuck: stuckStep}, nil
	})
}

// places are the breaks.
func (w *Again) places() []cabi.ReplayBreak {
	w.look.Lock()
	defer w.look.Unlock()
	return slices.Clone(w.breaks)
}

func (w *Again) breakName(b cabi.ReplayBreak) string {
	s := "object " + replay.ObjectName(w.t, b.Object)
	if b.Call != 0 {
		s = "call " + trace.CallName(uint64(b.Call))
	}
	if b.UID != 0 {
		s += " of " + w.threadName(b.UID)
	}
	return s
}

// Break is part of World.
func (w *Again) Break(ctx context.Context, object, call, thread string, clear bool) (*proto.Stop, error) {
	if f := w.Detached(); f != nil {
		return f.Break(ctx, object, call, thread, clear)
	}
	if err := w.stood(); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var b cabi.ReplayBreak
	if call != "" {
		row := slices.IndexFunc(cabi.Calls, func(c cabi.Call) bool { return c.Name == call })
		if row < 0 {
			return nil, proto.Errorf(proto.BadRequest, "no intercepted call has the name %s", trace.Clean(call))
		}
		b.Call = uint32(cabi.Calls[row].ID)
	} else {
		id, err := replay.Object(w.t, object)
		if err != nil {
			return nil, proto.Errorf(proto.BadRequest, "%v", err)
		}
		b.Object = id
	}
	if thread != "" {
		th, err := replay.Thread(w.t, thread)
		if err != nil {
			return nil, proto.Errorf(proto.BadRequest, "%v", err)
		}
		b.UID = th.UID
	}
	w.look.Lock()
	i := slices.Index(w.breaks, b)
	switch {
	case clear && i < 0:
		w.look.Unlock()
		return nil, proto.Errorf(proto.Failed, "there is no break at %s", w.breakName(b))
	case clear:
		w.breaks = slices.Delete(w.breaks, i, i+1)
	case i >= 0:
	case len(w.breaks) == cabi.BreaksMax:
		w.look.Unlock()
		return nil, proto.Errorf(proto.Failed, "there are %d breaks already", cabi.BreaksMax)
	default:
		w.breaks = append(w.breaks, b)
	}
	w.index.SetBreaks(w.breaks)
	w.look.Unlock()
	r, err := w.open()
	if err != nil {
		return nil, err
	}
	w.index.Steer(len(w.places()) > 0 || r != nil && r.Paused())
	if clear {
		return &proto.Stop{Reason: "cleared"}, nil
	}
	return &proto.Stop{Reason: "set"}, nil
}

// Poll pauses the world when a thread has come to a break and nobody waits for that.
func (w *Again) Poll() error {
	if w.index.Broke() == 0 || !w.mu.TryLock() {
		return nil
	}
	defer w.mu.Unlock()
	r, err := w.open()
	if err != nil || r == nil || r.Paused() {
		return err
	}
	_, err = w.pause(r, "broke")
	return err
}

// Hold makes the program stand before its first event; it is called before it starts. Begin pauses it there.
func (w *Again) Hold() {
	w.limit(func(*shm.IndexThread) uint64 { return 0 })
	w.index.Steer(true)
	w.stands = make(chan struct{})
}

// Begin is called once the program has been started; it returns when that stands.
func (w *Again) Begin() error {
	defer close(w.stands)
	for begin := time.Now(); ; w.index.AwaitStop(w.index.Stops(), time.Millisecond) {
		if w.ended() || time.Since(begin) > beginLimit {
			return nil
		}
		r, err := w.open()
		if err != nil {
			return err
		}
		if r != nil && slices.ContainsFunc(w.index.Threads(), func(t shm.IndexThread) bool { return t.State == cabi.TurnHeld || over(&t) }) {
			_, err := w.pause(r, "paused")
			return err
		}
	}
}

// Detach is part of World. The cut is a pause: what each thread has had has happened, and what it has not is asked for
// really. Clocks go on from the latest time that a thread may have been told.
func (w *Again) Detach(ctx context.Context) (*proto.Stop, error) {
	if f := w.Detached(); f != nil {
		return f.Detach(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r, err := w.opened()
	if err != nil {
		return nil, err
	}
	if w.t.Meta.Options.Serial {
		return nil, proto.Errorf(proto.Failed, "a serial run cannot go on freely: its threads go one at a time")
	}
	s, err := w.pause(r, "detached")
	if err != nil {
		return nil, err
	}
	if len(s.Moving) > 0 {
		_, err := w.release(r, false)
		return nil, errors.Join(proto.Errorf(proto.Failed, "thread %d could not be stopped", s.Moving[0]), err)
	}
	c, err := shm.OpenControl(w.dir)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	last, proc := uint32(0), uint32(0)
	told := map[uint32]uint64{}
	w.inside = map[uint32]bool{}
	for _, th := range w.t.Threads {
		last, proc = max(last, th.UID), max(proc, th.Proc.Number)
		if t := w.at(th.UID); t.State != cabi.TurnNone {
			told[th.UID] = t.Event
			if t.Call != 0 { // it may have its answer
				told[th.UID]++
				w.inside[th.UID] = true
			}
		}
	}
	c.BeginAt(replay.Clocks(w.t, told), last+1, proc+1)
	w.index.Detach()
	w.look.Lock()
	w.breaks, w.free = nil, NewLive(w.dir, w.stay)
	w.look.Unlock()
	if _, err := r.Resume(); err != nil {
		return nil, err
	}
	return s, nil
}

// Inside are the threads, by UID, that stood before or in an event when the harness came off.
func (w *Again) Inside() map[uint32]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.inside
}

// Detached is the world as a recording, once its harness is off; nil before.
func (w *Again) Detached() *Live {
	w.look.Lock()
	defer w.look.Unlock()
	return w.free
}

var _ World = (*Again)(nil)

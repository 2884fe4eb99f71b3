package tests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"prophet/replayd/client"
	"prophet/replayd/proto"
	"prophet/runtime/scratch"
	"prophet/runtime/shm"
	"prophet/runtime/trace"
)

// steered is a re-execution that stands before its first event, and who controls it.
type steered struct {
	*exec.Cmd
	*client.Client
	ctx    context.Context
	t      *testing.T
	socket string
	out    bytes.Buffer
	said   said // by all that write to standard error
	world  int  // pid of the world's process 1
	work   string
}

// said is a file that somebody writes.
type said struct{ *os.File }

func (s said) String() string {
	b, _ := os.ReadFile(s.Name())
	return string(b)
}

// recordedAgain records tests/progs/again.c.
func recordedAgain(t *testing.T, threads, rounds int) Run {
	t.Helper()
	r := Cmd{Argv: []string{prog(t, "again", "-g"), strconv.Itoa(threads), strconv.Itoa(rounds)}}.Recorded(t)
	if r.Status != "exit status 3" {
		t.Fatalf("%s: %s", r.Status, r.Stderr)
	}
	if out, err := exec.Command(built(t, "prophet"), "recover", r.Trace).CombinedOutput(); err != nil { // the rate of its clock is known then
		t.Fatalf("%v: %s", err, out)
	}
	return r
}

// steer re-executes a trace under control.
func steer(t *testing.T, rec Run, flags ...string) *steered {
	t.Helper()
	s := &steered{t: t, socket: filepath.Join(t.TempDir(), "s")}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	s.ctx = ctx
	tmp := t.TempDir()
	s.Cmd = exec.Command(built(t, "replayd"), append([]string{"--trace", rec.Trace, "--control", s.socket, "--pause"}, flags...)...)
	s.Env = append(os.Environ(), "TMPDIR="+tmp)
	file, err := os.Create(filepath.Join(t.TempDir(), "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	s.said = said{file}
	s.Dir, s.Stdout, s.Stderr = rec.Dir, &s.out, file
	s.WaitDelay = 20 * time.Second
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Process.Kill(); s.Process.Wait() })
	for begin := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		var err error
		if s.Client, err = client.Dial(s.socket); err == nil {
			break
		}
		if time.Since(begin) > 10*time.Second {
			t.Fatalf("%v: %s", err, s.said.String())
		}
	}
	t.Cleanup(func() { s.Client.Close() })
	st := s.status()
	if !st.Paused || st.World != "re-execution" || len(st.Threads) != 1 || st.Threads[0].Event != 0 {
		t.Fatalf("it does not stand before its first event: %+v", st)
	}
	s.world = shm.ParentOf(int(st.Threads[0].PID))
	list, _ := filepath.Glob(filepath.Join(tmp, scratch.Replay+"*"))
	if len(list) != 1 {
		t.Fatalf("its directory: %v", list)
	}
	s.work = list[0]
	return s
}

func (s *steered) status() *proto.Status {
	s.t.Helper()
	st, err := s.Status(s.ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	return st
}

func (s *steered) thread(name string) proto.Thread {
	s.t.Helper()
	for _, th := range s.status().Threads {
		if th.Name == name {
			return th
		}
	}
	return proto.Thread{}
}

// stop checks what a request is answered with.
func (s *steered) stop(stop *proto.Stop, err error) func(reason string) *proto.Stop {
	return func(reason string) *proto.Stop {
		s.t.Helper()
		if err != nil || stop.Reason != reason || len(stop.Moving) > 0 {
			s.t.Fatalf("%+v (%v), not %s; %s", stop, err, reason, s.said.String())
		}
		return stop
	}
}

// ends fails unless it ends as recorded.
func (s *steered) ends(rec Run) {
	s.t.Helper()
	err := s.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || s.out.String() != rec.Stdout || !strings.HasPrefix(s.said.String(), "replayd: identical: ") {
		s.t.Fatalf("%v: %q, not %q; %s", err, s.out.String(), rec.Stdout, s.said.String())
	}
	s.nothingLeft()
}

// nothingLeft fails where a process or a file of the re-execution is left.
func (s *steered) nothingLeft() {
	s.t.Helper()
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		left, _ := filepath.Glob(filepath.Join(filepath.Dir(s.work), "*"))
		if syscall.Kill(s.world, 0) != syscall.ESRCH {
			left = append(left, fmt.Sprint("process ", s.world))
		}
		if len(left) == 0 {
			return
		}
		if time.Since(begin) > 40*time.Second { // what goes on freely has to come to its end
			s.t.Fatalf("left are %v; %s", left, s.said.String())
		}
	}
}

// A re-execution is stepped, run to an event, a mark and a time, broken at calls and objects, paused and resumed: each
// stops where it says, and it is identical in the end.
func TestReexecControl(t *testing.T) {
	for _, threads := range []int{2, 16} {
		t.Run(strconv.Itoa(threads), func(t *testing.T) {
			rec := recordedAgain(t, threads, 2000)
			s := steer(t, rec)
			for i := range uint64(threads) {
				if stop := s.stop(s.Step(s.ctx, "p0", 1))("stepped"); stop.Event != i+1 || stop.Thread != "p0" {
					t.Errorf("step %d: %+v", i, stop)
				}
			}
			// All threads have begun; each is stepped where it can be, and the one that cannot says who has to go first.
			began := s.status()
			if len(began.Threads) != threads+1 {
				t.Fatalf("%+v", began.Threads)
			}
			s.stop(s.Step(s.ctx, "", 1))("stepped")
			moved, waiting := 0, 0
			for i, th := range s.status().Threads {
				switch th.Event - began.Threads[i].Event {
				case 0:
				case 1:
					moved++
				default:
					t.Errorf("a step of one event: %+v, was %+v", th, began.Threads[i])
				}
				if th.State == "waiting" {
					waiting++
					if stop := s.stop(s.Step(s.ctx, th.Name, 1))("waiting"); stop.For == "" || stop.Object == "" || stop.Thread != th.Name {
						t.Errorf("step of %+v: %+v", th, stop)
					}
				}
			}
			if moved == 0 || waiting == 0 {
				t.Errorf("%d threads moved, %d waited", moved, waiting)
			}
			last := fmt.Sprintf("p0/%d", threads)
			s.stop(s.RunToEvent(s.ctx, last, 500))("reached")
			if th := s.thread(last); th.Event != 500 {
				t.Errorf("run to event 500: %+v", th)
			}
			if _, err := s.RunToEvent(s.ctx, last, 499); err == nil {
				t.Error("it ran back")
			}
			clock, err := s.Clock(s.ctx)
			if err != nil || !clock.Paused || clock.SinceNS == 0 {
				t.Errorf("%+v %v", clock, err)
			}
			// It may stand behind the mark already: all threads but the one asked for go on while it runs.
			before := s.thread("p0/1").Event < 3000
			if _, err := s.RunToMark(s.ctx, "half-way"); err != nil && before {
				t.Error(err)
			}
			if _, err := s.RunToMark(s.ctx, "half-way"); err == nil {
				t.Error("there is a second mark")
			}

			// Of who has most before it: what goes on while others are run may be at its end by then.
			behind := s.thread("p0/1")
			for _, th := range s.status().Threads {
				if th.Name != "p0" && th.Event < behind.Event {
					behind = th
				}
			}
			s.stop(s.BreakAtCall(s.ctx, "nanosleep", behind.Name))("set")
			s.stop(s.BreakAtObject(s.ctx, "p0/99#1", ""))
			for range 3 {
				stop := s.stop(s.Continue(s.ctx))("broke")
				if stop.Call != "nanosleep" || stop.Thread != behind.Name {
					t.Errorf("break: %+v", stop)
				}
			}
			s.stop(s.Resume(s.ctx))("resumed") // without a request that waits: the world pauses itself
			for begin := time.Now(); !s.status().Paused; time.Sleep(time.Millisecond) {
				if time.Since(begin) > 10*time.Second {
					t.Fatal("it did not pause at the break")
				}
			}
			if th := s.thread(behind.Name); th.Call != "nanosleep" || th.State != "parked" {
				t.Errorf("at the break: %+v", th)
			}
			if got := s.status().Breaks; len(got) != 1 || got[0] != "call nanosleep of "+behind.Name {
				t.Errorf("breaks: %q", got)
			}
			s.stop(s.ClearBreak(s.ctx, "", "nanosleep", behind.Name))("cleared")
			s.stop(s.BreakAtObject(s.ctx, mutexOf(t, rec.Trace), ""))("set")
			if stop := s.stop(s.Continue(s.ctx))("broke"); !strings.HasPrefix(stop.Call, "pthread_mutex_") {
				t.Errorf("break at a mutex: %+v", stop)
			}
			s.stop(s.ClearBreak(s.ctx, mutexOf(t, rec.Trace), "", ""))("cleared")
			s.stop(s.Continue(s.ctx))("ended")
			s.ends(rec)
		})
	}
}

// mutexOf is the name of the mutex that is used most.
func mutexOf(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.Command(built(t, "prophet"), "dump", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	count, best := map[string]int{}, ""
	for _, m := range regexp.MustCompile(`pthread_mutex_lock\S*\(mutex:(\S+?)[,) ]`).FindAllSubmatch(out, -1) {
		name := string(m[1])
		if count[name]++; count[name] > count[best] {
			best = name
		}
	}
	if best == "" {
		t.Fatalf("no mutex in %.2000s", out)
	}
	return best
}

// Run to a time: every thread has had what it had begun by then, and nothing more.
func TestReexecRunToTime(t *testing.T) {
	for _, threads := range []int{2, 16} {
		rec := recordedAgain(t, threads, 1000)
		tr, err := trace.Open(rec.Trace)
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		th := tr.Threads[len(tr.Threads)/2]
		it, r := tr.Iter(th), trace.Record{}
		for range 1500 {
			if err := it.Next(&r); err != nil {
				t.Fatal(err)
			}
		}
		at := tr.Clock.Since(r.Begin) + 1
		s := steer(t, rec)
		s.stop(s.RunToTime(s.ctx, time.Duration(at)))("reached")
		began := map[string]uint64{}
		for _, th := range tr.Threads {
			it := tr.Iter(th)
			for it.Next(&r) == nil && tr.Clock.Since(r.Begin) < at {
				if r.Tag == trace.TagEvent {
					began[th.Name]++
				}
			}
		}
		for _, th := range s.status().Threads {
			// One that was inside of a call at that time still is.
			if n := began[th.Name]; th.Event != n && !(th.Event+1 == n && th.Call != "") {
				t.Errorf("%d threads: %+v had begun %d events", threads, th, n)
			}
		}
		clock, err := s.Clock(s.ctx)
		if err != nil || int64(clock.SinceNS) > at {
			t.Errorf("the clock is at %+v, not %d (%v)", clock, at, err)
		}
		s.stop(s.Resume(s.ctx))("resumed")
		s.ends(rec)
	}
}

// A re-execution is paused in the middle as a live run is, in the same time, and costs no CPU then.
func TestReexecPause(t *testing.T) {
	for _, threads := range []int{2, 16} {
		rec := recordedAgain(t, threads, 400000/threads)
		s := steer(t, rec)
		for range 4 {
			s.stop(s.Resume(s.ctx))("resumed")
			time.Sleep(5 * time.Millisecond)
			late := lateness()
			stop, err := s.Pause(s.ctx)
			delay := late()
			if err != nil {
				t.Fatal(err, s.said.String())
			}
			if len(stop.Moving) > 0 || time.Duration(stop.TookNS)-delay > 310*time.Millisecond {
				t.Errorf("pause: %+v, the machine was late by %v", stop, delay)
			}
			st := s.status()
			ticks := 1
			for window := 0; window < 3 && ticks != 0; window++ { // on a busy machine one is still on its way to sleep, once
				before := cpuOf(t, st)
				time.Sleep(250 * time.Millisecond)
				ticks = int(cpuOf(t, st) - before)
			}
			if ticks != 0 {
				t.Errorf("%d ticks of CPU in a quarter of a second of a pause", ticks)
			}
			after := s.status()
			for i, th := range after.Threads {
				if th.Event != st.Threads[i].Event || th.State == "running" {
					t.Errorf("in a pause: %+v, was %+v", th, st.Threads[i])
				}
			}
			if len(st.Threads) == 1 {
				t.Error("nothing had begun")
			}
		}
		if stop := s.stop(s.Resume(s.ctx))("resumed"); stop.TookNS > 20e6 {
			t.Errorf("resume: %+v", stop)
		}
		s.ends(rec)
	}
}

// cpuOf is what the processes of a status have used, in the kernel's ticks.
func cpuOf(t *testing.T, st *proto.Status) (ticks int) {
	t.Helper()
	seen := map[uint32]bool{0: true}
	for _, th := range st.Threads {
		if seen[th.PID] {
			continue
		}
		seen[th.PID] = true
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", th.PID))
		if err != nil {
			t.Fatal(err)
		}
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		for _, s := range f[11:13] {
			n, _ := strconv.Atoi(s)
			ticks += n
		}
	}
	return ticks
}

// The harness is taken off: all threads go on from there, record, can be paused as any run, and no clock goes back.
func TestReexecDetach(t *testing.T) {
	for _, threads := range []int{2, 16} {
		rec := recordedAgain(t, threads, 240000/threads)
		out := filepath.Join(t.TempDir(), "free.prophet")
		s := steer(t, rec, "-o", out)
		s.stop(s.RunToEvent(s.ctx, fmt.Sprintf("p0/%d", threads), 3001))("reached")
		var had uint64
		for _, th := range s.status().Threads {
			had += th.Event
		}
		s.stop(s.Detach(s.ctx))("detached")
		time.Sleep(20 * time.Millisecond)
		stop, err := s.Pause(s.ctx)
		if err != nil || len(stop.Moving) > 0 {
			t.Fatalf("%+v %v", stop, err)
		}
		st := s.status()
		if st.World != "recording" || len(st.Threads) < 2 {
			t.Errorf("after it: %+v", st)
		}
		for _, th := range st.Threads {
			if th.State != "parked" && th.State != "in call" && th.State != "stopped" {
				t.Errorf("paused after it: %+v", th)
			}
		}
		var only *proto.Error
		if _, err := s.Step(s.ctx, "", 1); !errors.As(err, &only) || only.Code != proto.OnlyReexec {
			t.Errorf("a step after it: %v", err)
		}
		s.stop(s.Resume(s.ctx))("resumed")
		err = s.Wait()
		var exit *exec.ExitError
		want := fmt.Sprintf("%d turns, 0 back, ", 240000)
		if !errors.As(err, &exit) || exit.ExitCode() != 3 || !strings.HasPrefix(s.out.String(), want) || !strings.Contains(s.said.String(), " events, then free: what came after is in "+out) {
			t.Fatalf("%v: %q, not %q; %s", err, s.out.String(), want, s.said.String())
		}
		s.nothingLeft()
		undamaged(t, out)
		tr, err := trace.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := trace.Open(rec.Trace)
		if err != nil {
			t.Fatal(err)
		}
		sum := func(tr *trace.Trace) (n uint64) {
			for _, th := range tr.Threads {
				n += tr.EventsBetween(th, 0, 1<<62)
			}
			return n
		}
		// What each was inside of at the cut is in neither part, or in one of them.
		if a, b := had+sum(tr), sum(whole); a > b+uint64(threads)+1 || a+2*uint64(threads)+2 < b {
			t.Errorf("%d events before, %d after, %d recorded", had, sum(tr), b)
		}
		tr.Close()
		whole.Close()
	}
}

// gdb attaches to a paused re-execution, reads a variable and a stack, and lets it go: it is identical.
func TestReexecGDB(t *testing.T) {
	rec := recordedAgain(t, 2, 2000)
	s := steer(t, rec)
	s.stop(s.RunToEvent(s.ctx, "p0/1", 301))("reached")
	th := s.thread("p0/1")
	out, err := exec.CommandContext(s.ctx, "gdb", "-nx", "-q", "-batch", "-iex", "set auto-load no", "-p", fmt.Sprint(th.PID),
		"-ex", "print rounds", "-ex", "thread apply all backtrace", "-ex", "detach").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("$1 = 2000")) || !bytes.Contains(out, []byte("work (arg=")) || !bytes.Contains(out, []byte("main (argc=")) {
		t.Errorf("gdb: %v: %s", err, out)
	}
	s.stop(s.Resume(s.ctx))("resumed")
	s.ends(rec)
}

// The daemon is killed: the program goes on, or stays paused until it is resumed; it is said within a second; how it ends
// is said as well, and nothing is left.
func TestReexecKilledDaemon(t *testing.T) {
	for _, onDeath := range []string{"go", "stay"} {
		for _, paused := range []bool{true, false} {
			t.Run(fmt.Sprint(onDeath, paused), func(t *testing.T) {
				rec := recordedAgain(t, 2, 100000)
				s := steer(t, rec, "--on-death", onDeath)
				if paused {
					s.stop(s.RunToEvent(s.ctx, "p0/2", 1000))("reached")
				} else {
					s.stop(s.Resume(s.ctx))("resumed")
				}
				began, late := time.Now(), lateness()
				s.Process.Kill()
				for s.said.String() == "" && time.Since(began) < 5*time.Second {
					time.Sleep(time.Millisecond)
				}
				took := time.Since(began) - late()
				done := make(chan struct{})
				go func() { s.Wait(); close(done) }() // the pipes stay open until the last has gone
				if onDeath == "stay" && paused {
					dir := filepath.Join(s.work, "run.prophet")
					if o, err := exec.Command(built(t, "prophet"), "ctl", dir, "resume").CombinedOutput(); err != nil || !strings.HasPrefix(string(o), "resumed") {
						t.Errorf("resume: %v: %s", err, o)
					}
				}
				<-done
				s.nothingLeft()
				want := "replayd: it was killed; the re-execution goes on"
				if paused {
					want += " from its pause"
				}
				if onDeath == "stay" && paused {
					want = "replayd: it was killed; the re-execution stays paused: prophet ctl "
				}
				if text := s.said.String(); took > time.Second || !strings.HasPrefix(text, want) || !strings.Contains(text, "\nreplayd: identical: ") || s.out.String() != rec.Stdout {
					t.Errorf("after %v it said %q and printed %q", took, text, s.out.String())
				}
			})
		}
	}
}

// The program is killed: replayd says so and leaves nothing.
func TestReexecKilledProgram(t *testing.T) {
	for _, paused := range []bool{true, false} {
		rec := recordedAgain(t, 16, 50000)
		s := steer(t, rec)
		if !paused {
			s.stop(s.Resume(s.ctx))("resumed")
		}
		pid := s.status().Threads[0].PID
		if shm.ParentOf(int(pid)) != s.world {
			t.Fatalf("process %d is none of the world's", pid)
		}
		syscall.Kill(int(pid), syscall.SIGKILL)
		err := s.Wait()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 125 || !strings.Contains(s.said.String(), "replayd: diverged: thread p0") {
			t.Errorf("%v: %s", err, s.said.String())
		}
		s.nothingLeft()
		left, _ := filepath.Glob(filepath.Join(shm.Dir(), "*"))
		for _, f := range left {
			if link, err := os.Readlink(f); err == nil && strings.HasPrefix(link, s.work) {
				t.Errorf("shared memory is left: %s", f)
			}
		}
	}
}

// Nobody else can control it, not even where the socket's mode lets him.
func TestReexecOnlyUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("needs root, to be somebody else")
	}
	rec := recordedAgain(t, 2, 100)
	s := steer(t, rec)
	dir := t.TempDir()
	for d := filepath.Dir(s.socket); d != filepath.Clean(os.TempDir()) && d != "/"; d = filepath.Dir(d) { // ours alone
		os.Chmod(d, 0o755)
	}
	os.Chmod(dir, 0o755)
	ctl := filepath.Join(dir, "prophet")
	b, err := os.ReadFile(built(t, "prophet"))
	if err == nil {
		err = os.WriteFile(ctl, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	as := func() string {
		out, _ := exec.CommandContext(s.ctx, "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", ctl, "ctl", s.socket, "resume").CombinedOutput()
		return string(out)
	}
	if out := as(); !strings.Contains(out, "permission denied") {
		t.Errorf("by the mode: %s", out)
	}
	if err := os.Chmod(s.socket, 0o777); err != nil {
		t.Fatal(err)
	}
	if out := as(); !strings.Contains(out, "only the user who started the daemon") {
		t.Errorf("by the kernel's word: %s", out)
	}
	if !s.status().Paused {
		t.Error("it was resumed")
	}
	s.stop(s.Resume(s.ctx))("resumed")
	s.ends(rec)
}

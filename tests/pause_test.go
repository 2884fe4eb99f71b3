package tests

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"prophet/replayd/client"
	"prophet/replayd/proto"
	"prophet/runtime/pause"
	"prophet/runtime/shm"
)

// paused is a program that is being recorded and gets paused.
type paused struct {
	*exec.Cmd
	out  *bufio.Reader
	path string
	run  *pause.Run
}

// pausable starts a program and waits until it says that it is ready.
func pausable(t *testing.T, in *os.File, argv ...string) *paused {
	t.Helper()
	p := &paused{Cmd: exec.Command(argv[0], argv[1:]...), path: filepath.Join(t.TempDir(), "run.prophet")}
	p.Env = append(os.Environ(), "LD_PRELOAD="+built(t, "libprophet.so"), "PROPHET_TRACE="+p.path)
	p.Stderr = os.Stderr
	if in != nil {
		p.Stdin = in
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Process.Kill(); p.Wait() })
	if s, err := p.out.ReadString('\n'); s != "ready\n" {
		t.Fatalf("it said %q (%v)", s, err)
	}
	if p.run, err = pause.Open(p.path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.run.Close() })
	return p
}

func (p *paused) pause(t *testing.T) *pause.Report {
	t.Helper()
	late := lateness()
	rep, err := p.run.Pause()
	delay := late()
	for err == nil && len(rep.Moving) > 0 && delay > 20*time.Millisecond && rep.Took-delay < 310*time.Millisecond { // who gets no processor does not stop, either
		var again *pause.Report
		late = lateness()
		if again, err = p.run.Pause(); err == nil {
			again.Took += rep.Took
			rep = again
		}
		delay += late()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range rep.Moving {
		t.Errorf("thread %d of process %d still moves after %v", m.TID, m.PID, rep.Took)
	}
	if rep.Took-delay > 310*time.Millisecond {
		t.Errorf("the pause took %v, the machine was late by %v", rep.Took, delay)
	}
	return rep
}

func (p *paused) resume(t *testing.T) *pause.Report {
	t.Helper()
	rep, err := p.run.Resume()
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// ends reads what else it says, and how it ends.
func (p *paused) ends(t *testing.T) string {
	t.Helper()
	b, err := io.ReadAll(p.out)
	if err != nil {
		t.Error(err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("%v: %s", err, b)
	}
	return string(b)
}

// Every kind of wait is paused in the middle, for longer than what it has left, with and without threads that make the
// pause stop the process by a signal: each behaves as if nothing had happened, in virtual time.
func TestPauseWaits(t *testing.T) {
	for _, spinners := range []int{0, 1, 4} {
		for group := range 6 {
			t.Run(fmt.Sprintf("%d-%d", spinners, group), func(t *testing.T) {
				for try := 0; ; try++ {
					p := pausable(t, nil, prog(t, "pausing"), fmt.Sprint(spinners), fmt.Sprint(group))
					time.Sleep(80 * time.Millisecond)
					rep := p.pause(t)
					if group != 5 && (spinners > 0) != (rep.Halted > 0) {
						t.Errorf("%d processes were stopped by a signal", rep.Halted)
					}
					time.Sleep(600 * time.Millisecond)
					p.resume(t)
					b, err := io.ReadAll(p.out)
					must(t, err)
					err = p.Wait()
					undamaged(t, p.path)
					if err == nil && strings.HasPrefix(string(b), "0 wrong in ") {
						break
					}
					if try == 4 || !onlyLate(string(b)) {
						t.Fatalf("%v: %s", err, b)
					}
				}
			})
		}
	}
}

// onlyLate tells whether all that was wrong is that waits took longer than they may on a machine that is not busy, and less than what
// the pause would have added.
func onlyLate(said string) bool {
	for line := range strings.Lines(said) {
		var name string
		var answered, ms int
		if n, _ := fmt.Sscanf(line, "%s answered %d after %d ms", &name, &answered, &ms); n == 0 || strings.Contains(line, " wrong in ") {
			continue
		} else if n != 3 || answered != 0 || ms < 500 || ms >= 950 {
			return false
		}
	}
	return strings.Contains(said, " after ")
}

// clocks starts a program that reads all clocks in processes and threads until its standard input ends.
func clocks(t *testing.T, argv ...string) (*paused, io.Closer) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	t.Cleanup(func() { w.Close() })
	return pausable(t, r, append([]string{prog(t, "clocks")}, argv...)...), w
}

// cpu is what the processes of a run have used, in the kernel's ticks, and how many there are.
func (p *paused) cpu(t *testing.T) (ticks, procs int) {
	t.Helper()
	all, err := p.run.Threads()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uint32]bool{}
	for _, th := range all {
		if seen[th.PID] {
			continue
		}
		seen[th.PID] = true
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", th.PID))
		if err != nil {
			t.Fatal(err)
		}
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		for _, s := range f[11:13] {
			n, err := strconv.Atoi(s)
			if err != nil {
				t.Fatal(err)
			}
			ticks += n
		}
	}
	return ticks, len(seen)
}

// A paused world costs no CPU, no clock of it goes back and all agree, whatever the number of threads and processes, and
// whether they call or compute; each thread goes on after it.
func TestPauseClocks(t *testing.T) {
	for _, argv := range [][]string{{"1", "2"}, {"1", "16"}, {"3", "2"}, {"1", "2", "compute"}, {"2", "8", "compute"}} {
		t.Run(strings.Join(argv, "-"), func(t *testing.T) {
			p, in := clocks(t, argv...)
			var behind uint64
			for range 4 {
				rep := p.pause(t)
				for _, th := range rep.Threads {
					if th.State == pause.Running {
						t.Errorf("thread %d is running in a pause", th.TID)
					}
				}
				mono, real, was := p.run.Clock()
				before, procs := p.cpu(t)
				time.Sleep(150 * time.Millisecond)
				after, _ := p.cpu(t)
				if after != before {
					t.Errorf("%d processes used %d ticks of CPU while paused", procs, after-before)
				}
				mono2, real2, now := p.run.Clock()
				if mono2 != mono || now-was < 150e6 || max(real, real2)-min(real, real2) > 1e6 {
					t.Errorf("virtual time went from %d to %d, %d to %d; it was %d behind, then %d", mono, mono2, real, real2, was, now)
				}
				if now < behind {
					t.Errorf("virtual time was %d behind, then %d", behind, now)
				}
				behind = now
				p.resume(t)
				time.Sleep(20 * time.Millisecond)
			}
			in.Close()
			if s := p.ends(t); s != "0 back, 0 apart\n" {
				t.Error(s)
			}
			undamaged(t, p.path)
		})
	}
}

// A controller that is killed at any moment of a pause or a resume leaves nothing that the next one cannot finish.
func TestPauseKilledController(t *testing.T) {
	for _, argv := range [][]string{{"2", "2"}, {"2", "2", "compute"}} {
		p, in := clocks(t, argv...)
		seed := time.Now().UnixNano()
		t.Logf("seed %d", seed)
		rnd := rand.New(rand.NewSource(seed))
		for range 12 {
			for _, do := range []string{"pause", "resume"} {
				c := exec.Command(built(t, "prophet"), "ctl", p.path, do)
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Duration(rnd.Int63n(int64(8 * time.Millisecond))))
				c.Process.Kill()
				c.Wait()
			}
		}
		if _, err := p.run.Resume(); err != nil && !errors.Is(err, pause.ErrNotPaused) {
			t.Error(err)
		}
		p.pause(t)
		p.resume(t)
		in.Close()
		if s := p.ends(t); s != "0 back, 0 apart\n" {
			t.Error(s)
		}
	}
}

// From a pause to its resume no thread goes on, by the CPU's ticks, which no pause hides, and all do after it. How soon that is bench/pause.go measures.
func TestPauseRests(t *testing.T) {
	for _, argv := range [][]string{{"2"}, {"16"}, {"2", "compute"}, {"16", "compute"}} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		p := pausable(t, r, append([]string{prog(t, "rested")}, argv...)...)
		r.Close()
		var rests [][2]uint64
		for range 3 {
			p.pause(t)
			begin := shm.Now().Ticks
			time.Sleep(300 * time.Millisecond)
			rests = append(rests, [2]uint64{begin, shm.Now().Ticks})
			p.resume(t)
			time.Sleep(30 * time.Millisecond)
		}
		w.Close()
		after := 0
		for _, line := range strings.Fields(p.ends(t)) {
			at, err := strconv.ParseUint(line, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			for _, rest := range rests {
				if at > rest[0] && at < rest[1] {
					t.Errorf("%v: a thread went on %d ticks after a pause, %d before its resume", argv, at-rest[0], rest[1]-at)
				}
			}
			if at > rests[0][1] {
				after++
			}
		}
		if threads, _ := strconv.Atoi(argv[0]); after < threads {
			t.Errorf("%v: %d times a thread went on after a pause", argv, after)
		}
	}
}

// The daemon serves the protocol to its user, for record and for attach; what it cannot do it says, and what to do.
func TestControl(t *testing.T) {
	dir := t.TempDir()
	socket, path := filepath.Join(dir, "s"), filepath.Join(dir, "run.prophet")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(built(t, "replayd"), "record", "-q", "--control", socket, "-o", path, "--", prog(t, "clocks"), "2", "2")
	cmd.Stdin = r
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(); cmd.Process.Kill(); cmd.Wait() })
	lines := bufio.NewReader(out)
	if s, err := lines.ReadString('\n'); s != "ready\n" {
		t.Fatalf("it said %q (%v): %s", s, err, said.String())
	}
	if st, err := os.Stat(socket); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v %v", st, err)
	}
	check := func(socket string) {
		t.Helper()
		c, err := client.Dial(socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx := context.Background()
		if h := c.Hello(); h.World != "recording" || h.Trace != path || h.PID == 0 {
			t.Errorf("hello: %+v", h)
		}
		late := lateness()
		stop, err := c.Pause(ctx)
		delay := late()
		if err != nil || stop.Reason != "paused" || len(stop.Moving) > 0 || time.Duration(stop.TookNS)-delay > 310*time.Millisecond {
			t.Errorf("pause: %+v %v, the machine was late by %v", stop, err, delay)
		}
		s, err := c.Status(ctx)
		if err != nil || !s.Paused || len(s.Threads) != 6 {
			t.Errorf("status: %+v %v", s, err)
		}
		for _, th := range s.Threads {
			if th.State != "parked" && th.State != "in call" && th.State != "stopped" || th.UID == 0 || th.PID == 0 || !strings.HasPrefix(th.Name, "p0") {
				t.Errorf("thread: %+v", th)
			}
		}
		k, err := c.Clock(ctx)
		if err != nil || !k.Paused || k.BehindNS == 0 || k.SinceNS == 0 {
			t.Errorf("clock: %+v %v", k, err)
		}
		if stop, err = c.Resume(ctx); err != nil || stop.Reason != "resumed" {
			t.Errorf("resume: %+v %v", stop, err)
		}
		_, err = c.Resume(ctx)
		var e *proto.Error
		if !errors.As(err, &e) || e.Code != proto.NotPaused {
			t.Errorf("resume again: %v", err)
		}
		for name, f := range map[string]func() (*proto.Stop, error){
			"run-to": func() (*proto.Stop, error) { return c.RunToEvent(ctx, "p0", 5) },
			"time":   func() (*proto.Stop, error) { return c.RunToTime(ctx, time.Second) },
			"mark":   func() (*proto.Stop, error) { return c.RunToMark(ctx, "x") },
			"step":   func() (*proto.Stop, error) { return c.Step(ctx, "", 1) },
			"call":   func() (*proto.Stop, error) { return c.BreakAtCall(ctx, "read", "") },
			"object": func() (*proto.Stop, error) { return c.BreakAtObject(ctx, "p0:1", "p0") },
			"detach": func() (*proto.Stop, error) { return c.Detach(ctx) },
		} {
			if _, err := f(); !errors.As(err, &e) || e.Code != proto.OnlyReexec || e.Hint == "" {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	check(socket)
	raw(t, socket)
	// Another daemon for the same run; and the same name twice is refused.
	second := filepath.Join(dir, "t")
	att := exec.Command(built(t, "replayd"), "attach", path, "--control", second)
	if err := att.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { att.Process.Kill(); att.Wait() })
	for i := 0; i < 100; i++ {
		if _, err := os.Stat(second); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	check(second)
	if b, err := exec.Command(built(t, "replayd"), "attach", path, "--control", socket).CombinedOutput(); err == nil || !strings.Contains(string(b), "another daemon") {
		t.Errorf("a socket that is in use: %s %v", b, err)
	}
	if s := prophet(t, "ctl", socket, "pause"); !strings.HasPrefix(s, "paused in ") {
		t.Error(s)
	}
	if s := prophet(t, "ctl", path, "status"); !strings.Contains(s, "paused") || strings.Count(s, "\n") != 8 {
		t.Error(s)
	}
	if s := prophet(t, "ctl", path, "--json", "clock"); !strings.Contains(s, `"paused": true`) {
		t.Error(s)
	}
	if s := prophet(t, "ctl", second, "resume"); !strings.HasPrefix(s, "resumed in ") {
		t.Error(s)
	}
	w.Close()
	b, _ := io.ReadAll(lines)
	if err := cmd.Wait(); err != nil || string(b) != "0 back, 0 apart\n" {
		t.Errorf("%v: %s%s", err, b, said.String())
	}
	if err := att.Wait(); err != nil {
		t.Errorf("attach: %v", err)
	}
	for _, s := range []string{socket, second} {
		if _, err := os.Lstat(s); err == nil {
			t.Errorf("%s is left", s)
		}
	}
	undamaged(t, path)
}

// raw says what no client of ours would.
func raw(t *testing.T, socket string) {
	t.Helper()
	for _, s := range []string{"\n", "{}\n", "x\n", `{"do":"fly"}` + "\n", `{"do":"pause","now":1}` + "\n", strings.Repeat("x", 70<<10) + "\n"} {
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(5 * time.Second))
		io.WriteString(c, s)
		sc := bufio.NewScanner(c)
		sc.Scan() // hello
		if !sc.Scan() || !strings.Contains(sc.Text(), `"code":"bad-request"`) {
			t.Errorf("%.30q is answered by %q (%v)", s, sc.Text(), sc.Err())
		}
		c.Close()
	}
	var all []net.Conn
	for range proto.Connections + 4 {
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	all[len(all)-1].SetDeadline(time.Now().Add(5 * time.Second))
	if b, _ := io.ReadAll(all[len(all)-1]); !strings.Contains(string(b), "connections are open") {
		t.Errorf("one connection too many is told %q", b)
	}
	for _, c := range all {
		c.Close()
	}
	time.Sleep(50 * time.Millisecond)
}

// kill -9 of the daemon while the run is paused: the run goes on, or stays, as asked, and it is said within a second.
func TestControlDeath(t *testing.T) {
	for _, want := range []struct{ flag, say string }{{"go", "goes on from its pause"}, {"stay", "stays paused"}} {
		t.Run(want.flag, func(t *testing.T) {
			dir := t.TempDir()
			socket, path := filepath.Join(dir, "s"), filepath.Join(dir, "run.prophet")
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			er, ew, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(built(t, "replayd"), "record", "-q", "--control", socket, "--on-death", want.flag, "-o", path, "--", prog(t, "clocks"), "2", "2", "compute")
			cmd.Stdin, cmd.Stderr = r, ew
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ew.Close()
			lines := bufio.NewReader(out)
			if s, err := lines.ReadString('\n'); s != "ready\n" {
				t.Fatalf("it said %q (%v)", s, err)
			}
			c, err := client.Dial(socket)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Pause(context.Background()); err != nil {
				t.Fatal(err)
			}
			begin, late := time.Now(), lateness()
			cmd.Process.Kill()
			said, err := bufio.NewReader(er).ReadString('\n')
			if took := time.Since(begin) - late(); took > time.Second || !strings.Contains(said, want.say) {
				t.Errorf("after %v: %q (%v)", took, said, err)
			}
			run, err := pause.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer run.Close()
			if run.Paused() != (want.flag == "stay") {
				t.Errorf("paused is %v", run.Paused())
			}
			if run.Paused() {
				prophet(t, "ctl", path, "resume")
			}
			w.Close()
			if s, err := lines.ReadString('\n'); s != "0 back, 0 apart\n" {
				t.Errorf("%q %v", s, err)
			}
			cmd.Process.Wait()
		})
	}
}

// A lone process does not look which pid namespace it is in; who pauses it from another one is told so all the same.
func TestPauseOtherNamespace(t *testing.T) {
	needRoot(t, "a pid namespace of its own")
	trace := filepath.Join(t.TempDir(), "run.prophet")
	c := exec.Command("unshare", "-p", "-f", "env", "LD_PRELOAD="+built(t, "libprophet.so"), "PROPHET_TRACE="+trace, "cat")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); c.Wait() }()
	fmt.Fprintln(in, "here")
	if _, err := io.ReadFull(out, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(built(t, "prophet"), "ctl", trace, "pause").CombinedOutput()
	if err == nil || !strings.Contains(string(said), "is in another pid namespace: pause it from there") {
		t.Errorf("%v: %s", err, said)
	}
}

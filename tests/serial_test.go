package tests

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// turns are the numbers that each turn of a serial run had, as the streams say them (shim/serial.h).
type turns struct {
	owner  map[uint64]string // number: thread
	begin  map[uint64]uint64 // number: ticks when it began, where an event says so
	broken map[uint64]int    // how it came: number of records
	last   uint64
}

func turnsOf(t *testing.T, f *Found) *turns {
	t.Helper()
	s := &turns{owner: map[uint64]string{}, begin: map[uint64]uint64{}, broken: map[uint64]int{}}
	take := func(n uint64, name string) {
		if was, ok := s.owner[n]; ok && !t.Failed() {
			t.Errorf("turn %d is %s's and %s's", n, was, name)
		}
		s.owner[n] = name
		s.last = max(s.last, n)
	}
	for _, th := range f.Trace.Threads {
		it := f.Trace.Iter(th)
		var rec trace.Record
		var turn, said uint64
		explicit := false
		for it.Next(&rec) == nil {
			switch {
			case rec.Tag == cabi.TagToken:
				s.broken[rec.Nums[1]&^cabi.TokenHere]++
				if rec.Nums[1]&cabi.TokenHere == 0 {
					said, explicit = rec.Nums[0], true
					continue
				}
				turn = rec.Nums[0]
				take(turn, th.Name)
			case rec.Tag == trace.TagEvent:
				if explicit {
					explicit = false
					if said == 0 {
						continue
					}
					turn = said
				} else {
					turn++
				}
				take(turn, th.Name)
				if rec.Timed {
					s.begin[turn] = rec.End
				}
			}
		}
	}
	return s
}

// The streams of a serial run say who had the token after whom: each number is one thread's, and none is missing.
func TestSerialTurns(t *testing.T) {
	t.Parallel()
	for _, argv := range [][]string{
		{prog(t, "racy"), "2", "3", "1000"},
		{prog(t, "threads")},
		{prog(t, "processes")},
		{prog(t, "forks"), "200", "8", "exit"},
		{prog(t, "jump")},
		{prog(t, "throw")},
		{prog(t, "many"), "50"},
		{"bash", "-c", "seq 1000 | sort -n | (sleep 0.1; cat) | tail -1; echo x | xargs -n1 sh -c 'exit 3'; echo $?"},
		{"python3", "-c", "import threading, subprocess, queue\nq = queue.Queue()\nts = [threading.Thread(target=lambda: [q.put(i) for i in range(50)]) for _ in range(4)]\n[t.start() for t in ts]\n[t.join() for t in ts]\nprint(q.qsize(), subprocess.run(['true']).returncode)"},
	} {
		t.Run(filepath.Base(argv[0]), func(t *testing.T) {
			t.Parallel()
			r := Cmd{Argv: argv, Options: "serial", Timeout: time.Minute}.Recorded(t)
			f := sound(t, r.Trace)
			s := turnsOf(t, f)
			missing := 0
			for n := uint64(1); n <= s.last; n++ {
				if _, ok := s.owner[n]; !ok {
					missing++
				}
				if b, c := s.begin[n-1], s.begin[n]; b > c && c != 0 && filepath.Base(argv[0]) != "jump" && !t.Failed() {
					t.Errorf("turn %d began at %d, the one after it at %d", n-1, b, c)
				}
			}
			// Threads that are killed, or jump out of a call that is over, cannot say their last one.
			name := filepath.Base(argv[0])
			if missing > 0 && (name != "processes" && name != "jump" || missing > int(s.last/10)) {
				t.Errorf("%d of %d turns are missing", missing, s.last)
			}
			if broken := s.broken[cabi.TokenSlept] + s.broken[cabi.TokenSpun]; broken != int(f.Preempted) {
				t.Errorf("%d pre-emptions in the streams, %d in the summary", broken, f.Preempted)
			}
			if packed := r.Trace + ".packed"; name == "racy" {
				if _, err := f.Trace.Pack(packed, 1, nil); err != nil {
					t.Fatal(err)
				}
				if p := turnsOf(t, read(t, packed)); !reflect.DeepEqual(p, s) {
					t.Errorf("packed, the trace tells other turns")
				}
			}
			t.Logf("%s: %d turns, %v", r.Status, s.last, s.broken)
		})
	}
}

// Of two signals that come at once as an event ends, none is lost, and neither stays blocked.
func TestSerialSignals(t *testing.T) {
	t.Parallel()
	r := Cmd{Argv: []string{prog(t, "volley"), "3000"}, Options: "serial", Timeout: time.Minute}.Recorded(t)
	if r.Stdout != "3000 rounds\n" || r.Status != "exit status 0" {
		t.Errorf("status %s, %q", r.Status, r.Stdout)
	}
	sound(t, r.Trace)
}

// A signal that comes as the handler of another one is about to begin, inside of a call, came inside of that call, too: it is told before the other one,
// which is not told yet. It was told as if it had come before the call (15 of 60), and under --serial nobody who the call lets go on had then gone on.
func TestSignalOvertaken(t *testing.T) {
	t.Parallel()
	r := Cmd{Argv: []string{prog(t, "overtaken")}, Timeout: time.Minute}.Recorded(t)
	if r.Stdout != "all came\n" || r.Status != "exit status 0" {
		t.Fatalf("status %s, %q", r.Status, r.Stdout)
	}
	out, err := exec.Command(built(t, "prophet"), "dump", r.Trace).Output()
	must(t, err)
	before, came := false, 0 // a signal as between two calls, before the call that waits ended
	for _, line := range strings.Split(string(out), "\n") {
		switch {
		case strings.Contains(line, "signal=SIGUSR2 during=none "):
			before = true
		case strings.Contains(line, " pause("):
			before = false
		case strings.Contains(line, "signal=SIGUSR1 during=pause "):
			if before {
				t.Errorf("the other signal is told as before the call: %s", line)
			}
			before = false
			came++
		}
	}
	if came != 60 {
		t.Errorf("%d of 60 signals came in a call", came)
	}
}

// The signal that asks a spinning thread to wait is the program's own, too: it ends a process that does not handle it.
func TestSerialSignalOfItsOwn(t *testing.T) {
	t.Parallel()
	c := Cmd{Argv: []string{"bash", "-c", "exec 2>/dev/null; sh -c 'kill -64 $$'; echo $?; trap 'echo trapped' 64; kill -64 $$; echo on"}, Options: "serial"}
	bare, r := Same(t, c)
	if !strings.HasPrefix(bare.Stdout, "192\ntrapped\non\n") {
		t.Errorf("without: %q", bare.Stdout)
	}
	sound(t, r.Trace)
}

// A cancelled wait for a condition locks its mutex again before anything of the program's runs. Whoever holds that goes on
// meanwhile: the unwinder's own call of pthread_once had left the token with the thread, which stood until it was pre-empted.
func TestSerialRelock(t *testing.T) {
	t.Parallel()
	c := Cmd{Argv: []string{prog(t, "relock")}, Options: "serial"}
	_, r := Same(t, c)
	if f := sound(t, r.Trace); f.Preempted > 2 { // of 58 before
		t.Errorf("%d pre-emptions", f.Preempted)
	}
	compare(t, "standard output of the re-execution", r.Stdout, c.Reexecuted(t, r).Stdout)
}

// A thread that spins on a flag is pre-empted after a while, and the trace says so; programs whose data nobody guards run
// as they would on one CPU.
func TestSerialBugs(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	spun := false
	for seed := range 40 { // the order in which the two threads begin is free: chaos decides it, not how busy the machine is
		r := Cmd{Argv: []string{bug(t, "spinflag")}, Options: fmt.Sprintf("serial,chaos=%d", seed+1), Timeout: time.Minute}.Recorded(t)
		f := sound(t, r.Trace)
		s := turnsOf(t, f)
		if s.broken[cabi.TokenSpun] > 0 {
			spun = true
			t.Logf("seed %d", seed+1)
			out, err := exec.Command(built(t, "prophet"), "info", r.Trace).Output()
			if err != nil || !strings.Contains(string(out), "serial but for 1 pre-emption") {
				t.Errorf("info: %v\n%s", err, out)
			}
			break
		}
	}
	if !spun {
		t.Errorf("no spinning thread was ever pre-empted")
	}
	if d := time.Since(begin); d > 20*time.Second {
		t.Errorf("it took %v", d)
	}
	// With chaos the turns differ from run to run, so that the unguarded counter loses counts here, too.
	status, _, r := untilFail(t, t.TempDir(), "--serial", "--chaos", "1", "-n", "300", "--", bug(t, "counter"))
	if status != 1 {
		t.Fatalf("no serial run of the unguarded counter failed: %+v", r)
	}
	f := sound(t, r.Run.Trace)
	if turnsOf(t, f); f.Preempted != 0 || !f.Trace.Meta.Options.Serial {
		t.Errorf("%d pre-emptions, serial: %v", f.Preempted, f.Trace.Meta.Options.Serial)
	}
}

package tests

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prophet/runtime/perfetto/pftest"
)

// exported runs prophet export on a trace and gives the file that one format makes; more are further arguments.
func exported(t *testing.T, path, format string, more ...string) (file []byte, stderr string, status int) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	cmd := exec.Command(built(t, "prophet"), append([]string{"export", path, "--" + format, out}, more...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	cmd.Run()
	file, _ = os.ReadFile(out)
	return file, errs.String(), cmd.ProcessState.ExitCode()
}

func picture(t *testing.T, path string, more ...string) *pftest.Picture {
	t.Helper()
	b, stderr, status := exported(t, path, "perfetto", more...)
	if status != 0 {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	p, err := pftest.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPerfetto checks the picture of a run in which everything that lets another go on happens: each link is an arrow, and
// each event a slice.
func TestPerfetto(t *testing.T) {
	t.Parallel()
	r := Cmd{Argv: []string{prog(t, "links", "-pthread")}}.Recorded(t)
	_, all := linksOf(t, r.Trace)
	p := picture(t, r.Trace)
	if p.Mono == 0 || p.Real < 1.7e18 {
		t.Errorf("clocks: monotonic %d, real time %d", p.Mono, p.Real)
	}
	if len(p.Flows) != len(all) {
		t.Errorf("%d arrows, for %d links", len(p.Flows), len(all))
	}
	count := map[string]int{}
	for _, f := range p.Flows {
		if f.From.Begin > f.To.Begin {
			t.Errorf("an arrow from %s to %s points back in time", f.From.Name, f.To.Name)
		}
		name := f.To.Name
		if f.To.In != nil {
			name += " in " + f.To.In.Name
		}
		count[f.From.Name+" -> "+name]++
		if f.To.Args["by"] == nil {
			t.Errorf("%s does not say by whom", f.To.Name)
		}
	}
	for _, want := range []string{
		"pthread_mutex_unlock -> let in in pthread_mutex_lock", "pthread_cond_signal -> woken in pthread_cond_wait",
		"pthread_cond_broadcast -> woken in pthread_cond_wait", "pthread_rwlock_unlock -> let in in pthread_rwlock_rdlock",
		"sem_post -> let in in sem_wait", "pthread_barrier_wait -> let through in pthread_barrier_wait", "pthread_once -> done by another in pthread_once",
		"write -> data in read", "send -> data in recv", "eventfd_write -> data in read", "connect -> connected in accept",
		"pthread_create -> started", "fork -> started", "execl -> started", "end -> ended in pthread_join", "end -> ended in waitpid",
	} {
		if count[want] == 0 {
			t.Errorf("no arrow %s; there are %v", want, count)
		}
	}
	calls, args := map[string]int{}, map[string]bool{}
	for _, s := range p.Slices {
		calls[s.Category+" "+s.Name]++
		for k := range s.Args {
			args[k] = true
		}
		if s.Name == "pthread_mutex_lock" && s.Args["object"] == nil {
			t.Errorf("a lock of nothing: %v", s.Args)
		}
	}
	for _, want := range []string{"sync pthread_mutex_lock", "disk read", "net send", "time usleep", "thread fork"} {
		if calls[want] == 0 {
			t.Errorf("no slice %s", want)
		}
	}
	for _, want := range []string{"object", "result", "bytes", "call site", "seq", "waited", "local", "peer", "event"} {
		if !args[want] {
			t.Errorf("no annotation %q: %v", want, args)
		}
	}
	sent := 0
	for id, list := range p.Counters {
		track := p.Tracks[id]
		if track.Unit != 3 || track.Parent == nil || track.Parent.PID == 0 {
			t.Errorf("counter %+v", track)
		}
		for i := range list[1:] {
			if list[i].At > list[i+1].At || track.Name != "resident memory" && list[i].Value > list[i+1].Value {
				t.Errorf("%s: %v after %v", track.Name, list[i+1], list[i])
			}
		}
		if track.Name == "bytes sent" {
			sent += int(list[len(list)-1].Value)
		}
	}
	if want := 12 + 6 + 3 + 2 + 3 + 3; sent != want {
		t.Errorf("%d bytes sent, of %d", sent, want)
	}
}

// Filters leave out what they say, arrows have both ends or are not there.
func TestPerfettoFilters(t *testing.T) {
	t.Parallel()
	r := Cmd{Argv: []string{prog(t, "links", "-pthread")}}.Recorded(t)
	whole := picture(t, r.Trace)
	p := picture(t, r.Trace, "--class", "sync")
	for _, s := range p.Slices {
		if s.Category != "sync" && s.Category != "thread" {
			t.Errorf("a slice of %s", s.Category)
		}
	}
	if len(p.Flows) < 8 || len(p.Flows) >= len(whole.Flows) {
		t.Errorf("%d arrows between events of sync, %d in all", len(p.Flows), len(whole.Flows))
	}
	p = picture(t, r.Trace, "--thread", "p0/1")
	tracks := 0
	for _, tr := range p.Tracks {
		if tr.TID != 0 {
			tracks++
		}
	}
	if tracks != 1 || len(p.Flows) != 0 || len(p.Slices) < 2 {
		t.Errorf("one thread: %d tracks, %d arrows, %d slices", tracks, len(p.Flows), len(p.Slices))
	}
	p = picture(t, r.Trace, "--from", "10ms", "--to", "60ms")
	for _, s := range p.Slices {
		if at := s.Begin - p.Mono; at < 10e6 || !s.Instant && at > 60e6 {
			t.Errorf("%s at %d ns", s.Name, at)
		}
	}
	if len(p.Slices) == 0 || len(p.Slices) >= len(whole.Slices) {
		t.Errorf("%d slices of %d", len(p.Slices), len(whole.Slices))
	}
	if _, stderr, status := exported(t, r.Trace, "pprof", "--class", "sync"); status != 2 || !strings.Contains(stderr, "--class") {
		t.Errorf("a selection for --pprof: %d %s", status, stderr)
	}
	if _, stderr, status := exported(t, r.Trace, "perfetto", "--thread", "p9"); status != 2 || !strings.Contains(stderr, "p9") {
		t.Errorf("a thread that is not there: %d %s", status, stderr)
	}
}

// Signals, marks and forks of real programs are well formed, too.
func TestPerfettoPrograms(t *testing.T) {
	t.Parallel()
	marks := Cmd{Argv: []string{prog(t, "marks")}}
	for name, c := range map[string]Cmd{
		"shell": {Argv: []string{"bash", "-c", "for i in 1 2 3; do seq 1000 | sort -r | tail -1; done; trap 'echo got' USR1; kill -USR1 $$; wait"}},
		"xz":    {Argv: []string{"sh", "-c", "head -c 3000000 /dev/zero | xz -T2 --block-size=1MiB | xz -d | wc -c"}},
		"marks": marks,
	} {
		t.Run(name, func(t *testing.T) {
			r := c.Recorded(t)
			p := picture(t, r.Trace)
			data := 0
			for _, f := range p.Flows {
				if f.To.Name == "data" {
					data++
				}
			}
			names := []string{}
			for _, tr := range p.Tracks {
				names = append(names, tr.Name)
			}
			switch name {
			case "shell", "xz":
				if data < 3 {
					t.Errorf("%d arrows through pipes", data)
				}
				if name == "shell" && !slices.Contains(names, "signal handlers") {
					t.Errorf("no signal handlers: %v", names)
				}
			case "marks":
				if !slices.Contains(names, "marks") {
					t.Errorf("no marks: %v", names)
				}
			}
		})
	}
}

// A damaged trace is exported as far as it is good.
func TestPerfettoDamaged(t *testing.T) {
	t.Parallel()
	r := Cmd{Argv: []string{prog(t, "links", "-pthread")}}.Recorded(t)
	picture(t, r.Trace) // completes the trace
	damage(t, r.Trace)
	b, stderr, status := exported(t, r.Trace, "perfetto")
	if status != 1 || !strings.Contains(stderr, "damaged") {
		t.Errorf("exit status %d: %s", status, stderr)
	}
	p, err := pftest.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Slices) < 20 {
		t.Errorf("%d slices", len(p.Slices))
	}
}

// damage breaks the last chunk of the largest stream of a trace.
func damage(t *testing.T, path string) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(path, "stream-*"))
	if err != nil || len(list) == 0 {
		t.Fatal("no streams", err)
	}
	slices.SortFunc(list, func(a, b string) int {
		x, _ := os.Stat(a)
		y, _ := os.Stat(b)
		return int(y.Size() - x.Size())
	})
	b, err := os.ReadFile(list[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-40] ^= 0xff
	if err := os.WriteFile(list[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
}

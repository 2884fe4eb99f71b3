package tests

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"prophet/cabi"
	"prophet/runtime/demand"
	"prophet/runtime/issued"
	"prophet/runtime/recovery"
	"prophet/runtime/trace"
)

// issuerTrace issues a trace, and gives the trace of that.
func issuerTrace(t *testing.T, path string, args ...string) (string, *issued.Result) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "issued.prophet")
	cmd := exec.Command(built(t, "replayd"), append([]string{"issue", "--json", "--trace", path, "--record", out}, args...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	b, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	var r struct{ Record *issued.Result }
	if err := json.Unmarshal(b, &r); err != nil || r.Record == nil {
		t.Fatalf("%v: %s", err, b)
	}
	return out, r.Record
}

// proven executes the program again as it was issued, and says what differs; "": nothing.
func proven(t *testing.T, path string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, built(t, "replayd"), "--trace", path).CombinedOutput()
	if err == nil && bytes.Contains(out, []byte("replayd: identical")) {
		return ""
	}
	return fmt.Sprintf("%v: %s", err, out)
}

var waits = regexp.MustCompile(`pthread_cond_wait\(.* @(\S+)`)

// home records a program until the trace shows what waiting does, in each place where it can: one in which nobody had to wait, as on
// a busy machine, shows nothing of that. Only the pipelines may come to their end without.
func home(t *testing.T, args []string) string {
	for try := 0; ; try++ {
		path, places := recordedProgram(t, args[0], args[1:]...), map[string]bool{}
		out, err := exec.Command(built(t, "prophet"), "dump", "--call", "pthread_cond_wait", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range waits.FindAllSubmatch(out, -1) {
			places[string(m[1])] = true
		}
		if args[0] != "pipeline" || len(places) > 1 || try > 20 {
			return path
		}
	}
}

// What is issued, in whatever order threads come here, is what the program does in that order.
func TestIssuedProven(t *testing.T) {
	visited := 0
	for _, x := range []string{"barrier 2 200", "barrier 8 100", "barrier 16 50", "pipeline 2 300", "pipeline 8 100", "pipeline 16 100", "kinds"} {
		t.Run(x, func(t *testing.T) {
			visited++
			args := strings.Fields(x)
			trace := home(t, args)
			for _, cpus := range []string{"0,1", "0"} {
				var path, why string
				var r *issued.Result
				for try := range 18 { // a path that home did not show is issued now and then: an issue more comes another way
					if try > 0 && try%3 == 0 { // a home where nobody had to wait shows of no way what waiting does
						trace = home(t, args)
						t.Logf("on processors %s: another home, as of %s", cpus, why)
					}
					if path, r = issuerTrace(t, trace, "--cpus", cpus); r.Cut == 0 {
						if why = proven(t, path); why == "" {
							break
						}
					}
				}
				if r.Cut > 0 && args[0] != "kinds" { // whether a lock that is only tried is free there, home may not have seen
					t.Errorf("cut: %+v", r)
				}
				if r.Cut > 0 {
					continue
				}
				if why != "" {
					t.Errorf("on processors %s: %s", cpus, why)
				}
			}
		})
	}
	if visited != 7 {
		t.Errorf("%d programs", visited)
	}
}

// Clients of a database, each with processes of its own. One after the other, their issue is proven. At once they take its locks in
// another order each time, and what they do then depends on what others have written: such a path is proven seldom, and nothing of
// one that is not is taken for proven: the re-execution says where it differs, or how much the trace does not have.
func TestIssuedClients(t *testing.T) {
	for _, at := range []string{";", "&"} {
		script := `sqlite3 db 'create table t(a)'; for i in 1 2; do (for k in 1 2; do sqlite3 db -cmd '.timeout 20000' 'insert into t values(1)'; done) ` + at + ` done; wait`
		for range 3 {
			rec := Cmd{Argv: []string{"sh", "-c", script}}.Recorded(t)
			if rec.Status != "exit status 0" {
				t.Fatalf("%s; %s", rec.Status, rec.Stderr)
			}
			path, r := issuerTrace(t, rec.Trace)
			why := proven(t, path)
			tr, err := trace.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			if tr.Meta.Issued.Cut != r.Cut || (r.Cut > 0) != (len(r.Cuts) > 0) {
				t.Errorf("%+v: %+v", tr.Meta.Issued, r)
			}
			tr.Close()
			switch {
			case at == ";" && (why != "" || r.Cut > 0):
				t.Errorf("one after the other: %+v: %s", r, why)
			case why != "" && !strings.Contains(why, "diverged: thread ") && !strings.Contains(why, "stalled: "):
				t.Errorf("at once: %s", why)
			}
		}
	}
}

// The trace of an issue is a trace: it is read, reported and compared as any other.
func TestIssuedTrace(t *testing.T) {
	home := recordedProgram(t, "pipeline", "4", "100")
	path, r := issuerTrace(t, home, "--cpus", "0")
	for _, args := range [][]string{{"verify", path}, {"info", path}, {"dump", path}, {"report", path, "--json"}, {"diff", home, path}} {
		out, err := exec.Command(built(t, "prophet"), args...).CombinedOutput()
		if err != nil && !(args[0] == "diff" && fmt.Sprint(err) == "exit status 1") {
			t.Errorf("%v: %v: %.2000s", args, err, out)
		}
		if args[0] == "info" && !bytes.Contains(out, []byte("not the program, but its demand")) {
			t.Errorf("%s", out)
		}
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", st, err)
	}
	a, err := trace.Open(home)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if b.Meta.Issued == nil || b.Meta.Issued.Run != a.Meta.Run || b.Meta.Totals.Events != r.Events || b.Meta.Totals.Damaged != 0 {
		t.Errorf("%+v %+v", b.Meta.Issued, b.Meta.Totals)
	}
	if len(a.Threads) != len(b.Threads) {
		t.Fatalf("%d threads, not %d", len(b.Threads), len(a.Threads))
	}
	for i := range a.Threads {
		if a.Threads[i].Name != b.Threads[i].Name || a.Threads[i].UID != b.Threads[i].UID {
			t.Errorf("thread %s is %s", a.Threads[i].Name, b.Threads[i].Name)
		}
	}
	// But for waits, and for who named what, each thread has the very events.
	events := func(tr *trace.Trace, th *trace.Thread) (list []string) {
		it := tr.Iter(th)
		var r trace.Record
		for it.Next(&r) == nil {
			if r.Tag == trace.TagEvent && !strings.HasPrefix(r.Row.Name, "pthread_cond_wait") {
				list = append(list, fmt.Sprint(r.Row.Name, r.PC, r.Ret, r.F[0]))
			}
		}
		return list
	}
	for i := range a.Threads {
		if x, y := events(a, a.Threads[i]), events(b, b.Threads[i]); strings.Join(x, "\n") != strings.Join(y, "\n") {
			t.Errorf("thread %s has %d events that are not the %d", a.Threads[i].Name, len(y), len(x))
		}
	}
}

// Of home's own log, with each operation when home did it, home's trace is made again: by the recorder's rules objects get the names,
// and events the places, that the recorder gave them. Who was first of several that came to an object at once, within what their time
// stamps tell apart, no trace says: so one of several recordings has to come out the same.
func TestIssuedHome(t *testing.T) {
	script := `sqlite3 db 'create table t(a)'; for i in 1 2; do (sqlite3 db -cmd '.timeout 20000' 'insert into t values(1)') & done; wait; seq 2000 | sort | tail -1`
	for name, record := range map[string]func() string{
		"kinds":     func() string { return recordedProgram(t, "kinds") },
		"processes": func() string { return Cmd{Argv: []string{"sh", "-c", script}}.Recorded(t).Trace },
	} {
		var other []string
		for range 10 {
			if other = notAsHome(t, record()); len(other) == 0 {
				break
			}
		}
		if len(other) > 0 {
			t.Errorf("%s:\n%s", name, strings.Join(other, "\n"))
		}
	}
}

// notAsHome is what is otherwise in the trace that is made of home's own log.
func notAsHome(t *testing.T, path string) (other []string) {
	t.Helper()
	home, _, _, err := recovery.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	dir := t.TempDir()
	from := issued.Source{Trace: home, Program: filepath.Join(dir, "program"), Map: filepath.Join(dir, "map"), Log: filepath.Join(dir, "log")}
	var when bytes.Buffer
	if _, err := demand.Compile(home, demand.Options{Home: &when, Map: from.Map}, from.Program); err != nil {
		t.Fatal(err)
	}
	writeHomeLog(t, &from, when.Bytes())
	out := filepath.Join(dir, "again.prophet")
	if r, err := issued.Make(from, out); err != nil || r.Cut > 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	again, err := trace.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	all := 0
	for i, th := range home.Threads {
		want, got := saidBy(home, th), saidBy(again, again.Threads[i])
		all += len(want)
		for k := range max(len(want), len(got)) {
			if k >= len(want) || k >= len(got) || want[k] != got[k] {
				other = append(other, fmt.Sprintf("thread %s, event %d of %d: not as %d:\n%.300s\n%.300s", th.Name, k, len(want), len(got), want[min(k, len(want)-1)], got[min(k, len(got)-1)]))
				break
			}
		}
	}
	if all < 1000 {
		t.Errorf("only %d events", all)
	}
	return other
}

// saidBy is what a thread's events say, but for times and for what files hold.
func saidBy(tr *trace.Trace, th *trace.Thread) (list []string) {
	it := tr.Iter(th)
	var r trace.Record
	for it.Next(&r) == nil {
		if r.Tag == trace.TagEvent {
			s := fmt.Sprintf("%s %x %v seq %d = %d %v", r.Row.Name, r.PC, r.Obj, r.Seq, r.Ret, r.F)
			for _, f := range r.Fields {
				s += fmt.Sprintf(" %s=%d%q", f.Name, f.Num, f.Text)
			}
			list = append(list, s)
		}
	}
	return list
}

// writeHomeLog writes the log that home would have.
func writeHomeLog(t *testing.T, s *issued.Source, when []byte) {
	t.Helper()
	b, err := os.ReadFile(s.Program)
	if err != nil {
		t.Fatal(err)
	}
	var h cabi.Prog
	decode := func(at uint64, v any) {
		if _, err := binary.Decode(b[at:], binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	decode(0, &h)
	threads, ops := make([]cabi.ProgThread, h.Threads), make([]cabi.ProgOp, h.Ops)
	decode(h.ThreadsAt, threads)
	decode(h.OpsAt, ops)
	at := map[uint64]demand.At{}
	for ; len(when) >= demand.AtSize; when = when[demand.AtSize:] {
		var a demand.At
		if _, err := binary.Decode(when, binary.LittleEndian, &a); err != nil {
			t.Fatal(err)
		}
		if a.Op != demand.NoOp {
			at[uint64(a.Op)] = a
		}
	}
	w, err := issued.Create(s.Log, issued.Head{Threads: h.Threads, Begin: 1000, End: 1 << 40, Hz: 1e9, Nanos: 1 << 40, Program: h.Sum})
	if err != nil {
		t.Fatal(err)
	}
	for _, th := range threads {
		if err := w.Thread(cabi.ProgResultThread{}); err != nil {
			t.Fatal(err)
		}
		last, exit := uint64(0), false
		for op := th.First; op < th.First+th.Count; op++ {
			a, known := at[op]
			if known {
				last = max(last, a.Begin+1000)
			}
			if op == th.First { // it begins
				w.Add(cabi.ProgLog{Begin: last, End: last, Op: op})
			}
			if ops[op].Code == cabi.OpCPU || exit {
				continue
			}
			exit = ops[op].Code == cabi.OpExit
			end := max(last, a.End+1000)
			w.Add(cabi.ProgLog{Begin: last, End: end, Op: op, Result: ops[op].Want})
			last = end
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// A run keeps its events where others lie beside it, which are as whole as they were.
func TestBeside(t *testing.T) {
	script := `sqlite3 db 'create table t(a)'; for i in 1 2; do sqlite3 db -cmd '.timeout 20000' 'insert into t values(1)' & done; wait`
	var list []*trace.Trace
	for range 3 {
		tr, _, _, err := recovery.Open(Cmd{Argv: []string{"sh", "-c", script}}.Recorded(t).Trace, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		list = append(list, tr)
	}
	dir := t.TempDir()
	out := filepath.Join(dir, "all.prophet")
	if err := issued.Beside(list[0], list[1:], out); err != nil {
		t.Fatal(err)
	}
	undamaged(t, out)
	all, err := trace.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	if n := len(list[0].Threads) + len(list[1].Threads) + len(list[2].Threads); len(all.Threads) != n || all.Meta.Beside == nil {
		t.Fatalf("%d threads, not %d", len(all.Threads), n)
	}
	for i, th := range list[0].Threads {
		if x, y := saidBy(list[0], th), saidBy(all, all.Threads[i]); strings.Join(x, "\n") != strings.Join(y, "\n") {
			t.Errorf("thread %s has changed", th.Name)
		}
	}
	for i, th := range append(list[1].Threads, list[2].Threads...) {
		from := list[1]
		if i >= len(list[1].Threads) {
			from = list[2]
		}
		if x, y := saidBy(from, th), saidBy(all, all.Threads[len(list[0].Threads)+i]); len(x) != len(y) {
			t.Errorf("thread %s has %d events, not %d", th.Name, len(y), len(x))
		}
	}
	home, err := demand.Compile(list[0], demand.Options{}, filepath.Join(dir, "home"))
	if err != nil {
		t.Fatal(err)
	}
	both, err := demand.Compile(all, demand.Options{}, filepath.Join(dir, "both"))
	if err != nil || both.Threads != home.Threads || both.Processes != home.Processes || both.Events != home.Events || both.Ops <= home.Ops {
		t.Errorf("%+v, %+v, %v", home, both, err)
	}
	if err := issued.Beside(all, list[1:2], filepath.Join(dir, "again.prophet")); err == nil {
		t.Error("others lie beside others")
	}
}

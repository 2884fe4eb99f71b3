package tests

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prophet/cabi"
	"prophet/runtime/replay"
	"prophet/runtime/trace"
)

// learnt re-executes a trace with --learn and returns what was said, the new trace and what the program printed.
func learnt(t *testing.T, path, dir string, args ...string) (replay.Result, string, string) {
	t.Helper()
	made := filepath.Join(t.TempDir(), "learnt.prophet")
	var out, said bytes.Buffer
	cmd := exec.Command(built(t, "replayd"), append([]string{"--json", "--trace", path, "--learn", made}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &said
	cmd.Run()
	var r replay.Result
	text := said.String()
	if i := strings.LastIndex(strings.TrimSpace(text), "\n"); i >= 0 {
		text = text[i:]
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	t.Log(strings.TrimSuffix(said.String(), text))
	return r, made, out.String()
}

// oneLess is the trace without one event of such a call, in the middle of some thread: the program has one that is not expected.
func oneLess(t *testing.T, path string, rnd *rand.Rand, calls ...string) string {
	t.Helper()
	tr, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	type place struct {
		th *trace.Thread
		n  uint64
	}
	var places []place
	for _, th := range tr.Threads {
		it := tr.Iter(th)
		all := tr.EventsBetween(th, 0, 1<<62)
		var r trace.Record
		for it.Next(&r) == nil { // behind a thread's last one it waits for the end of its process, and nothing differs
			if r.Tag == trace.TagEvent && r.N > 5 && r.N+1 < all && r.Row != nil && slices.Contains(calls, r.Row.Name) {
				places = append(places, place{th, r.N})
			}
		}
	}
	if len(places) == 0 {
		t.Fatalf("none of %v in %s", calls, path)
	}
	gone := places[rnd.IntN(len(places))]
	t.Logf("without event %d of thread %s", gone.n, gone.th.Name)
	dir := filepath.Join(t.TempDir(), "edited.prophet")
	if err := os.CopyFS(dir, os.DirFS(path)); err != nil {
		t.Fatal(err)
	}
	streams, _ := filepath.Glob(filepath.Join(dir, "stream-*"))
	for _, f := range streams {
		os.Remove(f)
	}
	w, err := trace.NewWriter(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = tr.Rewrite(w, func(th *trace.Thread) trace.Edit {
		n := uint64(0)
		return func(r *trace.Record) bool {
			if r.Tag == trace.TagEvent {
				n++
			}
			return r.Tag != trace.TagEvent || th != gone.th || n != gone.n+1
		}
	}, nil)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Where a re-execution differs the program goes on, and what it did from its start to its end is a trace that is whole and
// re-executes: of threads, and of processes.
func TestLearn(t *testing.T) {
	visited := 0
	locks := []string{"pthread_mutex_unlock", "pthread_mutex_lock", "pthread_cond_signal", "pthread_cond_broadcast"}
	for _, x := range []struct {
		name, script string
		calls        []string
	}{
		{"barrier", "", locks}, {"pipeline", "", locks},
		{"xz", `seq 100000 >data; xz -T2 -1 --block-size=128KiB -k -c data | cksum`, locks},
	} {
		t.Run(x.name, func(t *testing.T) {
			visited++
			var path, dir, printed string
			if x.script == "" {
				path, printed = recordedProgram(t, x.name, "4", "100"), "done\n"
			} else {
				rec := Cmd{Argv: []string{"sh", "-c", x.script}}.Recorded(t)
				path, dir, printed = rec.Trace, rec.Dir, rec.Stdout
				list, _ := os.ReadDir(dir)
				for _, e := range list {
					os.RemoveAll(filepath.Join(dir, e.Name()))
				}
			}
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			rnd := rand.New(rand.NewPCG(seed, 1))
			for range 3 {
				r, made, out := learnt(t, oneLess(t, path, rnd, x.calls...), dir)
				if r.Identical || r.Learnt == "" || r.Difference == nil || r.Status != 0 || out != printed {
					t.Fatalf("%+v: %+v: %q", r, r.Difference, out)
				}
				undamaged(t, made)
				tr, err := trace.Open(made)
				if err != nil {
					t.Fatal(err)
				}
				all := uint64(0)
				for _, th := range tr.Threads {
					all += tr.EventsBetween(th, 0, 1<<62)
				}
				if e := tr.Meta.Ended; e == nil || e.Status != 0 || all <= r.Events {
					t.Errorf("%d events, %d of them repeated; ended %+v", all, r.Events, e)
				}
				tr.Close()
				for range 2 {
					if again, _, out := learnt(t, made, dir); !again.Identical || again.Events != all || out != printed {
						t.Errorf("of %d events: %+v, %q", all, again, out)
						if again.Difference != nil {
							t.Log(again.Difference.Text())
						}
					}
				}
			}
		})
	}
	if visited != 3 {
		t.Errorf("%d programs", visited)
	}
}

// The trace of an issue ends in the middle of a thread where nobody knew what it does: who executes it again learns that, and nobody
// takes the end of what is known for the end of the process.
func TestLearnCut(t *testing.T) {
	rec := Cmd{Argv: []string{"sh", "-c", `sqlite3 db 'create table t(a)'; sqlite3 db 'insert into t values(1)'; sqlite3 db 'select count(*) from t'`}}.Recorded(t)
	list, _ := os.ReadDir(rec.Dir)
	for _, e := range list {
		os.RemoveAll(filepath.Join(rec.Dir, e.Name()))
	}
	path, _ := issuerTrace(t, rec.Trace)
	tr, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	cut := filepath.Join(t.TempDir(), "cut.prophet")
	if err := os.CopyFS(cut, os.DirFS(path)); err != nil {
		t.Fatal(err)
	}
	streams, _ := filepath.Glob(filepath.Join(cut, "stream-*"))
	for _, f := range streams {
		os.Remove(f)
	}
	w, err := trace.NewWriter(cut)
	if err != nil {
		t.Fatal(err)
	}
	clients, all := 0, uint64(0)
	_, err = tr.RewriteParts(w, func(th *trace.Thread) trace.Part {
		p := trace.Part{Edit: func(*trace.Record) bool { return true }}
		n := tr.EventsBetween(th, 0, 1<<62)
		if all += n; strings.HasSuffix(th.Proc.Exe, "sqlite3") {
			if clients++; clients == 2 {
				p.Upto = n / 2
				p.Head = func(h *trace.Header) { h.Flags &^= cabi.ChunkLast }
			}
		}
		return p
	}, nil)
	if err := errors.Join(err, w.Close()); err != nil || clients != 3 {
		t.Fatal(err, clients)
	}
	meta := *tr.Meta
	meta.Issued.Cut = 1
	if err := trace.WriteMeta(cut, &meta); err != nil {
		t.Fatal(err)
	}
	r, made, out := learnt(t, cut, rec.Dir)
	if r.Identical || r.Learnt == "" || r.Difference == nil || out != "1\n" {
		t.Fatalf("%+v: %+v: %q", r, r.Difference, out)
	}
	undamaged(t, made)
	whole, err := trace.Open(made)
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	n := uint64(0)
	for _, th := range whole.Threads {
		n += whole.EventsBetween(th, 0, 1<<62)
	}
	if n+50 < all {
		t.Errorf("%d events of %d", n, all)
	}
	if again, _, out := learnt(t, made, rec.Dir); !again.Identical || out != "1\n" {
		t.Errorf("%+v: %+v, %q", again, again.Difference, out)
	}
}

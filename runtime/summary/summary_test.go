package summary

import (
	"os"
	"path/filepath"
	"testing"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// numbers encodes operands.
func numbers(v ...uint64) []byte {
	var b []byte
	for _, x := range v {
		b = trace.AppendV(b, x)
	}
	return b
}

func open(t *testing.T, fill func(w *trace.Writer)) *trace.Trace {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "s.prophet")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := trace.WriteMeta(dir, &trace.Meta{Format: 1, TicksHz: 1e9}); err != nil {
		t.Fatal(err)
	}
	w, err := trace.NewWriter(dir)
	if err != nil {
		t.Fatal(err)
	}
	fill(w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	tr, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

const second = 1e9

// One process reads and writes, waits for a lock, and is replaced by another program, which ends.
func TestSummary(t *testing.T) {
	lock := trace.Object{UID: 1, Num: 7}
	tr := open(t, func(w *trace.Writer) {
		e := trace.NewEncoder(1, 0, second, w.Put)
		e.Control(cabi.TagProc, append(numbers(0, 0, 0, 0, 50, 1, cabi.ProcRoot), numbers(0)...))
		e.Control(cabi.TagThread, numbers(1, 0, 0, 50, cabi.ThreadMain))
		e.Event(&trace.Record{Call: 200, Begin: second + 100, End: second + 1100, Timed: true, Ret: 600})
		e.Control(cabi.TagData, trace.AppendS(nil, "12345678"))
		e.Event(&trace.Record{Call: 201, Begin: second + 2000, Ret: 50})
		e.Control(cabi.TagHash, []byte("abcdefgh"))
		e.Event(&trace.Record{Call: 1, Obj: lock, Begin: second + 3000, Seq: 1})
		e.Event(&trace.Record{Call: 1, Obj: lock, Begin: second + 4000, End: second + 9000, Timed: true, Seq: 4, Note: cabi.NoteWaited})
		e.Event(&trace.Record{Call: 1, Obj: lock, Begin: second + 9500, Seq: 9})
		e.At(cabi.TagExit, second+10_000, append(numbers(cabi.ExitExec, 0, 700, 60, 5), numbers(40_000, 0)...))
		e.Flush(cabi.ChunkLast)
		e = trace.NewEncoder(2, 1, second+20_000, w.Put)
		e.Control(cabi.TagProc, append(numbers(1, 0, 1, 0, 50, 1, cabi.ProcExeced), numbers(0)...))
		e.Control(cabi.TagThread, numbers(2, 1, 0, 50, cabi.ThreadMain))
		e.Event(&trace.Record{Call: 200, Begin: second + 21_000, Ret: 400})
		e.Control(cabi.TagUnseen, append(numbers(cabi.UnseenStatic, 0), trace.AppendS(nil, "/bin/busybox")...))
		e.Control(cabi.TagLost, numbers(cabi.LostWrite, 28))
		e.At(cabi.TagCPU, second+50_000, numbers(60_000))
		e.At(cabi.TagExit, second+60_000, append(numbers(cabi.ExitNormal, 6, 1000, 165, 10), numbers(80_000, 0)...))
		e.Flush(cabi.ChunkLast)
	})
	s, err := Of(tr, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	if tr.Procs[1].Name != "p0+" {
		t.Errorf("the second program is %s", tr.Procs[1].Name)
	}
	if len(s.Waits) != 1 || s.Waits[0].NS != 5000 || s.Waits[0].Times != 1 || s.Waits[0].Seq != 9 || s.Waits[0].Thread != "p0" {
		t.Errorf("waits: %+v", s.Waits)
	}
	want := trace.Cover{ReadBytes: 1000, ReadSeen: 1000, WriteBytes: 150, WriteSeen: 50, CPUNS: 80_000, CPUSeen: s.Cover.CPUSeen, UnseenCount: 1}
	if s.Cover != want || s.Cover.CPUSeen < 60_000 || s.Cover.CPUSeen > 80_000 {
		t.Errorf("coverage: %+v, not %+v", s.Cover, want)
	}
	if s.Events != 6 || s.ByClass[cabi.Sync] != 3 || s.ByClass[cabi.Disk] != 3 {
		t.Errorf("events: %+v", s)
	}
	if s.Inputs != 10 || s.Hashes != 9 {
		t.Errorf("%d bytes of inputs, %d of hashes", s.Inputs, s.Hashes)
	}
	if len(s.Lost) != 1 || s.Lost[0].N != 1 || len(s.Unseen) != 1 || s.Unseen[0].What != "static program /bin/busybox" {
		t.Errorf("lost %v unseen %v", s.Lost, s.Unseen)
	}
	if s.Root == nil || s.Duration(&tr.Clock) != 60_000 {
		t.Errorf("root %+v, %d ns", s.Root, s.Duration(&tr.Clock))
	}
}

// What took time without waiting is no wait: the info of a program that only closed its streams listed them.
func TestWaits(t *testing.T) {
	id := map[string]uint16{}
	for i := range cabi.Calls {
		id[cabi.Calls[i].Name] = uint16(cabi.Calls[i].ID)
	}
	rows := 0
	for _, c := range []struct {
		call string
		note uint8
		want int
	}{
		{"pthread_once", 0, 0},
		{"pthread_once", cabi.NoteWaited, 1},
		{"fclose", 0, 0},
		{"sem_wait", 0, 0},
		{"sem_wait", cabi.NoteWaited, 1},
		{"pthread_mutex_timedlock", cabi.NoteWaited, 1},
		{"pthread_cond_wait", 0, 1},
		{"read", 0, 0},
	} {
		rows++
		if id[c.call] == 0 {
			t.Fatalf("no row %s", c.call)
		}
		tr := open(t, func(w *trace.Writer) {
			e := trace.NewEncoder(1, 0, second, w.Put)
			e.Control(cabi.TagProc, append(numbers(0, 0, 0, 0, 50, 1, cabi.ProcRoot), numbers(0)...))
			e.Control(cabi.TagThread, numbers(1, 0, 0, 50, cabi.ThreadMain))
			e.Event(&trace.Record{Call: id[c.call], Obj: trace.Object{UID: 1, Num: 7}, Begin: second, End: second + 1000, Timed: true, Note: c.note})
			e.Flush(cabi.ChunkLast)
		})
		s, err := Of(tr, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Waits) != c.want {
			t.Errorf("%s, note %d: %d waits, want %d", c.call, c.note, len(s.Waits), c.want)
		}
	}
	if rows != 8 {
		t.Fatalf("%d rows visited", rows)
	}
}

package trace

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prophet/cabi"
)

var update = flag.Bool("update", false, "write goldens")

func TestVarint(t *testing.T) {
	rows := 0
	for shift := range 64 {
		for _, d := range []int64{-1, 0, 1} {
			v := uint64(1)<<shift + uint64(d)
			b := AppendV(nil, v)
			if len(b) != lenV(v) {
				t.Errorf("%#x takes %d bytes, lenV says %d", v, len(b), lenV(v))
			}
			c := newCursor(b)
			s := small{b: b}
			if got := c.v(); got != v || c.over() || c.p != len(b) {
				t.Errorf("cursor: %#x reads as %#x", v, got)
			}
			if got := s.v(); got != v || s.bad || len(s.b) != 0 {
				t.Errorf("small: %#x reads as %#x", v, got)
			}
			if got := zag(zig(int64(v))); got != int64(v) {
				t.Errorf("zigzag of %#x is %#x", v, got)
			}
			cut := newCursor(b[:len(b)-1])
			if cut.v(); !cut.over() {
				t.Errorf("%#x cut short is not noticed", v)
			}
			rows++
		}
	}
	if rows != 192 {
		t.Fatalf("%d rows visited", rows)
	}
}

func dumpText(tb testing.TB, t *Trace, o DumpOptions) string {
	tb.Helper()
	var out bytes.Buffer
	if err := t.Dump(bufio.NewWriterSize(&out, 1<<20), o); err != nil {
		tb.Fatal(err)
	}
	return out.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		os.MkdirAll("testdata", 0o755)
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s differs; run with -update and look at the diff. Got:\n%s", path, got)
	}
}

func TestDumpGolden(t *testing.T) {
	tr := mustOpen(t, synth(t, 2, 24, true))
	golden(t, "dump.txt", dumpText(t, tr, DumpOptions{}))
	golden(t, "dump.json", dumpText(t, tr, DumpOptions{JSON: true}))
	golden(t, "dump-filtered.txt", dumpText(t, tr, DumpOptions{Threads: tr.Threads[1:], Classes: 1 << cabi.Disk}))
}

// The first calls into a library have its name, too, though another thread came by later and said what it is.
func TestDumpLateModule(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t.prophet")
	if err := errors.Join(os.Mkdir(dir, 0o700), WriteMeta(dir, &Meta{Format: cabi.FormatVersion, State: StateComplete, TicksHz: 1e9})); err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(dir)
	if err != nil {
		t.Fatal(err)
	}
	for uid := uint32(1); uid <= 2; uid++ {
		e := NewEncoder(uid, 0, 1000, w.Put)
		e.Control(cabi.TagThread, AppendV(AppendV(AppendV(AppendV(AppendV(nil, uint64(uid)), 0), 0), uint64(uid)), cabi.ThreadMain))
		for i := range uint64(20) { // more than are looked at when a trace is opened
			e.Event(&Record{Call: 1, PC: 0x401000 + uint64(uid-1), Begin: 2000 + 100*i, Obj: Object{UID: 1, Num: uint64(uid)}, Seq: i + 1})
		}
		if uid == 2 {
			e.Control(cabi.TagModule, AppendS(AppendS(AppendV(AppendV(AppendV(nil, 0x400000), 0x2000), 0x400000), "/usr/lib/late.so"), ""))
		}
		if err := e.Flush(cabi.ChunkLast); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text := dumpText(t, mustOpen(t, dir), DumpOptions{})
	if n := strings.Count(text, "@late.so+0x1000\n") + strings.Count(text, "@late.so+0x1001\n"); n != 40 {
		t.Errorf("%d of 40 calls have the library's name:\n%s", n, text)
	}
	one := mustOpen(t, dir)
	if text := dumpText(t, one, DumpOptions{Threads: one.Threads[:1]}); strings.Count(text, "@late.so+0x1000\n") != 20 {
		t.Errorf("of one thread alone:\n%s", text)
	}
}

// Packing gives back the same bytes, whatever the order of the threads.
func TestPackRoundTrip(t *testing.T) {
	dir := synth(t, 3, 50_000, true)
	tr := mustOpen(t, dir)
	file := filepath.Join(t.TempDir(), "x.prophet")
	if err := os.Mkdir(filepath.Join(dir, "kept"), 0o700); err != nil {
		t.Fatal(err)
	}
	kept := bytes.Repeat([]byte("what was there before "), 100_000)
	if err := os.WriteFile(filepath.Join(dir, "kept", "801-2f"), kept, 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := tr.Pack(file, 2, nil)
	if err != nil || len(res.Damaged) != 0 {
		t.Fatal(err, res)
	}
	pk := mustOpen(t, file)
	if got, want := dumpText(t, pk, DumpOptions{}), dumpText(t, tr, DumpOptions{}); got != want {
		t.Error("packed trace prints differently")
	}
	back := filepath.Join(t.TempDir(), "back.prophet")
	if err := pk.Unpack(back, func(err error) { t.Error(err) }, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"stream-00", "kept/801-2f"} {
		a, _ := os.ReadFile(filepath.Join(dir, name))
		b, err := os.ReadFile(filepath.Join(back, name))
		if err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs after unpacking (%d and %d bytes): %v", name, len(a), len(b), err)
		}
	}
	v, err := pk.Verify(2, nil)
	if err != nil || v.Damaged != 0 || v.Events != 150_000 {
		t.Errorf("verify: %+v %v", v, err)
	}
}

// The stated prices: 5 bytes an event written and 1 packed for a lock benchmark.
func TestPackedSize(t *testing.T) {
	tr := mustOpen(t, synth(t, 2, 200_000, false))
	res, err := tr.Pack(filepath.Join(t.TempDir(), "p"), 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	written := float64(tr.Threads[0].Bytes+tr.Threads[1].Bytes) / 400_000
	packed := float64(res.Bytes) / 400_000
	t.Logf("%.2f bytes an event written, %.2f packed", written, packed)
	if written > 5 || packed > 1 {
		t.Errorf("%.2f bytes an event written (at most 5), %.2f packed (at most 1)", written, packed)
	}
}

// Damage anywhere gives an error with a place, and what lies behind it is read.
func TestDamage(t *testing.T) {
	dir := synth(t, 2, 60_000, true)
	path := filepath.Join(dir, "stream-00")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(whole[100:], whole[:4]) + 100 // the second chunk
	rows := 0
	for _, c := range []struct {
		name   string
		change func([]byte) []byte
		events int // at least
		want   string
	}{
		{"bit in a payload", func(b []byte) []byte { b[at+5000] ^= 4; return b }, 90_000, "checksum of the chunk does not match"},
		{"bit in a header", func(b []byte) []byte { b[at+8] ^= 1; return b }, 90_000, "reading goes on at"},
		{"magic", func(b []byte) []byte { b[at] = 0; return b }, 90_000, "no chunk begins here"},
		{"cut at the end", func(b []byte) []byte { return b[:len(b)-100] }, 90_000, "cut short"},
		{"cut in a header", func(b []byte) []byte { return b[:at+20] }, 9_000, "offset"},
		{"hole", func(b []byte) []byte { return append(b[:at+300], b[at+900:]...) }, 90_000, "cut short; reading goes on"},
		{"rubbish between", func(b []byte) []byte { return append(append(bytes.Clone(b[:at]), "rubbish"...), b[at:]...) }, 120_000, "no chunk begins here"},
		{"rubbish first", func(b []byte) []byte { return append([]byte("PPH1 not"), b...) }, 120_000, "offset 0"},
		{"empty", func(b []byte) []byte { return nil }, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows++
			if err := os.WriteFile(path, c.change(bytes.Clone(whole)), 0o600); err != nil {
				t.Fatal(err)
			}
			tr := mustOpen(t, dir)
			res, err := tr.Verify(1, nil)
			if err != nil {
				t.Fatal(err)
			}
			if int(res.Events) < c.events {
				t.Errorf("%d events read, at least %d can be", res.Events, c.events)
			}
			if c.want == "" {
				return
			}
			if res.Damaged == 0 {
				t.Fatal("nothing was noticed")
			}
			all := errors.Join(res.Damage...).Error()
			if !strings.Contains(all, c.want) || !strings.Contains(all, "stream-00: offset ") {
				t.Errorf("says %q, not %q", all, c.want)
			}
		})
	}
	if rows != 9 {
		t.Fatalf("%d rows visited", rows)
	}
}

// A packed trace whose index is gone is read frame by frame.
func TestPackedDamage(t *testing.T) {
	dir := synth(t, 2, 200_000, true)
	file := filepath.Join(t.TempDir(), "p")
	if _, err := mustOpen(t, dir).Pack(file, 1, nil); err != nil {
		t.Fatal(err)
	}
	whole, _ := os.ReadFile(file)
	rows := 0
	for _, c := range []struct {
		name   string
		change func([]byte) []byte
		events uint64
	}{
		{"no trailer", func(b []byte) []byte { return b[:len(b)-10] }, 400_000},
		{"trailer bit", func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, 400_000},
		{"head", func(b []byte) []byte { b[3] ^= 1; return b }, 400_000},
		{"no head", func(b []byte) []byte { clear(b[:16]); return b }, 400_000},
		{"head and no trailer", func(b []byte) []byte { b[0] = 0; return b[:len(b)-10] }, 400_000},
		{"half", func(b []byte) []byte { return b[:len(b)/2] }, 100_000},
		{"frame bit", func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, 100_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows++
			os.WriteFile(file, c.change(bytes.Clone(whole)), 0o600)
			tr := mustOpen(t, file)
			res, err := tr.Verify(1, nil)
			if err != nil || res.Damaged == 0 || res.Events < c.events {
				t.Errorf("%+v %v; want damage and %d events", res, err, c.events)
			}
		})
	}
	if rows != 7 {
		t.Fatalf("%d rows visited", rows)
	}
}

// Of two chunks with one number the longer counts.
func TestDoubles(t *testing.T) {
	dir := synth(t, 1, 10, false)
	tr := mustOpen(t, dir)
	n := len(tr.Threads[0].chunks)
	w, _ := NewWriter(dir)
	w.Put(MemChunk{Header{Kind: cabi.ChunkEvents, UID: 1, Base: 1}, []byte{}})
	w.Close()
	tr = mustOpen(t, dir)
	res, err := tr.Verify(1, nil)
	if err != nil || res.Events != 10 || len(tr.Threads[0].chunks) != n {
		t.Errorf("%+v %v", res, err)
	}
}

func TestNames(t *testing.T) {
	tr := &Trace{procs: map[uint32]*Proc{}, byUID: map[uint32]*Thread{}, Meta: &Meta{}}
	proc := func(n, parent, uid uint32, nth, how uint64, pid uint32) *Proc {
		p := tr.proc(n)
		p.parentNo, p.parentUID, p.nth, p.How, p.PID, p.Known = parent, uid, nth, how, pid, true
		tr.Procs = append(tr.Procs, p)
		return p
	}
	thread := func(uid uint32, p *Proc, parent uint32, nth, how uint64) {
		th := &Thread{UID: uid, Proc: p, parent: parent, nth: nth, How: how, known: true}
		tr.Threads = append(tr.Threads, th)
		tr.byUID[uid] = th
	}
	p0 := proc(0, 0, 0, 0, cabi.ProcRoot, 10)
	thread(1, p0, 0, 0, cabi.ThreadMain)
	thread(2, p0, 1, 0, cabi.ThreadCreated)
	thread(3, p0, 2, 4, cabi.ThreadCreated)
	p1 := proc(1, 0, 1, 1, cabi.ProcForked, 11)
	thread(4, p1, 1, 1, cabi.ThreadForked)
	thread(5, p1, 4, 0, cabi.ThreadCreated)
	p2 := proc(2, 1, 4, 0, cabi.ProcExeced, 11)
	thread(6, p2, 4, 0, cabi.ThreadMain)
	p3 := proc(3, 0, 3, 2, cabi.ProcForked, 12)
	thread(7, p3, 3, 0, cabi.ThreadForked)
	proc(4, 5, 99, 0, cabi.ProcForked, 13) // two that claim to be each other's parent
	proc(5, 4, 99, 0, cabi.ProcForked, 14)
	tr.nameAll()
	rows := 0
	for i, want := range []string{"p0", "p0/0", "p0/0/4", "p0.1", "p0.1/0", "p0.1+", "p0/0/4.2"} {
		if got := tr.Threads[i].Name; got != want {
			t.Errorf("thread %d is %q, not %q", i+1, got, want)
		}
		rows++
	}
	if rows != 7 {
		t.Fatalf("%d rows visited", rows)
	}
}

func TestClock(t *testing.T) {
	hz := Calibrate([]ClockPoint{{1000, 500, 0}, {2_000_001_000, 1_000_000_500, 0}, {1_000_001_000, 500_000_500, 0}})
	if hz != 2_000_000_000 {
		t.Errorf("rate is %d", hz)
	}
	c := NewClock(1000, hz)
	if ns := c.Since(2_000_001_000); ns != 1_000_000_000 {
		t.Errorf("a second is %d ns", ns)
	}
	if k := c.Ticks(1_000_000_000); k != 2_000_001_000 {
		t.Errorf("a second is at %d", k)
	}
	if Calibrate([]ClockPoint{{1, 1, 0}, {2000, 900_000, 0}}) != 0 {
		t.Error("a span under a millisecond calibrates")
	}
}

// Sequence numbers: predicted, corrected, and none for a try that failed.
func TestSeq(t *testing.T) {
	var chunks []MemChunk
	e := NewEncoder(1, 0, 10, func(c MemChunk) error { c.Payload = bytes.Clone(c.Payload); chunks = append(chunks, c); return nil })
	o := Object{1, 1}
	in := []Record{
		{Call: 3, Obj: o, Seq: 1}, {Call: 3, Obj: o, Ret: 16}, {Call: 3, Obj: o, Seq: 2}, {Call: 3, Obj: o, Seq: 9},
		{Call: 3, Obj: o, Ret: 130, Seq: 10}, {Call: 2, Obj: o},
	}
	for i := range in {
		in[i].Begin = 10
		e.Event(&in[i])
	}
	e.Flush(0)
	var d Decoder
	d.Reset(chunks[0].Payload, 10)
	var r Record
	n := 0
	for d.Next(&r) {
		if r.Tag != TagEvent {
			continue
		}
		if r.Seq != in[n].Seq || r.Ret != in[n].Ret {
			t.Errorf("event %d: seq %d ret %d, not %d %d", n, r.Seq, r.Ret, in[n].Seq, in[n].Ret)
		}
		n++
	}
	if n != len(in) || d.Err() != "" {
		t.Fatalf("%d events, %s", n, d.Err())
	}
}

func TestIterEOF(t *testing.T) {
	tr := mustOpen(t, synth(t, 1, 3, false))
	it := tr.Iter(tr.Threads[0])
	var r Record
	for {
		if err := it.Next(&r); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := it.Next(&r); err != io.EOF {
		t.Error(err)
	}
}

// A trace of each version of the format is kept for ever, and read.
func TestOldVersions(t *testing.T) {
	const file = "testdata/v1.prophet"
	if *update {
		os.Remove(file)
		if _, err := mustOpen(t, synth(t, 2, 60, true)).Pack(file, 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	list, err := filepath.Glob("testdata/v*.prophet")
	if err != nil || len(list) != cabi.FormatVersion {
		t.Fatalf("%d traces are kept, of %d versions: %v", len(list), cabi.FormatVersion, err)
	}
	for _, path := range list {
		tr := mustOpen(t, path)
		if res, err := tr.Verify(1, nil); err != nil || res.Damaged != 0 || res.Events != 120 {
			t.Errorf("%s: %+v %v", path, res, err)
		}
		golden(t, filepath.Base(path)+".txt", dumpText(t, tr, DumpOptions{}))
	}
}

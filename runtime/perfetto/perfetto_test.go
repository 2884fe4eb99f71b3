package perfetto

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prophet/cabi"
	"prophet/runtime/pass"
	"prophet/runtime/perfetto/pftest"
	"prophet/runtime/trace"
)

// made writes a trace through f and opens it.
func made(tb testing.TB, f func(w *trace.Writer)) *trace.Trace {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "t.prophet")
	if err := os.Mkdir(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	m := trace.Meta{Format: cabi.FormatVersion, State: trace.StateComplete, Run: "0123456789abcdef", TicksHz: 1e9}
	if err := trace.WriteMeta(dir, &m); err != nil {
		tb.Fatal(err)
	}
	w, err := trace.NewWriter(dir)
	if err != nil {
		tb.Fatal(err)
	}
	f(w)
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	t, err := trace.Open(dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { t.Close() })
	return t
}

func numbers(v ...uint64) []byte {
	var b []byte
	for _, x := range v {
		b = trace.AppendV(b, x)
	}
	return b
}

// introduce begins the stream of a thread of a process.
func introduce(w *trace.Writer, uid, proc uint32, text string) *trace.Encoder {
	e := trace.NewEncoder(uid, proc, 1000, w.Put)
	e.Control(cabi.TagClock, numbers(1000, 5_000_000_000, 1_700_000_000_000_000_000))
	e.Control(cabi.TagProc, trace.AppendS(numbers(uint64(proc), 0, 0, 0, 100+uint64(proc), 1, cabi.ProcRoot), text))
	e.Control(cabi.TagThread, numbers(uint64(uid), 0, 0, 100+uint64(uid), cabi.ThreadMain))
	return e
}

func drawn(tb testing.TB, t *trace.Trace) *pftest.Picture {
	tb.Helper()
	var b bytes.Buffer
	if _, err := Write(&b, t, pass.Options{}); err != nil {
		tb.Fatal(err)
	}
	p, err := pftest.Read(b.Bytes())
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

const nasty = "a\xff\x00\x1b[31m\xe2\x82\"<script>\n\xed\xa0\x80"

// Text of a trace, whatever its bytes, arrives as UTF-8 without control characters.
func TestText(t *testing.T) {
	tr := made(t, func(w *trace.Writer) {
		e := introduce(w, 1, 0, "/bin/"+nasty+"\x00/\x00"+nasty+"\x00"+nasty+"\x00")
		e.Control(cabi.TagModule, trace.AppendS(trace.AppendS(numbers(0x1000, 0x1000, 0x1000), "/lib/"+nasty), "x"))
		e.Event(&trace.Record{Call: 260, PC: 0x1100, Begin: 2000, End: 3000, Timed: true, Ret: 3, Tail: e.Path(nil, "/tmp/"+nasty)})
		e.At(cabi.TagMark, 3100, trace.AppendS(numbers(cabi.MarkBegin), nasty))
		e.At(cabi.TagMark, 3200, trace.AppendS(numbers(cabi.MarkPoint), nasty))
		e.Control(cabi.TagUnseen, trace.AppendS(numbers(1, 0), nasty))
		e.Event(&trace.Record{Call: 717, Begin: 3300, Obj: trace.Object{UID: 1}, Tail: trace.AppendS(nil, nasty)})
		e.Flush(cabi.ChunkLast)
	})
	p := drawn(t, tr)
	seen := map[string]bool{}
	check := func(what, s string) {
		if strings.ContainsAny(s, "\x00\x1b\n") {
			t.Errorf("%s has control characters: %q", what, s)
		}
		if strings.Contains(s, `a\xff\x00\x1b[31m`) {
			seen[what] = true
		}
	}
	for _, tr := range p.Tracks {
		check("track", tr.Name)
	}
	for _, s := range p.Slices {
		check("slice", s.Name)
		for k, v := range s.Args {
			if text, ok := v.(string); ok {
				check(k, text)
			}
		}
	}
	for _, what := range []string{"track", "slice", "path", "name", "call site", "detail"} {
		if !seen[what] {
			t.Errorf("the text of a %s is not there", what)
		}
	}
}

// Strings are told anew when there are too many, and arrows survive when what they begin at is forgotten.
func TestBounds(t *testing.T) {
	was, wasLeads := maxStrings, maxLeads
	defer func() { maxStrings, maxLeads = was, wasLeads }()
	maxStrings, maxLeads = 32, 4
	tr := made(t, func(w *trace.Writer) {
		e := introduce(w, 1, 0, "x\x00")
		at := uint64(2000)
		next := func() uint64 { at += 100; return at }
		e.Event(&trace.Record{Call: 467, Begin: next(), Obj: trace.Object{UID: 1, Num: 1}, F: [3]int64{3, 4}, Tail: trace.AppendV(nil, 1<<40|2)})
		for i := range 300 {
			b := next()
			e.Event(&trace.Record{Call: 201, PC: uint64(0x1000 + i), Begin: b, End: b + 50, Timed: true, Obj: trace.Object{UID: 1, Num: 2}, Ret: 10})
		}
		for i := range 300 {
			b := next()
			e.Event(&trace.Record{Call: 200, PC: uint64(0x9000 + i), Begin: b, End: b + 50, Timed: true, Obj: trace.Object{UID: 1, Num: 1}, Ret: 10})
		}
		e.Flush(cabi.ChunkLast)
	})
	p := drawn(t, tr)
	if len(p.Flows) != 300 {
		t.Errorf("%d arrows of 300", len(p.Flows))
	}
	begun := 0
	for _, s := range p.Slices {
		if s.Name == "write" || s.Name == "read" {
			begun++
		}
	}
	if begun != 600 {
		t.Errorf("%d calls of 600", begun)
	}
}

// Any records make a picture that can be read: nested, with no arrow back in time, nothing without its track.
func FuzzPicture(f *testing.F) {
	for seed := range uint64(30) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		tr := made(t, func(w *trace.Writer) {
			for uid := uint32(1); uid <= 4; uid++ {
				e := introduce(w, uid, uid/3, "x\x00")
				at := uint64(1000)
				for range 400 {
					at += uint64(rnd.IntN(200))
					num := func() uint64 { return uint64(rnd.IntN(6)) }
					switch rnd.IntN(12) {
					case 0:
						e.At(cabi.TagSignal, at, append(numbers(num(), num()), 2, 2))
					case 1:
						e.At(cabi.TagSigRet, at, numbers(num()))
					case 2:
						e.At(cabi.TagMark, at, trace.AppendS(numbers(num()%3), fmt.Sprint(num()%3)))
					case 3:
						e.Control(cabi.TagRSS, numbers(num()))
					case 4:
						e.Control(cabi.TagTime, numbers(at-uint64(rnd.IntN(300))))
					case 5:
						e.Control(cabi.TagObject, trace.AppendS(numbers(uint64(uid), num(), cabi.ObjFd, num()), "x"))
					default:
						calls := []uint16{1, 2, 40, 43, 80, 84, 65, 200, 201, 700, 705, 401, 467, 304, 730, 420, 425}
						r := trace.Record{Call: calls[rnd.IntN(len(calls))], PC: 0x1000 + num(), Begin: at, Obj: trace.Object{UID: uint32(1 + num()%4), Num: num()},
							Ret: int64(rnd.IntN(30)), F: [3]int64{int64(num()), int64(num()), 1}, Seq: num(), Note: uint8(rnd.IntN(4))}
						if rnd.IntN(3) > 0 {
							r.Timed, r.End = true, at+uint64(rnd.IntN(3000))
							at = r.End
						}
						if row := trace.RowOf(uint64(r.Call)); len(row.Tail) > 0 {
							for range row.Tail {
								r.Tail = trace.AppendV(r.Tail, 1<<40|num())
							}
						}
						e.Event(&r)
					}
				}
				e.Flush(cabi.ChunkLast)
			}
		})
		p := drawn(t, tr)
		for _, f := range p.Flows {
			if f.From.Begin > f.To.Begin {
				t.Fatalf("seed %d: an arrow from %s to %s points back in time", seed, f.From.Name, f.To.Name)
			}
		}
	})
}

// A thread that the trace says nothing of has a track nevertheless.
func TestUnknown(t *testing.T) {
	tr := made(t, func(w *trace.Writer) {
		e := trace.NewEncoder(7, 3, 1000, w.Put)
		e.Event(&trace.Record{Call: 1, Begin: 2000, Obj: trace.Object{UID: 9, Num: 1}, Seq: 1})
		e.Event(&trace.Record{Call: 60000, Begin: 2100, End: 2200, Timed: true})
		e.Flush(0)
	})
	if p := drawn(t, tr); len(p.Slices) != 2 || p.Slices[1].Name != "call60000" {
		t.Errorf("%+v", p.Slices)
	}
}

type full struct{ n int }

func (f *full) Write(b []byte) (int, error) {
	if f.n -= len(b); f.n < 0 {
		return 0, errFull
	}
	return len(b), nil
}

var errFull = errors.New("no space left")

// A write that fails is told.
func TestFull(t *testing.T) {
	tr := made(t, func(w *trace.Writer) {
		e := introduce(w, 1, 0, "x\x00")
		for i := range 100_000 {
			e.Event(&trace.Record{Call: 1, Begin: 2000 + uint64(i), Obj: trace.Object{UID: 1, Num: 1}, Seq: uint64(i + 1)})
		}
		e.Flush(cabi.ChunkLast)
	})
	for _, n := range []int{0, 100, 2 << 20} {
		if _, err := Write(&full{n}, tr, pass.Options{}); !errors.Is(err, errFull) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	const threads, events = 4, 500_000
	tr := made(b, func(w *trace.Writer) {
		rnd := rand.New(rand.NewPCG(1, 2))
		for uid := uint32(1); uid <= threads; uid++ {
			e := introduce(w, uid, 0, "x\x00")
			at := uint64(2000)
			for i := range events {
				at += 20 + uint64(rnd.IntN(12))
				r := trace.Record{Begin: at, End: at, PC: 0x401000 + 16*uint64(i%2)}
				if i%3 < 2 {
					r.Call, r.Obj = uint16(1+i%3), trace.Object{UID: uid, Num: 1 + uint64(i/40%5)}
					if r.Call == 1 {
						r.Seq = uint64(i)
					}
				} else {
					r.Call, r.Obj, r.Timed, r.Ret = 200, trace.Object{UID: 1, Num: 100}, true, int64(rnd.IntN(4096))
					at += uint64(rnd.IntN(2000))
					r.End = at
				}
				e.Event(&r)
			}
			e.Flush(cabi.ChunkLast)
		}
	})
	var n counted
	for b.Loop() {
		if _, err := Write(&n, tr, pass.Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(threads*events)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
	b.ReportMetric(float64(n)/float64(threads*events)/float64(b.N), "B/event")
}

type counted int64

func (c *counted) Write(b []byte) (int, error) { *c += counted(len(b)); return io.Discard.Write(b) }

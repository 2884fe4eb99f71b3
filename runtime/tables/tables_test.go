package tables

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"prophet/cabi"
	"prophet/runtime/pass"
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

func introduce(w *trace.Writer, uid, proc uint32, text string) *trace.Encoder {
	e := trace.NewEncoder(uid, proc, 1000, w.Put)
	e.Control(cabi.TagClock, numbers(1000, 5_000_000_000, 1_700_000_000_000_000_000))
	e.Control(cabi.TagProc, trace.AppendS(numbers(uint64(proc), 0, 0, 0, 100+uint64(proc), 1, cabi.ProcRoot), text))
	e.Control(cabi.TagThread, numbers(uint64(uid), 0, 0, 100+uint64(uid), cabi.ThreadMain))
	return e
}

type file struct{ bytes.Buffer }

func (f *file) Close() error { return nil }

func written(tb testing.TB, t *trace.Trace, f Format) (map[string]*file, *pass.Result) {
	tb.Helper()
	all := map[string]*file{}
	res, err := Write(t, pass.Options{}, f, func(name string) (io.WriteCloser, error) {
		all[name] = &file{}
		return all[name], nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return all, res
}

// TestCells: a row of CSV has its columns in the order of the struct, which is that of the schema and of parquet.
func TestCells(t *testing.T) {
	visited := 0
	check := func(name string, row any, line func(c *cells)) {
		visited++
		v := reflect.ValueOf(row).Elem()
		var want []string
		for i := range v.NumField() {
			switch f := v.Field(i); f.Kind() {
			case reflect.String:
				f.SetString(fmt.Sprint("text", i))
			case reflect.Bool:
				f.SetBool(true)
			default:
				f.SetInt(int64(1000 + i))
			}
			want = append(want, fmt.Sprint(v.Field(i)))
		}
		c := cells{first: true}
		line(&c)
		if got := string(c.b); got != strings.Join(want, ",") {
			t.Errorf("%s: %s, of %v", name, got, want)
		}
	}
	var e Event
	var l Link
	var o Object
	var th Thread
	var p Process
	var m Module
	var s Stack
	var x Sample
	var k Mark
	check("events", &e, e.cells)
	check("links", &l, l.cells)
	check("objects", &o, o.cells)
	check("threads", &th, th.cells)
	check("processes", &p, p.cells)
	check("modules", &m, m.cells)
	check("stacks", &s, s.cells)
	check("samples", &x, x.cells)
	check("marks", &k, k.cells)
	if visited != len(Schema) {
		t.Errorf("%d tables of %d", visited, len(Schema))
	}
	names := map[string]bool{}
	for _, table := range Schema {
		for _, c := range table.Columns {
			if c.Doc == "" || c.Name == "" || names[table.Name+c.Name] || strings.Trim(c.Name, "abcdefghijklmnopqrstuvwxyz_") != "" {
				t.Errorf("%s.%s: a column without a name of its own or a word of what it is", table.Name, c.Name)
			}
			names[table.Name+c.Name] = true
		}
	}
}

// TestFormulas: no cell begins as a formula, and taking the apostrophe away gives what was there.
func TestFormulas(t *testing.T) {
	for _, s := range []string{"=1+1", "+1", "-1", "@SUM(A1)", "'quoted", "\tx", "\rx", `=HYPERLINK("http://x")`, "plain", `with "quotes", commas`, "-", "=", " x", "a=b"} {
		c := cells{first: true}
		c.text(s)
		c.num(7)
		rows, err := csv.NewReader(bytes.NewReader(append(c.b, '\n'))).ReadAll()
		if err != nil || len(rows) != 1 || len(rows[0]) != 2 || rows[0][1] != "7" {
			t.Errorf("%q: %q %v", s, c.b, err)
			continue
		}
		got := rows[0][0]
		if strings.ContainsAny(got[:1], "=+-@\t\r") {
			t.Errorf("%q became %q", s, got)
		}
		want := s
		if strings.ContainsAny(s[:1], "=+-@'\t\r") {
			want = "'" + s
		}
		if got != want {
			t.Errorf("%q became %q", s, got)
		}
	}
}

const nasty = "=cmd|' /C calc'!A0\xff\x00\x1b[31m\xe2\x82\",\n\xed\xa0\x80'; DROP TABLE events; --"

func nastyTrace(t *testing.T) *trace.Trace {
	return made(t, func(w *trace.Writer) {
		e := introduce(w, 1, 0, "/bin/"+nasty+"\x00/\x00"+nasty+"\x00"+nasty+"\x00")
		e.Control(cabi.TagModule, trace.AppendS(trace.AppendS(numbers(0x1000, 0x1000, 0x1000), nasty), "x"))
		e.Event(&trace.Record{Call: 260, PC: 0x1100, Begin: 2000, End: 3000, Timed: true, Ret: 3, Tail: e.Path(nil, nasty)})
		e.Control(cabi.TagObject, trace.AppendS(numbers(1, 1, cabi.ObjFd, 3), nasty))
		e.Event(&trace.Record{Call: 200, PC: 0x1100, Begin: 3000, End: 3500, Timed: true, Obj: trace.Object{UID: 1, Num: 1}, Ret: -5})
		e.At(cabi.TagMark, 3600, trace.AppendS(numbers(cabi.MarkPoint), nasty))
		e.Event(&trace.Record{Call: 717, Begin: 3700, Obj: trace.Object{UID: 1}, Tail: trace.AppendS(nil, nasty)})
		e.Flush(cabi.ChunkLast)
	})
}

// Text of a trace, whatever its bytes, is one cell of one line.
func TestText(t *testing.T) {
	all, _ := written(t, nastyTrace(t), CSV)
	if len(all) != len(Schema) {
		t.Errorf("%d files of %d", len(all), len(Schema))
	}
	const want = `=cmd|' /C calc'!A0\xff\x00\x1b[31m`
	seen := 0
	for _, table := range Schema {
		b := all[table.Name+".csv"].Bytes()
		if bytes.ContainsAny(b, "\x00\x1b\xff") {
			t.Errorf("%s has control characters", table.Name)
		}
		r := csv.NewReader(bytes.NewReader(b))
		rows, err := r.ReadAll() // fails where lines have different numbers of cells
		if err != nil {
			t.Errorf("%s: %v", table.Name, err)
			continue
		}
		for i, c := range table.Columns {
			if rows[0][i] != c.Name {
				t.Errorf("%s: column %d is %s, not %s", table.Name, i, rows[0][i], c.Name)
			}
		}
		for _, row := range rows[1:] {
			for _, cell := range row {
				if strings.HasPrefix(cell, "=") {
					t.Errorf("%s has a formula: %s", table.Name, cell)
				}
				if strings.HasPrefix(cell, "'"+want) {
					seen++
				}
			}
		}
	}
	if seen < 6 { // path, target, object's detail, mark, thread's name, command, module
		t.Errorf("the text is in %d cells", seen)
	}
	events, err := parquet.Read[Event](bytes.NewReader(parquets(t)["events.parquet"].Bytes()), int64(parquets(t)["events.parquet"].Len()))
	if err != nil || len(events) != 3 || !strings.HasPrefix(events[0].Path, want) || events[1].Error != "EIO" || events[1].Target == "" {
		t.Errorf("%+v %v", events, err)
	}
}

func parquets(t *testing.T) map[string]*file {
	all, _ := written(t, nastyTrace(t), Parquet)
	return all
}

// What does not fit is left out and said, in the files as well.
func TestBounds(t *testing.T) {
	was, wasTexts, wasStacks := maxObjects, maxTexts, maxStacks
	defer func() { maxObjects, maxTexts, maxStacks = was, wasTexts, wasStacks }()
	maxObjects, maxTexts, maxStacks = 10, 4, 5
	tr := made(t, func(w *trace.Writer) {
		e := introduce(w, 1, 0, "x\x00")
		for i := range uint64(300_000) {
			e.Event(&trace.Record{Call: 1, PC: 0x1000 + i%9, Begin: 2000 + i, Obj: trace.Object{UID: 1, Num: 1 + i%20}, Seq: 1 + i})
			if i < 20 {
				e.Stack(0, []uint64{0x1000 + i, 0x2000})
			}
		}
		e.Flush(cabi.ChunkLast)
	})
	all, res := written(t, tr, Parquet)
	notes := strings.Join(res.Notes(), "; ")
	if !strings.Contains(notes, "objects beyond 10") || !strings.Contains(notes, "stacks beyond 5") {
		t.Errorf("notes: %s", notes)
	}
	b := all["events.parquet"]
	f, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if f.NumRows() != 300_000 {
		t.Errorf("%d events", f.NumRows())
	}
	for _, g := range f.RowGroups() {
		if g.NumRows() > groupRows {
			t.Errorf("a row group of %d rows", g.NumRows())
		}
	}
	if v, ok := f.Lookup("prophet.left_out"); !ok || v != notes {
		t.Errorf("the file says %q", v)
	}
	o := all["objects.parquet"]
	if f, err := parquet.OpenFile(bytes.NewReader(o.Bytes()), int64(o.Len())); err != nil || f.NumRows() != 10 {
		t.Errorf("objects: %v", err)
	}
}

type bad struct{ after int }

var errFull = errors.New("no space left")

func (b *bad) Write(p []byte) (int, error) {
	if b.after -= len(p); b.after < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func (b *bad) Close() error { return nil }

// A write that fails is told, and nothing hangs.
func TestFull(t *testing.T) {
	tr := made(t, func(w *trace.Writer) {
		e := introduce(w, 1, 0, "x\x00")
		for i := range uint64(200_000) {
			e.Event(&trace.Record{Call: 1, Begin: 2000 + i, Obj: trace.Object{UID: 1, Num: 1}, Seq: i + 1})
		}
		e.Flush(cabi.ChunkLast)
	})
	for _, f := range []Format{CSV, Parquet} {
		for _, after := range []int{0, 1000, 300_000} {
			_, err := Write(tr, pass.Options{}, f, func(string) (io.WriteCloser, error) { return &bad{after}, nil })
			if !errors.Is(err, errFull) {
				t.Errorf("%v after %d bytes: %v", f, after, err)
			}
		}
		if _, err := Write(tr, pass.Options{}, f, func(name string) (io.WriteCloser, error) {
			if strings.HasPrefix(name, "objects") {
				return nil, errFull
			}
			return &bad{1 << 30}, nil
		}); !errors.Is(err, errFull) {
			t.Errorf("%v: a file that cannot be made: %v", f, err)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	const events = 1_000_000
	tr := made(b, func(w *trace.Writer) {
		e := introduce(w, 1, 0, "x\x00")
		at := uint64(2000)
		for i := range uint64(events) {
			at += 30
			r := trace.Record{Begin: at, End: at, PC: 0x401000 + 16*(i%2), Call: uint16(1 + i%3), Obj: trace.Object{UID: 1, Num: 1 + i/40%5}, Seq: 1 + i}
			if i%3 == 2 {
				r = trace.Record{Begin: at, End: at + i%500, Timed: true, Call: 200, PC: 0x402000, Obj: trace.Object{UID: 1, Num: 100}, Ret: int64(i % 4096), F: [3]int64{4096}}
				at = r.End
			}
			e.Event(&r)
		}
		e.Flush(cabi.ChunkLast)
	})
	for f, name := range []string{"csv", "parquet"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Write(tr, pass.Options{}, Format(f), func(string) (io.WriteCloser, error) { return &bad{1 << 60}, nil }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(events*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}

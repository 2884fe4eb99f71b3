package tables

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// back reads a table of both formats back with readers that know nothing of the writers, and compares them cell by cell.
func back[T any](t *testing.T, name string, asParquet, asCSV map[string]*file) (n int) {
	t.Helper()
	b := asParquet[name+".parquet"].Bytes()
	rows, err := parquet.Read[T](bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	lines, err := csv.NewReader(bytes.NewReader(asCSV[name+".csv"].Bytes())).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(lines) != len(rows)+1 {
		t.Fatalf("%s: %d rows of parquet, %d lines of CSV", name, len(rows), len(lines)-1)
	}
	for i := range rows {
		v := reflect.ValueOf(&rows[i]).Elem()
		if v.NumField() != len(lines[i+1]) {
			t.Fatalf("%s, row %d: %d cells of %d columns", name, i, len(lines[i+1]), v.NumField())
		}
		for c := range v.NumField() {
			want := fmt.Sprint(v.Field(c))
			if v.Field(c).Kind() == reflect.String {
				if strings.IndexFunc(want, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\ufffd' }) >= 0 {
					t.Fatalf("%s, row %d, %s: %q has control characters, or is not UTF-8", name, i, lines[0][c], want)
				}
				if want != "" && strings.IndexByte("=+-@'", want[0]) >= 0 {
					want = "'" + want
				}
			}
			if lines[i+1][c] != want {
				t.Fatalf("%s, row %d, %s: %q in CSV, %q in parquet", name, i, lines[0][c], lines[i+1][c], want)
			}
		}
	}
	return len(rows)
}

// FuzzTables: whatever records a trace has, and whatever bytes its texts, both formats are well formed and say the same.
func FuzzTables(f *testing.F) {
	f.Add([]byte(nasty), uint64(1))
	rnd := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 4000)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	f.Add(b, uint64(2))
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		if len(b) > 1<<14 {
			return
		}
		rnd := rand.New(rand.NewPCG(seed, 7))
		text := func() string {
			if len(b) == 0 {
				return ""
			}
			i := rnd.IntN(len(b))
			return string(b[i:min(len(b), i+rnd.IntN(40))])
		}
		num := func() uint64 {
			if rnd.IntN(8) == 0 {
				return rnd.Uint64()
			}
			return uint64(rnd.IntN(9))
		}
		events := 0
		tr := made(t, func(w *trace.Writer) {
			for uid := uint32(1); uid <= 2; uid++ {
				e := introduce(w, uid, uid-1, text()+"\x00/\x00"+text()+"\x00"+text()+"\x00")
				at := uint64(2000)
				for i := 0; i+2 <= len(b); i += 2 {
					at += uint64(b[i+1])
					switch b[i] % 16 {
					case 0:
						e.Control(cabi.TagModule, trace.AppendS(trace.AppendS(numbers(num(), num(), num()), text()), text()))
					case 1:
						e.Control(cabi.TagObject, trace.AppendS(numbers(uint64(uid), num(), num(), num()), text()))
					case 2:
						e.At(cabi.TagMark, at, trace.AppendS(numbers(num()%3), text()))
					case 3:
						e.Stack(at, []uint64{num(), num(), num()})
					case 4:
						e.Control(cabi.TagRSS, numbers(num()))
					default:
						r := trace.Record{Call: uint16(b[i])<<2 | uint16(b[i+1])&3, PC: num(), Begin: at, Obj: trace.Object{UID: uint32(num()), Num: num()},
							Ret: int64(num()) - 4, F: [3]int64{int64(num()), int64(num()), int64(num())}, Seq: num(), Note: uint8(rnd.IntN(16))}
						if row := trace.RowOf(uint64(r.Call)); row == nil || len(row.Tail) > 0 {
							r.Tail = e.Path(nil, text())
						}
						if r.Timed = b[i+1]&1 != 0; r.Timed {
							r.End = at + uint64(b[i+1])
							at = r.End
						}
						e.Event(&r)
						events++
					}
				}
				e.Flush(cabi.ChunkLast)
			}
		})
		a, res := written(t, tr, Parquet)
		tr, err := trace.Open(tr.Path) // the other knows of modules from the start
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		c, _ := written(t, tr, CSV)
		n := back[Event](t, "events", a, c)
		if n > events || n < events && res.Damaged == 0 {
			t.Errorf("%d events of %d", n, events)
		}
		back[Link](t, "links", a, c)
		back[Object](t, "objects", a, c)
		if n := back[Thread](t, "threads", a, c); n != 2 && res.Damaged == 0 {
			t.Errorf("%d threads of 2", n)
		}
		back[Process](t, "processes", a, c)
		back[Module](t, "modules", a, c)
		back[Stack](t, "stacks", a, c)
		back[Sample](t, "samples", a, c)
		back[Mark](t, "marks", a, c)
	})
}

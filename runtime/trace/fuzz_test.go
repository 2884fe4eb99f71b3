package trace

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"prophet/cabi"
)

// samplePayload is a chunk's payload with a bit of everything.
func samplePayload() []byte {
	var out []byte
	e := NewEncoder(1, 0, 100, func(c MemChunk) error { out = append(out, c.Payload...); return nil })
	e.Event(&Record{Call: 1, PC: 0x1000, Obj: Object{1, 1}, Begin: 110, Seq: 1, F: [3]int64{7, 0, 0}})
	e.Event(&Record{Call: 200, PC: 0x2000, Obj: Object{1, 2}, Begin: 200, End: 900, Timed: true, Ret: -11, Note: 3})
	e.Control(cabi.TagData, AppendS(nil, "some data"))
	e.Control(cabi.TagHash, []byte("abcdefgh"))
	e.Control(cabi.TagInput, AppendS(nil, "\x03\x05"))
	e.Stack(cabi.StackWait|cabi.StackCut, []uint64{0x3000, 0x2800, 0x7fff00001234})
	e.Sample(950, 12345, []uint64{0x3001})
	e.At(cabi.TagSignal, 1000, []byte{3, 1, 1, 1})
	e.Event(&Record{Call: 60000, PC: 0x2000, Begin: 1100, Tail: []byte{1, 2, 3}})
	e.Stack(0, []uint64{0x3000})
	e.At(cabi.TagSigRet, 1200, []byte{3})
	e.Control(cabi.TagObject, AppendS([]byte{3, 3, 3, 3}, "fd"))
	e.Control(cabi.TagModule, AppendS(AppendS([]byte{3, 0xfe, 0xff, 3}[:1:1], "/x"), "id"))
	e.Flush(0)
	return out
}

// everyAccessor prints a record as text and as JSON.
func everyAccessor(t *Trace, th *Thread, payload []byte) {
	var d Decoder
	var r Record
	d.Reset(payload, 100)
	text, js := NewPrinter(t, false), NewPrinter(t, true)
	var b []byte
	var fields []Field
	for n := 0; n < 10_000 && d.Next(&r); n++ {
		r.Thread = th
		b = text.Append(b[:0], &r)
		b = js.Append(b, &r)
		if r.Tag == cabi.TagInput {
			fields, _ = ParseInput(fields, r.Row, int(min(r.Nums[0], 1<<20)), r.Text[0])
		}
		if r.Tag != TagEvent {
			t.learn(th, &r)
		}
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(samplePayload())
	f.Add([]byte{0, 0xff, 3})
	f.Fuzz(func(t *testing.T, payload []byte) {
		th := &Thread{UID: 1, Name: "p0", Proc: &Proc{}}
		tr := &Trace{Threads: []*Thread{th}, Clock: NewClock(0, 2e9), Meta: &Meta{}}
		everyAccessor(tr, th, payload)
		if n := WholePrefix(payload, 100); n < 0 || n > len(payload) {
			t.Fatalf("whole prefix of %d bytes is %d", len(payload), n)
		} else if m := WholePrefix(payload[:n], 100); m != n {
			t.Fatalf("a whole prefix of %d has one of %d", n, m)
		}
	})
}

// lockPayload is what passes over events quickly: locks from two places in turn, at so many objects, with all lengths of times and steps.
func lockPayload(objects int) []byte {
	var out []byte
	e := NewEncoder(1, 0, 100, func(c MemChunk) error { out = append(out, c.Payload...); return nil })
	now := uint64(100)
	for i := range uint64(1500) {
		o := Object{1, i % uint64(objects)}
		now += 1 << (i % 26)
		e.Event(&Record{Call: 1, PC: 0x1000 + i&1*16, Obj: o, Begin: now, Seq: 1 + i<<(i%17)})
		e.Event(&Record{Call: 2, PC: 0x2000, Obj: o, Begin: now + i%200, Timed: i%50 == 0, End: now + 300, Note: uint8(i % 70 / 69)})
		if i%400 == 399 {
			e.Event(&Record{Call: 200, PC: 0x3000, Obj: Object{1, 1000}, Begin: now, Ret: int64(i)})
		}
	}
	e.Flush(0)
	return out
}

// told is what counts of a record.
func told(r *Record) string {
	if r.Tag != TagEvent {
		return fmt.Sprint(r.Tag, r.Begin, r.End, r.Offset, r.Nums, r.Text, r.Stack, r.Row)
	}
	s := fmt.Sprint(r.Call, r.Begin, r.End, r.Offset, r.PC, r.Obj, r.Ret, r.F, r.Seq, r.Mask, r.Note, r.Row)
	if r.Mask&cabi.MaskTail != 0 {
		s += fmt.Sprint(r.Tail, r.Fields)
	}
	return s
}

// Who passes over events of some classes sees of the others what is seen without.
func FuzzOnly(f *testing.F) {
	f.Add(samplePayload())
	f.Add(lockPayload(1))
	f.Add(lockPayload(100))
	f.Add(lockPayload(2)[:1003])
	f.Fuzz(func(t *testing.T, payload []byte) {
		var all, some Decoder
		some.only = cabi.SetOf(cabi.Disk)
		all.Reset(payload, 100)
		some.Reset(payload, 100)
		var r, s Record
		for all.Next(&r) {
			if k := all.keys; r.Tag == TagEvent && len(k) == len(some.keys) && some.keys[r.slot].pass {
				continue
			}
			if !some.Next(&s) {
				t.Fatalf("%q where %+v comes", some.Err(), r)
			}
			if got, want := told(&s), told(&r); got != want {
				t.Fatalf("%s, not %s", got, want)
			}
		}
		if all.Err() == "" && (some.Next(&s) || some.Err() != "" || some.events != all.events) {
			t.Fatalf("%d events, not %d; %q, %+v", some.events, all.events, some.Err(), s)
		}
	})
}

// Whatever columns take apart they put together again, byte for byte.
func FuzzColumns(f *testing.F) {
	f.Add(samplePayload(), uint8(1))
	f.Add([]byte{}, uint8(2))
	f.Fuzz(func(t *testing.T, payload []byte, n uint8) {
		enc, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		dec, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
		defer dec.Close()
		fr := newFrame()
		var want []byte
		for i := range 1 + int(n%3) {
			h := Header{Kind: cabi.ChunkEvents, UID: uint32(i / 2), Seq: uint64(i), Base: uint64(n) * 7}
			h.Seal(payload)
			fr.add(h, payload)
			want = append(want, payload...)
		}
		heads, got, err := decodeEvents(dec, fr.encode(enc, nil), nil, len(want))
		if err != nil || len(heads) != 1+int(n%3) || !bytes.Equal(got, want) {
			t.Fatalf("%d heads, %v\n%x\n%x", len(heads), err, got, want)
		}
	})
}

func FuzzChunk(f *testing.F) {
	p := samplePayload()
	good := AppendChunk(nil, MemChunk{Header{Kind: cabi.ChunkEvents, UID: 1, Base: 100}, p})
	f.Add(append(bytes.Clone(good), good...))
	f.Add(append([]byte("rubbish"), good...))
	f.Add(good[:len(good)-3])
	f.Fuzz(func(t *testing.T, b []byte) {
		refs, err := scanStream(bytes.NewReader(b), int64(len(b)), 0, nil, func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		var end int64
		for _, r := range refs {
			if r.off < end || r.off+cabi.ChunkHeader+int64(r.len) > int64(len(b)) {
				t.Fatalf("chunk at %d of %d bytes, after one that ends at %d, in %d bytes", r.off, r.len, end, len(b))
			}
			end = r.off + cabi.ChunkHeader + int64(r.len)
		}
	})
}

// readAll does with a trace what commands do.
func readAll(tb testing.TB, t *Trace) {
	if _, err := t.Verify(1, nil); err != nil {
		tb.Log(err)
	}
	if err := t.Dump(bufio.NewWriterSize(io.Discard, 1<<20), DumpOptions{}); err != nil {
		tb.Log(err)
	}
}

func FuzzPacked(f *testing.F) {
	dir := synth(f, 2, 400, true)
	file := filepath.Join(f.TempDir(), "p")
	if _, err := mustOpen(f, dir).Pack(file, 1, nil); err != nil {
		f.Fatal(err)
	}
	good, _ := os.ReadFile(file)
	f.Add(good, uint32(0), byte(0))
	f.Add(good, uint32(len(good)-4), byte(1))
	f.Add(good[:len(good)/2], uint32(30), byte(9))
	f.Fuzz(func(t *testing.T, b []byte, at uint32, x byte) {
		b = bytes.Clone(b)
		if len(b) > 0 {
			b[int(at)%len(b)] ^= x
		}
		tr := &Trace{Path: "p", Packed: true, procs: map[uint32]*Proc{}, byUID: map[uint32]*Thread{}, Meta: &Meta{}}
		p, refs, err := newPacked(bytes.NewReader(b), int64(len(b)), "p", tr)
		if err != nil {
			return
		}
		defer p.close()
		tr.src = p
		tr.build(order(refs))
		tr.survey(0)
		readAll(t, tr)
	})
}

// The same behind the checksums, which a fuzzer does not find its way through.
func FuzzFrame(f *testing.F) {
	enc, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	fr := newFrame()
	h := Header{Kind: cabi.ChunkEvents, UID: 1}
	h.Seal(samplePayload())
	fr.add(h, samplePayload())
	f.Add(fr.encode(enc, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		dec, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<22))
		defer dec.Close()
		if _, out, err := decodeEvents(dec, b, nil, 1<<20); len(out) > 1<<20+cabi.ChunkMax {
			t.Fatalf("%d bytes, %v", len(out), err)
		}
	})
}

// Columns as a hostile packer would make them.
func FuzzJoin(f *testing.F) {
	f.Add([]byte{1, 3, 1, 1, 1, 21, 3}, []byte{1, 32, 0}, []byte{1, 1, 1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, heads, ops, rest []byte) {
		u := &unframe{ctxs: map[ctxKey]uint32{}}
		for k := range u.cols {
			for range 3 {
				u.cols[k] = append(u.cols[k], small{b: rest})
			}
		}
		u.cols[colHeads][0].b, u.cols[colOps][0].b = heads, ops
		for range 100 {
			h, apart := u.head()
			if u.bad {
				return
			}
			if apart {
				u.join(nil, int(min(h.Len, 1<<16)))
			}
		}
	})
}

func FuzzIndex(f *testing.F) {
	f.Add(appendIndex(nil, []frameInfo{{16, 2, 100, 200, 5}}, []chunkRef{{kind: 1, uid: 3, len: 9}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		frames, refs, err := parseIndex(b)
		if err == nil {
			for _, r := range refs {
				_ = frames[r.off]
			}
		}
	})
}

func FuzzMeta(f *testing.F) {
	f.Add([]byte(`{"format":1,"command":["x"],"machine":{"cpus":2},"ticks_hz":5}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseMeta(b)
		if err == nil {
			_ = mustJSON(t, m)
		}
	})
}

func FuzzInputs(f *testing.F) {
	f.Add("stat", []byte{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})
	f.Add("addr", AppendS([]byte{5}, "\x1f\x90\x7f\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, helper string, b []byte) {
		row := &Row{Inputs: []string{helper}}
		fields, _ := ParseInput(nil, row, 0, b)
		var out []byte
		for i := range fields {
			out = appendField(out, &fields[i])
			out = appendFieldJSON(out, &fields[i])
		}
		for helper := range Inputs {
			row.Inputs[0] = helper
			ParseInput(nil, row, 0, b)
		}
	})
}

func FuzzVarint(f *testing.F) {
	f.Add([]byte{0xff}, uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, b []byte, v uint64) {
		c, s := newCursor(b), small{b: b}
		for !c.over() && !s.bad && len(s.b) > 0 {
			x, y := c.v(), s.v()
			if !c.over() && !s.bad && x != y {
				t.Fatalf("%x reads as %d and as %d", b, x, y)
			}
		}
	})
}

func FuzzClock(f *testing.F) {
	f.Add(uint64(1), uint64(2), uint64(3), uint64(4), uint64(5))
	f.Fuzz(func(t *testing.T, a, b, c, d, hz uint64) {
		Calibrate([]ClockPoint{{Ticks: a, Mono: b}, {Ticks: c, Mono: d}})
		k := NewClock(a, hz)
		k.Since(b)
		k.Ticks(int64(c))
		appendSeconds(nil, int64(d))
	})
}

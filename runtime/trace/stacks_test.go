package trace

import (
	"io"
	"path/filepath"
	"slices"
	"testing"

	"prophet/cabi"
)

// TestStacks: what the encoder writes of stacks the decoder reads, as a directory and packed, and across chunks.
func TestStacks(t *testing.T) {
	dir := synth(t, 1, 10, false)
	w, err := NewWriter(dir)
	if err != nil {
		t.Fatal(err)
	}
	stacks := [][]uint64{{0x401000, 0x402000}, {0x401000, 0x402000, 0x7f0000001000}, {}, {1<<64 - 1, 0}}
	e := NewEncoder(2, 0, synthStart, w.Put)
	e.Control(cabi.TagThread, AppendV(AppendV(AppendV(AppendV(AppendV(nil, 2), 1), 1), 102), cabi.ThreadCreated))
	now := uint64(synthStart)
	const events = 40_000
	for i := range events {
		now += 100
		e.Event(&Record{Call: 1, PC: 0x400100, Obj: Object{1, 1}, Begin: now, End: now})
		e.Stack(uint64(i%4), stacks[i%len(stacks)])
		if i%10 == 0 {
			now += 50
			e.Sample(now, uint64(i)*1000, stacks[i%len(stacks)])
		}
		if i%1000 == 0 {
			e.At(cabi.TagSignal, now, []byte{3, 1, 1, 1})
		}
	}
	if err := e.Flush(cabi.ChunkLast); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	packed := filepath.Join(t.TempDir(), "p")
	if _, err := mustOpen(t, dir).Pack(packed, 1, nil); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, packed} {
		tr := mustOpen(t, path)
		th := tr.ThreadByUID(2)
		if th.Chunks < 3 {
			t.Fatalf("%d chunks", th.Chunks)
		}
		it := tr.Iter(th)
		var r Record
		n, samples := 0, 0
		for {
			err := it.Next(&r)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			switch r.Tag {
			case cabi.TagStack:
				if !slices.Equal(r.Stack, stacks[n%len(stacks)]) || r.Nums[1] != uint64(n%4) || !r.Attached() {
					t.Fatalf("stack of event %d: %x, bits %d", n, r.Stack, r.Nums[1])
				}
				n++
			case cabi.TagSample:
				if !slices.Equal(r.Stack, stacks[(n-1)%len(stacks)]) || r.Nums[1] != uint64(n-1)*1000 || r.Attached() {
					t.Fatalf("sample after event %d: %x, %d ns", n-1, r.Stack, r.Nums[1])
				}
				samples++
			}
		}
		if n != events || samples != events/10 {
			t.Errorf("%d stacks, %d samples", n, samples)
		}
	}
}

// TestStacksDamaged: numbers and frames of stacks are checked.
func TestStacksDamaged(t *testing.T) {
	v := func(n ...uint64) (b []byte) {
		for _, x := range n {
			b = AppendV(b, x)
		}
		return b
	}
	long := []byte{}
	for range cabi.FramesMax + 1 {
		long = AppendZ(long, 1)
	}
	for what, b := range map[string][]byte{
		"a stack that is not defined":  v(cabi.TagStack, 0, 0),
		"a sample without stack":       v(cabi.TagSample, 0, 7, 0),
		"a number that is not next":    append(v(cabi.TagFrames, 1, 1), 3),
		"frames that end in a number":  append(v(cabi.TagFrames, 0, 1), 0),
		"too many frames":              append(v(cabi.TagFrames, 0, uint64(len(long))), long...),
		"frames longer than the chunk": v(cabi.TagFrames, 0, 1<<40),
		"of before a signal":           append(append(append(v(cabi.TagFrames, 0, 1), 3), v(cabi.TagSigRet, 0, 1)...), v(cabi.TagStack, 0, 0)...),
	} {
		var d Decoder
		var r Record
		d.Reset(b, 0)
		for d.Next(&r) {
		}
		if d.Err() == "" {
			t.Errorf("%s is taken", what)
		}
	}
}

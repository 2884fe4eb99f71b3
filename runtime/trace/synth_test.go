package trace

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"prophet/cabi"
)

// synth writes a trace of threads × events: locks like a benchmark's, or a mixture of calls.
func synth(tb testing.TB, threads, events int, mixed bool) string {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "t.prophet")
	if err := os.Mkdir(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	m := Meta{Format: cabi.FormatVersion, State: StateComplete, Run: "0123456789abcdef", Command: []string{"synth"}, TicksHz: 2_000_000_000}
	if err := WriteMeta(dir, &m); err != nil {
		tb.Fatal(err)
	}
	w, err := NewWriter(dir)
	if err != nil {
		tb.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for uid := uint32(1); uid <= uint32(threads); uid++ {
		synthThread(w, uid, events, mixed, rnd)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return dir
}

const synthStart = 1_000_000_000

func synthThread(w *Writer, uid uint32, events int, mixed bool, rnd *rand.Rand) {
	now := uint64(synthStart + 1000*uint64(uid))
	e := NewEncoder(uid, 0, now, w.Put)
	if uid == 1 {
		e.Control(cabi.TagClock, AppendV(AppendV(AppendV(nil, now), 5_000_000), 1_700_000_000_000_000_000))
		b := []byte{}
		for _, v := range []uint64{0, 0, 0, 0, 100, 1, cabi.ProcRoot} {
			b = AppendV(b, v)
		}
		e.Control(cabi.TagProc, AppendS(b, "/bin/synth\x00/tmp\x00synth\x00-x\x00"))
	}
	b := []byte{}
	how := uint64(cabi.ThreadMain)
	if uid > 1 {
		how = cabi.ThreadCreated
	}
	for _, v := range []uint64{uint64(uid), 1, uint64(max(uid, 2) - 2), 100 + uint64(uid), how} {
		b = AppendV(b, v)
	}
	e.Control(cabi.TagThread, b)
	if uid == 1 {
		b = AppendV(AppendV(AppendV(nil, 0x400000), 0x10000), 0x400000)
		e.Control(cabi.TagModule, AppendS(AppendS(b, "/bin/synth"), "\x01\x02"))
	}
	objects := map[uint64]uint64{}
	for i := range events {
		now += 20 + uint64(rnd.IntN(12))
		r := Record{Begin: now, End: now}
		switch {
		case !mixed || i%3 == 0:
			r.Call, r.PC = uint16(1+i%2), 0x401000+16*uint64(i%2)
			r.Obj = Object{1, 1 + uint64(i/40%5)}
			r.F[0] = int64(0x7f0000000000 + r.Obj.Num*64)
			if r.Call == 1 {
				objects[r.Obj.Num]++
				r.Seq = objects[r.Obj.Num]
			}
		case i%3 == 1:
			r.Call, r.PC, r.Obj = 200, 0x402000, Object{1, 100}
			r.Timed, r.F[0] = true, 4096
			r.Ret = int64(rnd.IntN(4096))
			now += uint64(rnd.IntN(20000))
			r.End = now
		default:
			r.Call, r.PC = 800, 0x403000
			r.F[0] = int64(now / 2)
		}
		e.Event(&r)
		if r.Call == 200 && i%9 == 1 {
			e.Control(cabi.TagHash, []byte("12345678"))
		}
		if mixed && i%1000 == 999 {
			e.At(cabi.TagCPU, now, AppendV(nil, now/2))
		}
	}
	e.Flush(cabi.ChunkLast)
}

func mustOpen(tb testing.TB, path string) *Trace {
	tb.Helper()
	t, err := Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { t.Close() })
	return t
}

func mustJSON(tb testing.TB, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

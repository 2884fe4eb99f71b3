package trace

import (
	"bufio"
	"io"
	"path/filepath"
	"testing"
)

const benchEvents = 2_000_000

func perEvent(b *testing.B, events uint64) {
	b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
}

func BenchmarkVerify(b *testing.B) {
	for _, kind := range []string{"lock", "mixed"} {
		b.Run(kind, func(b *testing.B) {
			dir := synth(b, 1, benchEvents, kind == "mixed")
			for b.Loop() {
				t := mustOpen(b, dir)
				res, err := t.Verify(1, nil)
				if err != nil || res.Damaged != 0 || res.Events != benchEvents {
					b.Fatal(res, err)
				}
			}
			perEvent(b, benchEvents)
		})
	}
}

func BenchmarkDump(b *testing.B) {
	for _, kind := range []string{"lock", "mixed"} {
		b.Run(kind, func(b *testing.B) {
			dir := synth(b, 4, benchEvents/4, kind == "mixed")
			for b.Loop() {
				t := mustOpen(b, dir)
				w := bufio.NewWriterSize(io.Discard, 1<<20)
				if err := t.Dump(w, DumpOptions{}); err != nil {
					b.Fatal(err)
				}
			}
			perEvent(b, benchEvents)
		})
	}
}

func BenchmarkPack(b *testing.B) {
	for _, kind := range []string{"lock", "mixed"} {
		b.Run(kind, func(b *testing.B) {
			dir := synth(b, 2, benchEvents/2, kind == "mixed")
			t := mustOpen(b, dir)
			out := filepath.Join(b.TempDir(), "p")
			var res *PackResult
			for b.Loop() {
				var err error
				if res, err = t.Pack(out, 1, nil); err != nil {
					b.Fatal(err)
				}
			}
			perEvent(b, benchEvents)
			b.ReportMetric(float64(t.Threads[0].Bytes+t.Threads[1].Bytes)/benchEvents, "B/event")
			b.ReportMetric(float64(res.Bytes)/benchEvents, "packedB/event")
		})
	}
}

func BenchmarkVerifyPacked(b *testing.B) {
	dir := synth(b, 2, benchEvents/2, true)
	out := filepath.Join(b.TempDir(), "p")
	if _, err := mustOpen(b, dir).Pack(out, 2, nil); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		t := mustOpen(b, out)
		res, err := t.Verify(1, nil)
		if err != nil || res.Damaged != 0 || res.Events != benchEvents {
			b.Fatal(res, err)
		}
	}
	perEvent(b, benchEvents)
}

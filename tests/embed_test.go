package tests

import (
	"errors"
	"io"
	"path/filepath"
	"testing"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// TestEmbed: marks are records, nothing happens without the library, and Go sleeps until a Go-backed call.
func TestEmbed(t *testing.T) {
	bin := compile(t, filepath.Join(top, "tests", "progs", "embed.c"))
	bare := Cmd{Argv: []string{bin}}.Bare(t)
	compare(t, "bare output", "recording 0\nthreads 1\n", bare.Stdout)
	rec := Cmd{Argv: []string{bin}}.Recorded(t)
	compare(t, "recorded output", "recording 1\nthreads 1\ngo found, awake 1, same 1\n", rec.Stdout)
	tr, err := trace.Open(rec.Trace)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	var marks []uint64
	it := tr.Iter(tr.Threads[0])
	for {
		var r trace.Record
		if err := it.Next(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if r.Tag == cabi.TagMark {
			marks = append(marks, r.Nums[0])
		}
	}
	want := []uint64{cabi.MarkBegin, cabi.MarkPoint, cabi.MarkEnd}
	if len(marks) != len(want) || marks[0] != want[0] || marks[1] != want[1] || marks[2] != want[2] {
		t.Errorf("marks are %v, want %v", marks, want)
	}
}

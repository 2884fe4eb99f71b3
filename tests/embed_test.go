package tests

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// TestEmbedSteer: a program starts and stops its own recording, the trace says when, and without a recording it is told.
func TestEmbedSteer(t *testing.T) {
	bin := compile(t, filepath.Join(top, "tests", "progs", "steer.c"))
	compare(t, "bare", "-38 -38 -38 -38\nrecording 0, abi 0\n", Cmd{Argv: []string{bin}}.Bare(t).Stdout)
	for _, options := range []string{"", "serial"} {
		rec := Cmd{Argv: []string{bin}, Options: options}.Recorded(t)
		compare(t, "recorded", "1 0 1 0\nrecording 1, abi 1\n", rec.Stdout)
		if got := levels(t, rec.Trace); len(got) != 2 || got[0] != cabi.LevelOff || got[1] != cabi.LevelFull {
			t.Errorf("levels are %v, want off and full", got)
		}
		calls := strings.Join(dumped(t, rec.Trace), "\n")
		if strings.Contains(calls, "call=getppid ") || !strings.Contains(calls, "call=getpgrp ") {
			t.Errorf("getppid was recorded although recording was off, or getpgrp was not: %s", clip(calls))
		}
	}
}

// TestEmbedLinked: a program that links the library is not recorded for that, unless somebody asks for it.
func TestEmbedLinked(t *testing.T) {
	lib := built(t, "libprophet.so")
	bin := filepath.Join(t.TempDir(), "linked")
	src := filepath.Join(top, "tests", "progs", "steer.c")
	if out, err := exec.Command("gcc", src, "-o", bin, "-Wl,--no-as-needed", "-L"+filepath.Dir(lib), "-lprophet", "-Wl,-rpath,"+filepath.Dir(lib)).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	trace := filepath.Join(t.TempDir(), "run.prophet")
	compare(t, "linked", "-95 -95 -95 -95\nrecording 0, abi 1\n", Cmd{Argv: []string{bin}, Env: []string{"PROPHET_TRACE=" + trace}}.Bare(t).Stdout)
	if _, err := os.Stat(trace); err == nil {
		t.Error("a program that only links the library left a trace")
	}
	compare(t, "linked and preloaded", "1 0 1 0\nrecording 1, abi 1\n", Cmd{Argv: []string{bin}}.Recorded(t).Stdout)
}

// TestEmbedAsleep: reading traces and re-executing them starts no thread; asking Go for its version does.
func TestEmbedAsleep(t *testing.T) {
	lib := built(t, "libprophet.so")
	bin := filepath.Join(t.TempDir(), "asleep")
	src := filepath.Join(top, "tests", "progs", "asleep.c")
	if out, err := exec.Command("gcc", "-Wall", src, "-o", bin, "-L"+filepath.Dir(lib), "-lprophet", "-Wl,-rpath,"+filepath.Dir(lib)).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rec := Cmd{Argv: []string{"ls", "-l", "/"}}.Recorded(t)
	r := Cmd{Argv: []string{bin, rec.Trace, stub(t, "exit 5")}}.Bare(t)
	compare(t, "what it printed", "read, events, threads 1\nended 1, status 5, threads 1\n"+cabi.Version+", threads 1\ngo found, awake 1\n", r.Stdout)
	compare(t, "status", "exit status 0", r.Status)
}

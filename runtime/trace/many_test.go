package trace

import (
	"bufio"
	"io"
	"runtime"
	"testing"
)

// Ten thousand threads at once are merged in bounded memory.
func TestManyThreads(t *testing.T) {
	const threads, each = 10_000, 100
	tr := mustOpen(t, synth(t, threads, each, true))
	lines := &lineCount{}
	if err := tr.Dump(bufio.NewWriterSize(lines, 1<<20), DumpOptions{Classes: ^uint32(0)}); err != nil {
		t.Fatal(err)
	}
	if lines.n != threads*each {
		t.Errorf("%d lines of %d events", lines.n, threads*each)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.Sys > 1<<30 {
		t.Errorf("%d MiB were used", m.Sys>>20)
	}
}

type lineCount struct{ n int }

func (l *lineCount) Write(b []byte) (int, error) {
	for _, c := range b {
		if c == '\n' {
			l.n++
		}
	}
	return len(b), nil
}

var _ io.Writer = (*lineCount)(nil)

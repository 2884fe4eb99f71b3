package tests

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"prophet/cabi"
	"prophet/runtime/trace"
)

const drawing = `#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *draws(void *p) { for (int i = 0; i < 50000; i++) random(); return p; }
int main(int argc, char **argv)
{
	pthread_t t[4];
	if (argc > 1) {
		for (int i = 0; i < 200000; i++)
			printf("%ld\n", random());
		return 0;
	}
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], 0, draws, 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], 0);
	return 0;
}
`

// TestDraws lets four threads draw from the process's generator at once: in the order that the trace tells, their
// values must be those that one thread would have drawn.
func TestDraws(t *testing.T) {
	source := filepath.Join(t.TempDir(), "draws.c")
	if err := os.WriteFile(source, []byte(drawing), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := compile(t, source)
	alone := strings.Fields(Cmd{Argv: []string{bin, "alone"}}.Bare(t).Stdout)
	tr, err := trace.Open(Cmd{Argv: []string{bin}}.Recorded(t).Trace)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	drawn := make([]int64, len(alone))
	n := 0
	for _, th := range tr.Threads {
		it := tr.Iter(th)
		var r trace.Record
		for {
			err := it.Next(&r)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if r.Tag != trace.TagEvent || cabi.ByID(r.Call).Name != "random" {
				continue
			}
			if r.Seq == 0 || r.Seq > uint64(len(drawn)) || drawn[r.Seq-1] != 0 {
				t.Fatalf("place %d is out of range or taken twice", r.Seq)
			}
			drawn[r.Seq-1] = r.Ret
			n++
		}
	}
	if n != len(alone) {
		t.Fatalf("%d draws in the trace, of %d", n, len(alone))
	}
	for i, want := range alone {
		if got := drawn[i]; want != strconv.FormatInt(got, 10) {
			t.Fatalf("draw %d is %d in the trace, the generator gave %s", i+1, got, want)
		}
	}
}

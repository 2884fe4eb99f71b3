package tests

import (
	"os"
	"path/filepath"
	"testing"

	"prophet/cabi"
	"prophet/runtime/recovery"
	"prophet/runtime/trace"
)

// What the recorder takes to keep a file, and to hash and keep data, is told as its own: it is not the program's demand.
func TestOursIsTold(t *testing.T) {
	const block = 1 << 20
	rec := Cmd{
		Argv: []string{"dd", "if=from", "of=to", "bs=1M", "count=8", "conv=notrunc", "status=none"},
		Setup: func(dir string) error {
			if err := os.WriteFile(filepath.Join(dir, "from"), make([]byte, 8*block), 0o600); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, "to"), make([]byte, 8*block), 0o600)
		},
	}.Recorded(t)
	if rec.Status != "exit status 0" {
		t.Fatalf("%s; %s", rec.Status, rec.Stderr)
	}
	tr, _, _, err := recovery.Open(rec.Trace, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	told := map[string]int{}
	for _, th := range tr.Threads {
		last, end := "", uint64(0)
		it := tr.Iter(th)
		var r trace.Record
		for it.Next(&r) == nil {
			switch r.Tag {
			case trace.TagEvent:
				last, end = "", r.End
				if r.Obj.None() || r.Ret != block {
					if r.Row.Name == "open" || r.Row.Name == "open64" || r.Row.Name == "openat" {
						last = "open"
					}
					continue
				}
				last = r.Row.Name
			case cabi.TagOurs:
				if r.Nums[0] == 0 || r.Nums[0] > r.Begin-end {
					t.Errorf("after %q %d of %d ticks are the recorder's", last, r.Nums[0], r.Begin-end)
				}
				told[last]++
			}
		}
	}
	if told["read"] != 8 || told["write"] != 8 || told["open"] < 1 {
		t.Errorf("told of reads, writes and of what opens: %v", told)
	}
}

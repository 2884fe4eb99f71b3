package tests

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prophet/runtime/target"
)

// The real replayd as a target, through each kind that needs nobody else: what it says of itself, a file there and back, and
// nothing left. Faults and ssh are package replayd/far's tests.
func TestTarget(t *testing.T) {
	replayd := built(t, "replayd")
	t.Setenv("PROPHET_REPLAYD", replayd)
	for _, form := range []string{"local,cpus=1,dir=HERE", "exec:TMPDIR=HERE sh", "exec:" + replayd + " target --dir HERE --cpus 1"} {
		t.Run(form[:5], func(t *testing.T) {
			dir := t.TempDir()
			s, err := target.Parse(strings.ReplaceAll(form, "HERE", dir))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			far, err := target.Open(ctx, s)
			if err != nil {
				t.Fatal(err)
			}
			defer far.Close()
			info, err := far.Hello(ctx, true, nil)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(form, "cpus") && (info.CPUs != 1 || info.Machine.CPUs != 1) {
				t.Errorf("%d and %d CPUs", info.CPUs, info.Machine.CPUs)
			}
			if info.Machine.Disk == nil || !strings.HasPrefix(info.Machine.Disk.Dir, dir) {
				t.Errorf("its disk: %+v", info.Machine.Disk)
			}
			if err := far.Put(ctx, "x", bytes.NewReader([]byte("hello"))); err != nil {
				t.Fatal(err)
			}
			back := filepath.Join(t.TempDir(), "x")
			if err := far.Get(ctx, "x", back); err != nil {
				t.Fatal(err)
			}
			if b, _ := os.ReadFile(back); string(b) != "hello" {
				t.Errorf("%q came back", b)
			}
			if err := far.Close(); err != nil {
				t.Error(err)
			}
			if list, _ := os.ReadDir(dir); len(list) != 0 {
				t.Errorf("it left %v", list)
			}
		})
	}
}

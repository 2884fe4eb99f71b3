package tests

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// arm64Programs are those of tests/calls that user-mode emulation itself runs right.
var arm64Programs = []string{"mutex", "clock", "read", "write"}

// TestArm64 records programs for the clouds' other CPU under user-mode emulation and reads their traces here.
func TestArm64(t *testing.T) {
	lib := built(t, "arm64/libprophet.so")
	for _, name := range arm64Programs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bin := filepath.Join(t.TempDir(), name)
			cc := exec.Command("aarch64-linux-gnu-gcc", "-O1", "-D_GNU_SOURCE", "-pthread", "-w", "-o", bin, filepath.Join(top, "tests", "calls", name+".c"))
			if out, err := cc.CombinedOutput(); err != nil {
				t.Fatalf("%v (are gcc-aarch64-linux-gnu and libc6-dev-arm64-cross installed?)\n%s", err, out)
			}
			trace := filepath.Join(t.TempDir(), "run.prophet")
			emulate := []string{"qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"}
			bare := Cmd{Argv: append(emulate, bin)}.Bare(t)
			rec := Cmd{Argv: append(emulate, "-E", "LD_PRELOAD="+lib, "-E", "PROPHET_TRACE="+trace, bin)}.Bare(t)
			compare(t, "exit status", bare.Status, rec.Status)
			compare(t, "standard output", bare.Stdout, rec.Stdout)
			compare(t, "standard error", bare.Stderr, rec.Stderr)
			if calls := recordedCalls(t, trace); len(calls) == 0 {
				t.Error("nothing was recorded")
			}
		})
	}
}

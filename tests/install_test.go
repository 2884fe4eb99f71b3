package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"prophet/cabi"
)

// TestInstall: what is installed works from where it is, a host is built as prophet.pc says, and uninstall leaves nothing.
func TestInstall(t *testing.T) {
	built(t, "libprophet.so")
	dir := t.TempDir()
	mk := func(target string) {
		cmd := exec.Command("make", "-s", target, "PREFIX="+dir)
		cmd.Dir = top
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("make %s: %v\n%s", target, err, out)
		}
	}
	mk("install")
	pc, err := os.ReadFile(filepath.Join(dir, "lib", "pkgconfig", "prophet.pc"))
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for line := range strings.Lines(string(pc)) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			said[k] = v
		} else if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			said[k] = v
		}
	}
	value := func(s string) []string {
		for range 3 {
			for k, v := range said {
				s = strings.ReplaceAll(s, "${"+k+"}", v)
			}
		}
		return strings.Fields(s)
	}
	if said["Version"] != cabi.Version {
		t.Errorf("prophet.pc is of version %q, not %s", said["Version"], cabi.Version)
	}
	text, err := os.ReadFile(filepath.Join(top, "tests", "embed", "read.c"))
	if err != nil {
		t.Fatal(err)
	}
	src, bin := filepath.Join(t.TempDir(), "read.c"), filepath.Join(t.TempDir(), "read")
	if err := os.WriteFile(src, []byte(strings.Replace(string(text), `"../../cabi/prophet.h"`, "<prophet.h>", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append(value(said["Cflags"]), src, "-o", bin)
	if out, err := exec.Command("gcc", append(args, value(said["Libs"])...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	trace := filepath.Join(t.TempDir(), "run.prophet")
	if out, err := exec.Command(filepath.Join(dir, "bin", "prophet"), "record", "-q", "-o", trace, "--", "ls", "/").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(filepath.Join(dir, "bin", "prophet"), "pack", "-o", trace+".packed", trace).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(bin, trace+".packed") // the library finds ../bin/prophet
	cmd.Env = []string{"LD_LIBRARY_PATH=" + filepath.Join(dir, "lib")}
	if out, err := cmd.Output(); err != nil || strings.Count(string(out), "\n") < 10 {
		t.Errorf("%v: %s", err, out)
	}
	mk("uninstall")
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			t.Errorf("uninstall left %s", path)
		}
		return nil
	})
}

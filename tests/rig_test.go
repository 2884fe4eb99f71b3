package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"prophet/cabi/client"
	"prophet/cabi/client/rig"
)

// double stands for a test that may fail.
type double struct {
	testing.TB
	dir    string
	failed bool
	log    strings.Builder
	clean  []func()
}

func (d *double) Name() string                 { return "TestServer/a b" }
func (d *double) Helper()                      {}
func (d *double) TempDir() string              { return d.dir }
func (d *double) Failed() bool                 { return d.failed }
func (d *double) Cleanup(f func())             { d.clean = append(d.clean, f) }
func (d *double) Logf(format string, a ...any) { fmt.Fprintf(&d.log, format+"\n", a...) }
func (d *double) end() {
	for _, f := range d.clean {
		f()
	}
	os.RemoveAll(d.dir)
}

// TestRig: a recording is removed with a test that passes, kept with one that fails, and can be re-executed both before
// and after.
func TestRig(t *testing.T) {
	t.Setenv("PROPHET_LIB", built(t, "libprophet.so"))
	built(t, "replayd")
	bin := compile(t, filepath.Join(top, "tests", "embed", "race.c"))
	for _, fails := range []bool{false, true} {
		work, kept := t.TempDir(), filepath.Join(t.TempDir(), "kept")
		d := &double{TB: t, dir: filepath.Join(work, "test")}
		os.Mkdir(d.dir, 0o700)
		cmd := exec.Command(bin, "4", "200")
		cmd.Dir = work
		var out strings.Builder
		cmd.Stdout = &out
		r := rig.Run(d, cmd, rig.KeepIn(kept), rig.With("inputs=full"))
		if r.Err != nil || r.Trace == "" {
			t.Fatalf("%v, trace %q\n%s", r.Err, r.Trace, d.log.String())
		}
		if again := r.Reexecute(t); !again.Identical || again.Status != 0 || again.Threads < 2 || again.Events < 100 {
			t.Errorf("re-executed: %+v", again)
		}
		d.failed = fails
		d.end()
		found, _ := filepath.Glob(filepath.Join(kept, "*"))
		if !fails {
			if len(found) != 0 {
				t.Errorf("a test that passed left %v", found)
			}
			continue
		}
		if len(found) != 1 || filepath.Base(found[0]) != "TestServer_a_b.prophet" || !strings.Contains(d.log.String(), found[0]) {
			t.Fatalf("a test that failed left %v and said %s", found, d.log.String())
		}
		again, err := os.Create(filepath.Join(work, "out"))
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		res, err := client.Reexecute(t.Context(), found[0], client.ReexecOptions{Dir: work, Stdout: again})
		if err != nil || !res.Identical {
			t.Errorf("what was kept: %v, %+v", err, res)
		}
		text, _ := os.ReadFile(again.Name())
		compare(t, "output of the re-execution", out.String(), string(text))
	}
}

// TestRigUnrecorded: a program that cannot be recorded runs, and the log says so.
func TestRigUnrecorded(t *testing.T) {
	t.Setenv("PROPHET_LIB", built(t, "libprophet.so"))
	d := &double{TB: t, dir: t.TempDir()}
	r := rig.Run(d, exec.Command(built(t, "prophet"), "--version")) // static
	if r.Err != nil || r.Trace != "" || !strings.Contains(d.log.String(), "was not recorded") {
		t.Errorf("%v, trace %q, said %s", r.Err, r.Trace, d.log.String())
	}
	r = rig.Run(d, exec.Command("false"))
	if r.Err == nil || r.Err.Error() != "exit status 1" || r.Trace == "" {
		t.Errorf("false: %v, trace %q", r.Err, r.Trace)
	}
}

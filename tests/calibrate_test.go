package tests

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"prophet/runtime/calibrate"
)

func machineOf(t *testing.T, out []byte) *calibrate.Machine {
	t.Helper()
	m, err := calibrate.Parse(out)
	if err != nil {
		t.Fatalf("%v: %s", err, clip(string(out)))
	}
	return m
}

// Two calibrations of one machine agree, as far as a test may ask while others run: how close they lie on an idle machine is
// measured in bench (calibrate/apart).
func TestCalibrate(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "here.json")
	prophet := built(t, "prophet")
	out, err := exec.Command(prophet, "calibrate", "--dir", dir, "-o", file, "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	m := machineOf(t, out)
	saved, err := os.ReadFile(file)
	if err != nil || string(saved) != string(out) {
		t.Errorf("-o wrote something else: %v", err)
	}
	if st, _ := os.Stat(file); st.Mode().Perm() != 0o600 {
		t.Errorf("its file has mode %v", st.Mode())
	}
	for _, name := range calibrate.Costs {
		if f := m.Costs[name]; f.Median <= 0 || f.Runs < 5 {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if m.Disk == nil || len(m.Disk.Calls) != len(calibrate.Calls) {
		t.Fatalf("disk: %+v", m.Disk)
	}
	for _, name := range calibrate.Calls {
		if f := m.Disk.Calls[name]; f.Median <= 0 || f.Runs < 5 {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if len(m.Loop.Errors) < 3 {
		t.Errorf("loop: %+v", m.Loop)
	}
	if list, _ := os.ReadDir(dir); len(list) != 0 {
		t.Errorf("it left %v", list)
	}

	if out, err = exec.Command("taskset", "-c", "0", prophet, "calibrate", "--json").Output(); err != nil {
		t.Fatal(err)
	}
	again := machineOf(t, out)
	if again.CPUs != 1 || again.Disk != nil {
		t.Errorf("on one CPU and without a disk: %d CPUs, disk %+v", again.CPUs, again.Disk)
	}
	if f := calibrate.Scale(m, again, nil).Factor; f < 0.6 || f > 1.6 { // another processor, or another unit
		t.Errorf("a machine is %.2f times itself", f)
	}
	text, err := exec.Command(prophet, "calibrate", "--against", file, "--mix", "float=2,integer").Output()
	for _, want := range []string{"machine ", "integer", "of home's", "factor ", "its mean error"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

func TestCalibrateRefused(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte(`{"version":1,"cpus":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--dir", "/nonexistent"}, 1, "/nonexistent"},
		{[]string{"--dir", "/proc"}, 1, "/proc"},
		{[]string{"--against", "/nonexistent"}, 2, "there is no calibration"},
		{[]string{"--against", bad}, 1, "the speed of integer is missing"},
		{[]string{"more"}, 2, "wants no arguments"},
		{[]string{"--mix", "gpu", "--against", bad}, 2, "no kind of work"},
		{[]string{"--mix", "float"}, 2, "say --against"},
	} {
		out, err := exec.Command(built(t, "prophet"), append([]string{"calibrate"}, c.args...)...).CombinedOutput()
		status := 0
		if e, ok := err.(*exec.ExitError); ok {
			status = e.ExitCode()
		}
		if status != c.status || !strings.Contains(string(out), c.says) {
			t.Errorf("%v: status %d: %s", c.args, status, out)
		}
	}
}

// Interrupted, it stops at once and leaves nothing.
func TestCalibrateInterrupted(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(built(t, "prophet"), "calibrate", "--dir", dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(700 * time.Millisecond)
	cmd.Process.Signal(syscall.SIGINT)
	begin := time.Now()
	cmd.Wait()
	if cmd.ProcessState.ExitCode() != 1 || time.Since(begin) > 5*time.Second {
		t.Errorf("%v after %v", cmd.ProcessState, time.Since(begin))
	}
	if list, _ := os.ReadDir(dir); len(list) != 0 {
		t.Errorf("it left %v", list)
	}
}

// The other architecture does the same work: each kernel's sum is checked before it is measured.
func TestCalibrateArm64(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "qemu-aarch64-static", built(t, "arm64/replayd"), "calibrate").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	var v struct{ Machine json.RawMessage }
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &v); err != nil {
		t.Fatal(err)
	}
	if m := machineOf(t, v.Machine); m.Arch != "arm64" {
		t.Errorf("%+v", m)
	}
}

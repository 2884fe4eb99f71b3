package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"prophet/runtime/sense"
)

// sensed is a trace of a program of several threads that use some CPU time.
func sensed(t *testing.T) string {
	t.Helper()
	r := Cmd{Argv: []string{"pigz", "-p2", "-c", "data"}, Setup: func(dir string) error {
		var b []byte
		for i := range 400000 {
			b = strconv.AppendInt(b, int64(i*i%10007), 10)
		}
		return os.WriteFile(filepath.Join(dir, "data"), b, 0o600)
	}}.Recorded(t)
	if r.Status != "exit status 0" {
		t.Fatalf("%s: %s", r.Status, r.Stderr)
	}
	return r.Trace
}

// What prophet sense learns lies in the trace's directory, which stays a good trace. Whether the figures are right is
// measured, not tested: they depend on who else is on the machine.
func TestSense(t *testing.T) {
	trace := sensed(t)
	prophet := built(t, "prophet")
	out, err := exec.Command(prophet, "sense", "-n", "2", trace).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s, err := sense.Load(trace)
	if err != nil || s == nil {
		t.Fatal(s, err)
	}
	if s.Alone <= 0 || s.Neighbour == nil || s.Neighbour.Pairs != 2 {
		t.Errorf("%+v", s)
	}
	for _, want := range []string{"alone ", "neighbour ", "loop "} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in %s", want, out)
		}
	}
	if out, err := exec.Command(prophet, "verify", trace).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	packed := filepath.Join(t.TempDir(), "packed")
	if out, err := exec.Command(prophet, "pack", "-o", packed, trace).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command(prophet, "sense", packed).CombinedOutput(); err.(*exec.ExitError).ExitCode() != 2 || !strings.Contains(string(out), "say with -o") {
		t.Errorf("packed: %v: %s", err, out)
	}
	if out, err := exec.Command(prophet, "sense", "-n", "1", "-o", packed+".json", packed).CombinedOutput(); err != nil {
		t.Errorf("packed: %v: %s", err, out)
	}
}

func TestSenseRefused(t *testing.T) {
	trace := sensed(t)
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{nil, 2, "wants a trace"},
		{[]string{"/nonexistent"}, 2, "there is no trace"},
		{[]string{"-n", "0", trace}, 2, "--pairs wants"},
		{[]string{trace, "--", "/nonexistent"}, 1, "/nonexistent"},
		{[]string{trace, "--", "/bin/ls", "/"}, 1, "re-executing"},
		{[]string{trace, "pigz"}, 2, "wants a trace"},
	} {
		out, err := exec.Command(built(t, "prophet"), append([]string{"sense"}, c.args...)...).CombinedOutput()
		e, _ := err.(*exec.ExitError)
		if e == nil || e.ExitCode() != c.status || !strings.Contains(string(out), c.says) {
			t.Errorf("%q: %v: %s", c.args, err, out)
		}
	}
	if s, err := sense.Load(trace); s != nil || err != nil {
		t.Errorf("something was learnt: %v %v", s, err)
	}
}

// Interrupted, it leaves neither a result nor a neighbour.
func TestSenseInterrupted(t *testing.T) {
	trace := sensed(t)
	cmd := exec.Command(built(t, "prophet"), "sense", "-n", "100", trace)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	cmd.Process.Signal(syscall.SIGINT)
	cmd.Wait()
	if cmd.ProcessState.ExitCode() != 1 {
		t.Error(cmd.ProcessState)
	}
	if _, err := os.Stat(filepath.Join(trace, sense.FileName)); err == nil {
		t.Error("there is a result")
	}
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, p := range all {
		b, _ := os.ReadFile(p)
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(p), "cmdline"))
		if strings.HasSuffix(string(line), "\x00neighbour\x00") && strings.HasPrefix(string(line), built(t, "replayd")) {
			t.Errorf("a neighbour is left: %s", b)
		}
	}
}

package tests

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// asked counts the system calls of a run under strace.
func asked(t *testing.T, env []string, argv ...string) int {
	t.Helper()
	out := filepath.Join(t.TempDir(), "calls")
	// What whoever runs the tests has open is not handed on: each descriptor that a program is given costs a few calls more.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	args := []string{"-f", "-o", out}
	for _, e := range env {
		args = append(args, "-E", e)
	}
	if msg, err := exec.Command("strace", append(args, argv...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(b)) {
		if _, call, ok := strings.Cut(line, " "); ok && strings.Contains(call, "(") && !strings.Contains(call, " resumed>") {
			n++
		}
	}
	return n
}

// What a thread, a fork and a program's start ask the kernel for, beyond what they ask bare. A figure that goes up is a
// price that somebody pays at each; one that goes down is lowered here.
func TestSystemCallsAdded(t *testing.T) {
	t.Parallel()
	need(t, "strace")
	for _, c := range []struct {
		what string
		most float64
	}{{"thread", 16}, {"fork", 21}} {
		bin := prog(t, "births")
		each := func(env ...string) float64 {
			few, many := asked(t, env, bin, c.what, "2"), asked(t, env, bin, c.what, "22")
			return float64(many-few) / 20
		}
		added := c.most + 1
		for try := 0; try < 12 && added > c.most; try++ { // who is preempted asks more often: what its CPU time is, and every 50 ms its memory
			added = each("LD_PRELOAD="+built(t, "libprophet.so"), "PROPHET_OPTIONS=stacks=0", "PROPHET_TRACE="+filepath.Join(t.TempDir(), "run.prophet")) - each()
			t.Logf("a %s: %.1f more", c.what, added)
		}
		if added > c.most {
			t.Errorf("a %s asks the kernel %.1f times more than bare, at most %.0f", c.what, added, c.most)
		}
	}
	const most = 130
	added := most + 1
	for try := 0; try < 12 && added > most; try++ { // one that a busy machine lets come to 10 ms is known to others by then, which takes ten calls
		env := []string{"LD_PRELOAD=" + built(t, "libprophet.so"), "PROPHET_OPTIONS=", fmt.Sprintf("PROPHET_TRACE=%s/run.prophet", t.TempDir())}
		added = asked(t, env, "/bin/true") - asked(t, nil, "/bin/true")
		t.Logf("/bin/true: %d more", added)
	}
	if added > most {
		t.Errorf("/bin/true asks the kernel %d times more than bare, at most %d", added, most)
	}
}

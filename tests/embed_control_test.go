package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"prophet/cabi/client"
)

// TestEmbedReexecControl: a host steers a re-execution through the C ABI and the real daemon, in Python and in Go.
func TestEmbedReexecControl(t *testing.T) {
	t.Setenv("PROPHET_LIB", built(t, "libprophet.so"))
	t.Setenv("PROPHET_REPLAYD", built(t, "replayd"))
	rec := recordedAgain(t, 2, 500)
	out, err := exec.Command("python3", filepath.Join(top, "tests", "embed", "steer.py"), rec.Trace, "p0/2", "100").CombinedOutput()
	want := `^p0 2
p0/2 0
p0 \d
p0/2 100
thread p0/2 has had 100 events already
` + regexp.QuoteMeta(rec.Stdout) + `replayd: identical: \d+ events, 3 threads, 1 processes
status 3 identical 1
$`
	if err != nil || !regexp.MustCompile(want).Match(out) {
		t.Errorf("%v: %s\nwant %s", err, out, want)
	}

	text, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	x, err := client.StartReexec(rec.Trace, client.ReexecOptions{Control: true, Flags: []string{"--pause"}, Stdout: text})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	var answer struct {
		Status struct {
			Paused  bool
			Threads []struct {
				Name  string
				Event int
			}
		}
	}
	// The thread that marks is stepped: the other one may have come to its end.
	steps := []map[string]any{{"do": "run-to", "mark": "half-way"}, {"do": "step", "thread": "p0/1"}, {"do": "break", "call": "nanosleep"}, {"do": "continue"},
		{"do": "break", "call": "nanosleep", "clear": true}}
	for _, ask := range steps {
		if err := x.Ask(t.Context(), ask, nil); err != nil {
			t.Fatalf("%v: %v", ask, err)
		}
	}
	if err := x.Ask(t.Context(), map[string]string{"do": "status"}, &answer); err != nil || !answer.Status.Paused || len(answer.Status.Threads) != 3 || answer.Status.Threads[1].Event < 500 {
		t.Errorf("%+v %v", answer, err)
	}
	if err := x.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := x.Pause(t.Context()); err == nil { // it may have ended by then
		if err := x.Resume(t.Context()); err != nil {
			t.Error(err)
		}
	}
	res, err := x.Wait(t.Context())
	if err != nil || !res.Identical || res.Status != 3 || res.Threads != 3 {
		t.Errorf("%+v %v", res, err)
	}
	if b, _ := os.ReadFile(text.Name()); string(b) != rec.Stdout {
		t.Errorf("it printed %q", b)
	}
}

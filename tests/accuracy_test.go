package tests

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The short version of `make accuracy`: it is interrupted, leaves nothing behind, goes on where it was, and what it has measured is
// of the size that it should be; how good it is, a busy machine cannot say.
func TestAccuracy(t *testing.T) {
	exe, out, work := filepath.Join(t.TempDir(), "accuracy"), t.TempDir(), t.TempDir()
	if b, err := exec.Command("go", "build", "-o", exe, "../bench/accuracy").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, b)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	run := func(stop *regexp.Regexp) (string, error) {
		cmd := exec.CommandContext(ctx, exe, "--short", "--turns", "1", "--out", out, "--build", filepath.Dir(built(t, "prophet")))
		cmd.Dir = ".."
		cmd.Env = append(os.Environ(), "TMPDIR="+work)
		said := &watcher{stop: stop}
		cmd.Stderr = said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said.do = func() { cmd.Process.Signal(syscall.SIGTERM) }
		err := cmd.Wait()
		mounts, _ := os.ReadFile("/proc/mounts")
		if strings.Contains(string(mounts), work) {
			t.Errorf("left is a mount:\n%s", mounts)
		}
		left, _ := os.ReadDir(work)
		memory, _ := filepath.Glob("/dev/shm/prophet-accuracy-" + strconv.Itoa(cmd.Process.Pid) + "-*")
		if len(left)+len(memory) > 0 {
			t.Errorf("left are %v %v", left, memory)
		}
		return said.said.String(), err
	}
	said, err := run(regexp.MustCompile(`(?m)^\[2/`))
	if err == nil || !strings.Contains(said, "interrupted") {
		t.Fatalf("%v: %s", err, said)
	}
	all, _ := strconv.Atoi(string(regexp.MustCompile(`^\[1/(\d+)\]`).FindSubmatch([]byte(said))[1]))
	said, err = run(nil)
	if err != nil || !strings.HasPrefix(said, "[1/"+strconv.Itoa(all-1)+"]") {
		t.Fatalf("%v, of %d pairs: %s", err, all, said)
	}
	t.Log(said)
	var kept struct {
		Whole bool `json:"whole"`
		Pairs []struct {
			Program string    `json:"program"`
			Target  string    `json:"target"`
			Real    []float64 `json:"real"`
			Issued  []float64 `json:"issued"`
			Order   []float64 `json:"order"`
		} `json:"pairs"`
	}
	b, err := os.ReadFile(filepath.Join(out, "accuracy.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &kept); err != nil || !kept.Whole || len(kept.Pairs) != all || all < 5 {
		t.Fatalf("%v: %s", err, b)
	}
	slow, odd := map[string]float64{}, 0
	for _, p := range kept.Pairs {
		if len(p.Real) != 1 || len(p.Issued) != 1 {
			t.Errorf("%+v", p)
			continue
		}
		if times := p.Issued[0] / p.Real[0]; times < 0.2 || times > 5 {
			t.Logf("%s on %s took %.3f s, and %.3f s are predicted", p.Program, p.Target, p.Real[0], p.Issued[0])
			odd++
		}
		slow[p.Program+"@"+p.Target] = p.Issued[0]
	}
	if odd > 1 { // each was run once, beside other tests: one may have been held up
		t.Errorf("%d of %d pairs are far from what was predicted", odd, len(kept.Pairs))
	}
	// 48 transactions with more than one sync each.
	if got := slow["sqlite3-2@fsync5ms"]; got < 0.25 {
		t.Errorf("on a disk whose syncs take 5 ms %.3f s are predicted", got)
	}
	table, _ := os.ReadFile(filepath.Join(out, "accuracy.md"))
	plot, _ := os.ReadFile(filepath.Join(out, "accuracy.svg"))
	if n := bytes.Count(table, []byte("\n| sqlite3-2 | ")); n < 3 || !bytes.HasPrefix(plot, []byte("<svg")) {
		t.Errorf("%d rows of sqlite3-2:\n%s", n, table)
	}
}

// watcher calls do when what is written matches.
type watcher struct {
	said bytes.Buffer
	stop *regexp.Regexp
	do   func()
}

func (w *watcher) Write(b []byte) (int, error) {
	n, err := w.said.Write(b)
	if w.stop != nil && w.stop.Match(w.said.Bytes()) {
		w.stop = nil
		// A moment, so that something runs when it comes.
		time.AfterFunc(500*time.Millisecond, w.do)
	}
	return n, err
}

// A prediction tries the program at home where it was recorded, wherever it is asked for; one that ends otherwise there is no
// measure of anything.
func TestPredictTried(t *testing.T) {
	dir := ""
	rec := Cmd{Argv: []string{"sh", "-c", "test -f here && sleep 0.2"}, Setup: func(d string) error {
		dir = d
		return os.WriteFile(filepath.Join(d, "here"), nil, 0o600)
	}}.Recorded(t)
	predict := func() (string, error) {
		cmd := exec.Command(built(t, "prophet"), "predict", rec.Trace, "--target", "local", "-n", "1", "--home-runs", "1", "--what-if", "0", "--force")
		cmd.Dir = "/"
		cmd.Env = append(os.Environ(), "PROPHET_REPLAYD="+built(t, "replayd"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := predict(); strings.Contains(out, "ended with status") || !strings.Contains(out, "home       2") && err != nil && !strings.Contains(out, "refused") {
		t.Errorf("%v: %s", err, out)
	}
	if err := os.Remove(filepath.Join(dir, "here")); err != nil {
		t.Fatal(err)
	}
	if out, err := predict(); err == nil || !strings.Contains(out, "it ended with status 1, and with 0 when it was recorded") {
		t.Errorf("%v: %s", err, out)
	}
}

package tests

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// using are the processes that work in a directory, or name it.
func using(dir string) (list []string) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range all {
		cwd, _ := os.Readlink(p + "/cwd")
		line, _ := os.ReadFile(p + "/cmdline")
		if filepath.Base(p) != strconv.Itoa(os.Getpid()) && (strings.HasPrefix(cwd, dir) || bytes.Contains(line, []byte(dir))) {
			list = append(list, fmt.Sprintf("%s: %q", filepath.Base(p), line))
		}
	}
	return list
}

// nothingIn fails unless a target's directory is empty, and nobody uses it, in a moment.
func nothingIn(t *testing.T, dir string) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		files, _ := os.ReadDir(dir)
		if procs := using(dir); len(files) == 0 && len(procs) == 0 {
			return
		} else if time.Now().After(end) {
			t.Fatalf("left are files %v, processes %v", files, procs)
		}
	}
}

// deadly is a target in dir on which something happens once in the middle of an issue.
func deadly(t *testing.T, dir, what string) string {
	t.Helper()
	script := filepath.Join(t.TempDir(), "deadly.sh")
	text := `if mkdir "$0.once" 2>/dev/null; then
	(while ! ls "$1"/*/files/prophet-issue-*/files/f* >/dev/null 2>&1; do sleep 0.02; done
	sleep 0.3; mkdir "$0.done"; ` + what + `) </dev/null >/dev/null 2>&1 &
fi
dir=$1; shift; exec "$@" --dir "$dir"`
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := os.Stat(script + ".done"); err != nil {
			t.Error("nothing happened to it")
		}
	})
	return "exec:sh " + script + " " + dir + " {}"
}

// A target that dies in the middle of a round, and one whose connection is cut there: the round is begun again on a new connection.
// An issue that is killed there is an error that says so. Nothing is left here or there.
func TestPredictFaults(t *testing.T) {
	trace := Cmd{Argv: []string{"sh", "-c", "echo x >file; sleep 2"}}.Recorded(t).Trace
	if out, err := exec.Command(built(t, "prophet"), "info", trace).CombinedOutput(); err != nil { // which completes it, once for all
		t.Fatalf("%v: %s", err, out)
	}
	visited := 0
	for name, x := range map[string]struct{ what, says string }{
		"keeper": {`kill -9 $$`, ""},
		"server": {`pkill -9 -P $$ -f target-server`, ""},
		"issue":  {``, "SIGKILL"},
	} {
		visited++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			what := x.what
			if name == "issue" { // of this target alone
				what = `for p in $(pgrep -f " issue --program"); do case "$(readlink /proc/$p/cwd)" in "$1"/*) kill -9 $p;; esac; done`
			}
			p, said, err := predict(t, trace, "--target", deadly(t, dir, what), "--rounds", "1")
			switch {
			case x.says == "" && (err != nil || p.Seconds < 2 || !p.Proven):
				t.Errorf("%+v, %v: %s", p, err, said)
			case x.says != "" && (err == nil || !strings.Contains(said, x.says)):
				t.Errorf("%v: %s", err, said)
			}
			nothingIn(t, dir)
		})
	}
	if visited != 3 {
		t.Errorf("%d faults", visited)
	}
}

// So does one that dies before anything is issued there, while machines are measured.
func TestPredictFaultEarly(t *testing.T) {
	trace := Cmd{Argv: []string{"sleep", "0.1"}}.Recorded(t).Trace
	dir, script := t.TempDir(), filepath.Join(t.TempDir(), "early.sh")
	text := `if mkdir "$0.once" 2>/dev/null; then
	(while [ -d "$1" ] && ! ls "$1"/*/files/program; do sleep 0.02; done; mkdir "$0.done"
	while [ -d "$1" ] && ! pkill -9 -P $$ -f target-server; do sleep 0.02; done) </dev/null >/dev/null 2>&1 &
fi
dir=$1; shift; exec "$@" --dir "$dir"`
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, said, err := predict(t, trace, "--target", "exec:sh "+script+" "+dir+" {}", "--rounds", "0"); err != nil || p.Seconds < 0.1 {
		t.Errorf("%+v, %v: %s", p, err, said)
	}
	if _, err := os.Stat(script + ".done"); err != nil {
		t.Error("nothing happened to it")
	}
	nothingIn(t, dir)
}

// A target whose disk is full says so.
func TestPredictFull(t *testing.T) {
	trace := Cmd{Argv: []string{"dd", "if=/dev/zero", "of=out", "bs=1M", "count=150"}}.Recorded(t).Trace
	dir, flags := t.TempDir(), "--mount"
	if os.Geteuid() != 0 {
		flags += " --map-root-user"
	}
	_, said, err := predict(t, trace, "--target", "exec:unshare "+flags+` sh -c 'mount -t tmpfs -o size=100m none "$0" && exec "$@" --dir "$0"' `+dir+" {}")
	if err == nil || !strings.Contains(said, "no space left on device") {
		t.Errorf("%v: %s", err, said)
	}
	nothingIn(t, dir)
}

// A program that is not the one that was recorded.
func TestPredictOther(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "program")
	build := func(how string) {
		if out, err := exec.Command("gcc", how, "-pthread", "-o", exe, "predict/barrier.c").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	build("-O2")
	trace := Cmd{Argv: []string{exe, "2", "3"}}.Recorded(t).Trace
	build("-O0")
	cmd := exec.Command(built(t, "prophet"), "predict", trace, "--target", "local")
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), exe+" is not the program that was recorded") {
		t.Errorf("%v: %s", err, out)
	}
}

// Where its threads come in an order in which they wait for one another for ever an issue ends, and names them and what they wait for.
func TestIssueDeadlock(t *testing.T) {
	trace := recordedProgram(t, "inversion")
	dir := t.TempDir()
	cmd := exec.Command(built(t, "replayd"), "issue", "--json", "--trace", trace, "--scale", "40")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	begin := time.Now()
	err := cmd.Run()
	for _, s := range []string{"deadlock", "thread p0/1 waits for mutex:p0/", "which thread p0/2 has", "thread p0/2 waits for mutex:p0/", "which thread p0/1 has"} {
		if err == nil || !strings.Contains(said.String(), s) {
			t.Errorf("%v, without %q: %s", err, s, said.String())
		}
	}
	if !strings.Contains(out.String(), `"stuck":{"cycle":[{"thread":`) || time.Since(begin) > 30*time.Second {
		t.Errorf("after %v: %s", time.Since(begin), out.String())
	}
	nothingIn(t, dir)
}

// An issue that takes longer than it may is ended, and it is said who waits for whom; predictions end theirs.
func TestIssueLimit(t *testing.T) {
	home := recordedProgram(t, "barrier", "2", "600")
	for _, x := range []struct {
		argv []string
		says []string
	}{
		{[]string{built(t, "replayd"), "issue", "--json", "--trace", home, "--scale", "100", "--limit", "3s"},
			[]string{"came to no end in 3s", "thread p0 waits for the end of thread p0/"}},
		{[]string{built(t, "prophet"), "predict", home, "--target", "local", "--home-runs", "0", "--force", "--limit", "1ms"}, []string{"issuing on local", "came to no end in 1ms"}},
	} {
		dir, begin := t.TempDir(), time.Now()
		cmd := exec.Command(x.argv[0], x.argv[1:]...)
		cmd.Env = append(os.Environ(), "TMPDIR="+dir)
		out, err := cmd.CombinedOutput()
		for _, s := range x.says {
			if err == nil || !strings.Contains(string(out), s) || time.Since(begin) > 20*time.Second {
				t.Errorf("%v after %v, without %q: %s", err, time.Since(begin), s, out)
			}
		}
		nothingIn(t, dir)
	}
}

// Where the program comes to no end as it is executed in the order of an issue, the prediction does: it is not proven, and says why.
func TestPredictNoEnd(t *testing.T) {
	trace := Cmd{Argv: []string{"sleep", "0.2"}}.Recorded(t).Trace
	script := filepath.Join(t.TempDir(), "replayd")
	text := "#!/bin/sh\ncase \"$*\" in *--learn*) exec sleep 100;; esac\nexec " + built(t, "replayd") + " \"$@\"\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(built(t, "prophet"), "predict", trace, "--target", "local", "--json", "--home-runs", "0", "--limit", "3s", "-n", "2", "--what-if", "0")
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), "PROPHET_REPLAYD="+script)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `came to no end in 3s`) || !strings.Contains(string(out), `"proven": false`) {
		t.Errorf("%v: %s", err, out)
	}
}

// An issue writes nothing outside of its directory and of that for temporary files, nor names anything that the program named.
func TestIssueWritesNowhere(t *testing.T) {
	dir, tmp, away := t.TempDir(), t.TempDir(), t.TempDir()
	script := `cd "$0"; mkdir -p away/deep; echo 1 >away/one; mv away/one away/deep/two; ln away/deep/two three; echo 2 >>three; : >four; rm four three; rm -r away`
	trace := Cmd{Argv: []string{"sh", "-c", script, away}}.Recorded(t).Trace
	if out, err := exec.Command(built(t, "prophet"), "info", trace).CombinedOutput(); err != nil { // which completes it
		t.Fatalf("%v: %s", err, out)
	}
	log := filepath.Join(tmp, "strace")
	cmd := exec.Command("strace", "-f", "-y", "-qq", "-e", "trace=%file", "-o", log, built(t, "replayd"), "issue", "--trace", trace, "--dir", dir)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	changes := 0
	for line := range strings.Lines(string(b)) {
		_, call, _ := strings.Cut(line, " ")
		call = strings.TrimSpace(call)
		if strings.Contains(call, away) {
			t.Errorf("it names what the program named: %s", call)
		}
		name, rest, _ := strings.Cut(call, "(")
		writes := strings.HasPrefix(name, "mkdir") || strings.HasPrefix(name, "unlink") || strings.HasPrefix(name, "rmdir") || strings.HasPrefix(name, "rename") ||
			strings.HasPrefix(name, "link") || strings.HasPrefix(name, "symlink") || strings.HasPrefix(name, "open") && (strings.Contains(rest, "O_WRONLY") || strings.Contains(rest, "O_RDWR") || strings.Contains(rest, "O_CREAT"))
		in, path, quoted := strings.Cut(rest, `"`)
		path, _, _ = strings.Cut(path, `"`)
		if _, in, named := strings.Cut(in, "<"); named && !filepath.IsAbs(path) {
			in, _, _ = strings.Cut(in, ">")
			path = filepath.Join(in, path)
		}
		if !writes || !quoted || strings.Contains(call, " = -1 ") {
			continue
		}
		changes++
		if !strings.HasPrefix(path, dir) && !strings.HasPrefix(path, tmp) && !strings.HasPrefix(path, "/dev/") && !strings.HasPrefix(path, "/proc/self/") {
			t.Errorf("outside: %s", call)
		}
	}
	if changes < 10 {
		t.Errorf("only %d changes of files", changes)
	}
	os.Remove(log)
	for _, d := range []string{dir, tmp} {
		if left, _ := os.ReadDir(d); len(left) > 0 {
			t.Errorf("left is %v", left)
		}
	}
}

// One that was killed leaves no process, and its directories to the next one, which removes them.
func TestIssueKilled(t *testing.T) {
	path := Cmd{Argv: []string{"sleep", "2"}}.Recorded(t).Trace
	tmp := t.TempDir()
	issue := func() *exec.Cmd {
		cmd := exec.Command(built(t, "replayd"), "issue", "--trace", path)
		cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
		return cmd
	}
	cmd := issue()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if left, _ := filepath.Glob(filepath.Join(tmp, "prophet-issue-*", "files")); len(left) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it does not begin")
		}
	}
	time.Sleep(300 * time.Millisecond)
	cmd.Process.Kill()
	cmd.Wait()
	for end := time.Now().Add(10 * time.Second); len(using(tmp)) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("left: %v", using(tmp))
		}
	}
	locks, _ := filepath.Glob(filepath.Join(tmp, "*", "lock"))
	if len(locks) != 2 {
		t.Errorf("left are %v", locks)
	}
	for _, l := range locks {
		long := time.Now().Add(-time.Minute)
		if err := os.Chtimes(l, long, long); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := issue().CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if left, _ := os.ReadDir(tmp); len(left) > 0 {
		t.Errorf("left is %v", left)
	}
}

// TestPredictUnreachable: a target that is not there says so before the program, which takes its time, is run at home.
func TestPredictUnreachable(t *testing.T) {
	trace := Cmd{Argv: []string{"sleep", "8"}}.Recorded(t).Trace
	for _, target := range []string{"local,dir=" + filepath.Join(t.TempDir(), "none"), "exec:false"} {
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		out, err := exec.CommandContext(ctx, built(t, "prophet"), "predict", trace, "--target", target).CombinedOutput()
		cancel()
		if err == nil || !strings.Contains(string(out), "prophet: target "+target+": ") {
			t.Errorf("%s: %v: %s", target, err, out)
		}
	}
}

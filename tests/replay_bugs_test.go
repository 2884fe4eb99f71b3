package tests

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// unguarded are the programs whose failure lies in data that no lock guards.
var unguarded = map[string]bool{"counter": true, "doublecheck": true, "spinflag": true, "more/doublefree": true,
	"more/staticbuf": true, "more/ownlock": true, "more/dekker": true, "more/sharedcount": true,
	"more/aba": true, "more/loopvar": true, "more/shmflag": true}

// failsAgain re-executes a failing run n times: each ends as it did, in every respect that can be seen.
func failsAgain(t *testing.T, trace string, status int, stdout string, n int) {
	t.Helper()
	for i := range n {
		cmd := exec.Command(built(t, "replayd"), "--trace", trace)
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		var exit *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		is := cmd.ProcessState.ExitCode()
		if is != status || out.String() != stdout || !strings.Contains(errs.String(), "replayd: identical: ") {
			keep := filepath.Join(os.TempDir(), fmt.Sprintf("prophet-%s-%d.prophet", strings.ReplaceAll(t.Name(), "/", "-"), os.Getpid()))
			os.Rename(trace, keep)
			t.Fatalf("re-execution %d of %d of %s ended with status %d, stdout %q; the run with %d, %q:\n%s", i+1, n, keep, is, out.String(), status, stdout, errs.String())
		}
	}
}

// moreBugs are further ones, not all of which are rare.
func moreBugs(t testing.TB) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(top, "tests", "bugs", "more", "*.c*"))
	if err != nil || len(list) < 26 {
		t.Fatalf("tests/bugs/more has %d programs: %v", len(list), err)
	}
	for i := range list {
		list[i] = "more/" + strings.TrimSuffix(filepath.Base(list[i]), filepath.Ext(list[i]))
	}
	return list
}

// Every program with a known bug is recorded until it fails, and fails the same way in each re-execution: by the order of
// its locks alone where they guard its data, recorded under --serial in any case.
func TestReexecBugs(t *testing.T) {
	t.Parallel()
	const seed = 1
	twenty := map[string]bool{"atomicity": true, "broadcast": true, "stolen": true, "more/crash": true, "counter": true}
	for _, serial := range []bool{false, true} {
		for _, name := range append(bugNames(t), moreBugs(t)...) {
			if !serial && unguarded[name] {
				continue
			}
			t.Run(fmt.Sprintf("%s/serial=%v", name, serial), func(t *testing.T) {
				args := []string{"--chaos", fmt.Sprint(seed), "-n", "1000", "--timeout", "3s"}
				if serial {
					args = append(args, "--serial")
				}
				dir := t.TempDir()
				status, stdout, r := untilFail(t, dir, append(args, "--", bug(t, name))...)
				if r.UntilFail == nil || !r.UntilFail.Failed {
					t.Fatalf("it never failed (chaos from seed %d): %+v", seed, r)
				}
				t.Logf("run %d failed with status %d, chaos %d", r.UntilFail.Runs, status, *r.UntilFail.Chaos)
				n := 3
				if twenty[name] {
					n = 20
				}
				path := r.Run.Trace
				if !filepath.IsAbs(path) {
					path = filepath.Join(dir, path)
				}
				failsAgain(t, path, status, stdout, n)
			})
		}
	}
}

// Where the first process became another program, that one's end is the run's: nobody in the run waits for it.
func TestReexecBugExec(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	status, stdout, r := untilFail(t, dir, "--chaos", "1", "-n", "1000", "--", "sh", "-c", "exec "+bug(t, "more/crash"))
	path := r.Run.Trace
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	failsAgain(t, path, status, stdout, 10)
}

// A re-execution of a deadlock says that it is one.
func TestReexecDeadlock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, _, r := untilFail(t, dir, "--chaos", "1", "--timeout", "2s", "--", bug(t, "more/deadlock3"))
	path := r.Run.Trace
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	out, err := exec.Command(built(t, "replayd"), "--trace", path).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 124 || !strings.Contains(string(out), "deadlocked as recorded") {
		t.Errorf("%v\n%s", err, out)
	}
}

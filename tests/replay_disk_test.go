package tests

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"prophet/cabi"
)

// rerun records a shell script with prophet record, then re-executes it in a fresh copy of where it ran, and fails unless
// each time all is identical.
func rerun(t *testing.T, times int, script string, setup func(dir string) error) {
	t.Helper()
	if err := reruns(t, times, script, setup); err != nil {
		t.Fatal(err)
	}
}

// reruns tells of the first re-execution that differs.
func reruns(t *testing.T, times int, script string, setup func(dir string) error) error {
	t.Helper()
	dir, trace := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "run.prophet")
	fresh := func() {
		os.RemoveAll(dir)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if setup != nil {
			if err := setup(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	run := func(argv ...string) (out, errs bytes.Buffer, status string) {
		fresh()
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errs
		err := cmd.Run()
		return out, errs, fmt.Sprint(err)
	}
	argv := []string{"bash", "-c", script}
	out, errs, status := run(append([]string{built(t, "prophet"), "record", "-q", "-o", trace, "--"}, argv...)...)
	if status != "<nil>" {
		return fmt.Errorf("the recorded run: %s: %s", status, clip(errs.String()))
	}
	for i := range times {
		out2, errs2, status2 := run(append([]string{built(t, "replayd"), "--trace", trace, "--"}, argv...)...)
		if !strings.Contains(errs2.String(), "replayd: identical: ") || status2 != status {
			return fmt.Errorf("re-execution %d: %s: %s", i, status2, clip(errs2.String()))
		}
		if !bytes.Equal(out.Bytes(), out2.Bytes()) {
			return fmt.Errorf("re-execution %d prints something else:\n%s\nthan the recorded run:\n%s", i, clip(out2.String()), clip(out.String()))
		}
	}
	return nil
}

func numbers(dir string) error {
	var b bytes.Buffer
	for i := range 60000 {
		fmt.Fprintln(&b, i*7919%60000)
	}
	if err := os.Mkdir(filepath.Join(dir, "tree"), 0o755); err != nil {
		return err
	}
	for i := range 20 {
		if err := os.WriteFile(filepath.Join(dir, "tree", fmt.Sprint("f", i)), b.Bytes()[:i*100], 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "in"), b.Bytes(), 0o644)
}

// TestOutsideChanged: what the C library finds out by itself comes from the trace when it is another today.
func TestOutsideChanged(t *testing.T) {
	rerun(t, 2, "exec "+compile(t, filepath.Join(top, "tests", "calls", "resolver.c"))+" told", nil)
	today := 0
	setup := func(dir string) error {
		today++
		var table []byte
		for i := range today % 3 {
			one := make([]byte, 384) // struct utmp
			one[0] = 7
			copy(one[8:], "tty9")
			copy(one[40:], "1")
			copy(one[44:], fmt.Sprintf("user%d-%d", today, i))
			table = append(table, one...)
		}
		for i := range today { // so that outside.key has another number
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("f", i)), nil, 0o644); err != nil {
				return err
			}
		}
		return os.WriteFile(filepath.Join(dir, "outside.utmp"), table, 0o644)
	}
	for _, program := range []string{"outside", "glob"} {
		rerun(t, 2, "exec "+compile(t, filepath.Join(top, "tests", "calls", program+".c"))+" told", setup)
	}
}

// TestReexecuteApps re-executes programs that Debian ships.
func TestReexecuteApps(t *testing.T) {
	apps := []struct{ name, script string }{
		{"ls", `exec ls -lR /etc`},
		{"xz", `exec xz -T2 -k in`},
		{"pigz", `exec pigz -p2 -k in`},
		{"pbzip2", `exec pbzip2 -p2 -k -q in`},
		{"sort", `exec sort --parallel=2 -S 100k in`},
		{"sqlite3", `exec sqlite3 db "create table t(a); begin; insert into t values(1),(2); commit; begin; insert into t values(3); rollback; select sum(a), random() from t;"`},
		{"perl", `exec perl -e 'open F, "in"; while (<F>) { $s += $_ } print "$s ", rand(), " ", time, "\n"; opendir D, "tree"; print join(",", readdir D), "\n", -s "in", "\n"'`},
		{"python3", `exec "$PYTHON" -c '
import os, random, tempfile, time
with open("in") as f:
    n = sum(int(x) for x in f)
print(n, random.random(), time.time(), os.listdir("tree"), tempfile.mkstemp(dir="."), os.stat("in"), hash("a"))'`},
	}
	python, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output() // not a script that looks for it
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHON", strings.TrimSpace(string(python)))
	visited := 0
	for _, a := range apps {
		visited++
		t.Run(a.name, func(t *testing.T) {
			rerun(t, 3, a.script, numbers)
		})
	}
	if visited != 8 {
		t.Errorf("%d programs visited", visited)
	}
}

// TestReexecuteFileLocks and TestReexecuteStreams keep orders that only the kernel and the C library know.
func TestReexecuteFileLocks(t *testing.T) {
	bin := compile(t, filepath.Join(top, "tests", "replay", "file_locks.c"))
	for _, n := range []int{2, 16} {
		t.Run(fmt.Sprint(n), func(t *testing.T) { rerun(t, 3, fmt.Sprint("exec ", bin, " ", n), nil) })
	}
}

func TestReexecuteStreams(t *testing.T) {
	bin := compile(t, filepath.Join(top, "tests", "replay", "streams.c"))
	for _, n := range []int{2, 16} {
		t.Run(fmt.Sprint(n), func(t *testing.T) { rerun(t, 3, fmt.Sprint("exec ", bin, " ", n), nil) })
	}
}

// TestReexecuteInner: the C library opens files by itself, in several threads at once.
func TestReexecuteInner(t *testing.T) {
	rerun(t, 5, "exec "+compile(t, filepath.Join(top, "tests", "replay", "inner.c")), nil)
}

// TestReexecuteSweep: whoever asks of all numbers meets the recorder's own, which are not those of a re-execution.
func TestReexecuteSweep(t *testing.T) {
	rerun(t, 3, "exec "+compile(t, filepath.Join(top, "tests", "replay", "sweep.c")), nil)
}

// notFed are the rows of Reexec "feed" that nothing answers yet: of other parts.
var notFed = map[string]bool{
	"msgrcv":           true,
	"mq_receive":       true,
	"mq_timedreceive":  true,
	"pclose":           true,
	"waitid":           true,
	"wait3":            true,
	"wait4":            true,
	"setsid":           true,
	"getresuid":        true,
	"getresgid":        true,
	"getgroups":        true,
	"__getgroups_chk":  true,
	"getlogin":         true,
	"getlogin_r":       true,
	"__getlogin_r_chk": true,
}

// TestFedRowsAreFed finds rows that are to be answered from the trace, but have neither a Feed nor a stand-in by hand.
func TestFedRowsAreFed(t *testing.T) {
	by := standins(t)
	visited := 0
	for _, c := range cabi.Calls {
		if c.Body == cabi.Known || c.Reexec != "feed" {
			continue
		}
		visited++
		switch fed := c.Feed != "" || by[c.ID]; {
		case !fed && !notFed[c.Name]:
			t.Errorf("%s is to be fed, but nothing feeds it: give its row a Feed, or write a STANDIN", c.Name)
		case fed && notFed[c.Name]:
			t.Errorf("%s is fed: take it off the list", c.Name)
		}
	}
	if visited < 100 {
		t.Errorf("only %d rows visited", visited)
	}
}

// standins are the calls that the built library has a stand-in by hand for: the first of the two words of each entry of its section.
func standins(t *testing.T) map[uint16]bool {
	t.Helper()
	f, err := elf.Open(built(t, "libprophet.so"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := f.Section("standins")
	if s == nil {
		t.Fatal("the library has no section of stand-ins")
	}
	b, err := s.Data()
	if err != nil {
		t.Fatal(err)
	}
	by := map[uint16]bool{}
	for ; len(b) >= 8; b = b[8:] {
		by[uint16(binary.LittleEndian.Uint32(b))] = true
	}
	return by
}

// TestReexecuteOtherInput: an input that is gone or changed is the first difference, and the report names it.
func TestReexecuteOtherInput(t *testing.T) {
	dir, trace := t.TempDir(), filepath.Join(t.TempDir(), "run.prophet")
	in := filepath.Join(dir, "in")
	if err := os.WriteFile(in, []byte("as it was\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(built(t, "prophet"), "record", "-q", "-o", trace, "--", "cat", in).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range []struct {
		name, want string
		change     func() error
	}{
		{"changed", "other data", func() error { return os.WriteFile(in, []byte("as it is.\n"), 0o644) }},
		{"gone", fmt.Sprintf("got -1 ENOENT, of %q", in), func() error { return os.Remove(in) }},
	} {
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(built(t, "replayd"), "--trace", trace, "--", "cat", in).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 125 || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v: %s, want %q", c.name, err, out, c.want)
		}
	}
}

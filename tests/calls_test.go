package tests

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// compile builds one program; its first line may say `// cflags: …`.
func compile(t testing.TB, source string) string {
	t.Helper()
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(source), filepath.Ext(source)))
	cc := "gcc"
	if filepath.Ext(source) == ".cc" {
		cc = "g++"
	}
	args := []string{"-O1", "-D_GNU_SOURCE", "-pthread", "-w", "-o", bin, source}
	if flags, ok := strings.CutPrefix(strings.SplitN(string(text), "\n", 2)[0], "// cflags:"); ok {
		args = append(args, strings.Fields(flags)...)
	}
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", cc, source, err, out)
	}
	return bin
}

// recordedCalls is the set of names of calls in a trace.
func recordedCalls(t testing.TB, path string) map[string]bool {
	t.Helper()
	tr, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	for _, d := range tr.Damage {
		t.Errorf("the trace is damaged: %v", d)
	}
	names := map[string]bool{}
	for _, th := range tr.Threads {
		it := tr.Iter(th)
		var r trace.Record
		for {
			err := it.Next(&r)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Errorf("thread %s: %v", th.Name, err)
				break
			}
			if r.Tag == trace.TagEvent {
				names[rowName(cabi.ByID(r.Call))] = true
			}
		}
	}
	return names
}

func rowName(c *cabi.Call) string {
	if c == nil {
		return "unknown"
	}
	if c.Version != "" {
		return c.Name + "@" + c.Version
	}
	return c.Name
}

// TestCalls runs the program of every row bare, recorded and re-executed. Nothing that can be seen may differ, and each row that
// names the program must be in its trace.
// optionsOf are the options that a program is recorded with, as its first line says.
func optionsOf(t testing.TB, source string) string {
	t.Helper()
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	options, _ := strings.CutPrefix(strings.SplitN(string(text), "\n", 2)[0], "// options: ")
	if !strings.HasPrefix(string(text), "// options: ") {
		return ""
	}
	return options
}

func TestCalls(t *testing.T) {
	rows := map[string][]*cabi.Call{}
	visited := 0
	for i := range cabi.Calls {
		c := &cabi.Calls[i]
		if c.Body == cabi.Known {
			continue
		}
		if c.Test == "" {
			t.Errorf("%s has no test program: name one in its row", c.Name)
			continue
		}
		rows[c.Test] = append(rows[c.Test], c)
		visited++
	}
	if visited < 3 {
		t.Fatalf("only %d rows visited", visited)
	}
	programs := make([]string, 0, len(rows))
	for p := range rows {
		programs = append(programs, p)
	}
	sort.Strings(programs)
	for _, p := range programs {
		t.Run(p, func(t *testing.T) {
			t.Parallel()
			source := filepath.Join(top, "tests", "calls", p+".c")
			if _, err := os.Stat(source); err != nil {
				source = filepath.Join(top, "tests", "calls", p+".cc")
			}
			cmd := Cmd{Argv: []string{compile(t, source)}, Options: optionsOf(t, source)}
			_, rec := Same(t, cmd)
			again := cmd.Reexecuted(t, rec)
			compare(t, "exit status of the re-execution", rec.Status, again.Status)
			compare(t, "standard output of the re-execution", rec.Stdout, again.Stdout)
			compare(t, "standard error of the re-execution", rec.Stderr, again.Stderr)
			calls := recordedCalls(t, rec.Trace)
			for _, c := range rows[p] {
				if !calls[rowName(c)] {
					t.Errorf("%s was not recorded: does tests/calls/%s call it?", rowName(c), filepath.Base(source))
				}
			}
		})
	}
}

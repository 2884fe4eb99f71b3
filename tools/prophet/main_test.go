package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// The test binary is prophet itself when this is set.
const asProphet = "PROPHET_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asProphet) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func prophet(t *testing.T, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	c := exec.Command(os.Args[0], args...)
	c.Dir = dir
	c.Env = append(os.Environ(), asProphet+"=1", "PROPHET_LIB="+os.Args[0]) // a library that the loader leaves out
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	var e *exec.ExitError
	if err != nil && !errors.As(err, &e) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.String(), errs.String()
}

func sample(t *testing.T) string {
	t.Helper()
	top := t.TempDir()
	dir := filepath.Join(top, "a.prophet")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	m := trace.Meta{Format: 1, State: trace.StateComplete, TicksHz: 1e9, Command: []string{"a", "\x1b[31m"}}
	if err := trace.WriteMeta(dir, &m); err != nil {
		t.Fatal(err)
	}
	w, err := trace.NewWriter(dir)
	if err != nil {
		t.Fatal(err)
	}
	e := trace.NewEncoder(1, 0, 1000, w.Put)
	for i := range 50_000 {
		e.Event(&trace.Record{Call: uint16(1 + i%2), Begin: uint64(1000 + 10*i), Obj: trace.Object{UID: 1, Num: 1}, PC: 0x4000})
	}
	e.Flush(cabi.ChunkLast)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return top
}

func TestCommands(t *testing.T) {
	top := sample(t)
	rows := 0
	for _, c := range []struct {
		args string
		code int
		out  string // in stdout
		err  string // in stderr
	}{
		{"verify a.prophet", 0, "is good: 50,000 events", ""},
		{"verify --json a.prophet", 0, `"good": true`, ""},
		{"info a.prophet", 0, "50,000", ""},
		{"info --json a.prophet", 0, `"events": 50000`, ""},
		{"dump a.prophet --call pthread_mutex_unlock --to 1us", 0, "pthread_mutex_unlock(mutex:", ""},
		{"dump a.prophet --class disk", 0, "", ""},
		{"dump a.prophet --thread nobody", 2, "", "there is no thread nobody"},
		{"dump a.prophet --class nonsense", 2, "", "classes are"},
		{"dump a.prophet --call nonsense", 2, "", "no call nonsense"},
		{"dump a.prophet --from yesterday", 2, "", "is not a time"},
		{"pack a.prophet -o b.prophet", 0, "b.prophet", ""},
		{"pack a.prophet -o b.prophet", 2, "", "exists"},
		{"verify b.prophet", 0, "is good: 50,000 events", ""},
		{"info b.prophet", 0, "packed", ""},
		{"unpack b.prophet -o c.prophet", 0, "c.prophet", ""},
		{"verify c.prophet", 0, "is good: 50,000 events", ""},
		{"recover a.prophet", 0, "was complete", ""},
		{"level a.prophet off", 1, "", "has ended"},
		{"flight a.prophet", 2, "", "has ended"},
		{"calls pthread_mutex_lock", 0, "int pthread_mutex_lock(pthread_mutex_t *m)", ""},
		{"calls --json pthread_mutex_lock", 0, `"class": "sync"`, ""},
		{"calls mutex_loc", 2, "", "but __pthread_mutex_lock, pthread_mutex_lock"},
		{"verify", 2, "", "wants one trace"},
		{"verify nothing", 2, "", "there is no trace nothing"},
		{"verify /etc", 2, "", "not a trace"},
		{"verify /etc/passwd", 2, "", "not a trace"},
		{"nonsense", 2, "", "unknown command"},
		{"info --nonsense", 2, "", "unknown flag"},
		{"record", 125, "", "no program"},
		{"record --inputs some -- true", 125, "", "none, hash, full, default"},
		{"record --flight 1x -- true", 125, "", "is not a size"},
		{"record -o a.prophet -- true", 125, "", "--force"},
		{"record -- /no/such/program", 127, "", "not found"},
		{"record -- /etc/passwd", 126, "", "cannot be executed"},
		{"record --json -- false", 1, "", `"run":{"status":1`},
		{"--version", 0, cabi.Version, ""},
	} {
		rows++
		code, out, errs := prophet(t, top, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(errs, c.err) {
			t.Errorf("prophet %s: %d, not %d\n%s\n%s", c.args, code, c.code, out, errs)
		}
		if strings.ContainsRune(out, 0x1b) {
			t.Errorf("prophet %s lets a trace write to the terminal", c.args)
		}
	}
	if rows != 36 {
		t.Fatalf("%d rows visited", rows)
	}
}

func TestDamagedStatus(t *testing.T) {
	top := sample(t)
	path := filepath.Join(top, "a.prophet", "stream-00")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[5000] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range []string{"verify", "info", "dump", "pack"} {
		if code, _, errs := prophet(t, top, cmd, "a.prophet"); code != 1 || !strings.Contains(errs, "stream-00: offset 0") {
			t.Errorf("%s: %d %s", cmd, code, errs)
		}
	}
}

func TestDumpJSON(t *testing.T) {
	_, out, _ := prophet(t, sample(t), "dump", "--json", "--to", "100us", "a.prophet")
	n := 0
	for line := range strings.Lines(out) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		n++
	}
	if n < 5000 {
		t.Errorf("%d lines", n)
	}
}

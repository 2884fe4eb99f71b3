package tests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// pair is a member of a JSON object.
type pair struct {
	key string
	val any
}

// members reads one JSON line, keeping the order and doubles.
func members(t *testing.T, line string) []pair {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(line))
	d.UseNumber()
	if tok, err := d.Token(); err != nil || tok != json.Delim('{') {
		t.Fatalf("not an object: %s", line)
	}
	var all []pair
	for d.More() {
		key, err := d.Token()
		if err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		all = append(all, pair{key.(string), v})
	}
	return all
}

// onlyDump is what `prophet dump --json` says beyond what the examples print.
var onlyDump = map[string]bool{"waited": true, "cut": true, "vforked": true, "delayed": true, "onlytime": true, "at": true,
	"data": true, "hash": true, "data_chunk": true, "data_bytes": true, "stack": true, "stack_taken": true}

// fromDump is a line of the dump as an example prints it.
func fromDump(t *testing.T, line string) string {
	var b strings.Builder
	for i, p := range members(t, line) {
		if _, object := p.val.(map[string]any); object || onlyDump[p.key] && i > 4 {
			continue
		}
		fmt.Fprintf(&b, "%s=%v ", p.key, p.val)
	}
	return b.String()
}

// fromExample is a line of an example as the dump prints it: what failed returned -errno. A call that returns nothing
// has no result in the dump.
func fromExample(t *testing.T, line string) string {
	var b strings.Builder
	all := members(t, line)
	void := false
	for i, p := range all {
		switch {
		case p.key == "call":
			for _, c := range cabi.Calls {
				void = void || c.Name == p.val && strings.Contains(c.Rec, "ret void")
			}
		case p.key == "ret" && i+1 < len(all) && all[i+1].key == "error":
			err := fmt.Sprint(all[i+1].val)
			if ret := fmt.Sprint(p.val); err != "0" && (ret == "-1" || ret == "0") {
				p.val = "-" + err
			}
			if void {
				continue
			}
		case p.key == "error" && i > 0 && all[i-1].key == "ret":
			continue
		}
		fmt.Fprintf(&b, "%s=%v ", p.key, p.val)
	}
	return b.String()
}

// dumped is what a reader has to print of a trace: events and marks.
func dumped(t *testing.T, path string) []string {
	t.Helper()
	out, err := exec.Command(built(t, "prophet"), "dump", "--json", path).Output()
	if len(out) == 0 {
		t.Fatalf("prophet dump: %v", err)
	}
	var want []string
	for line := range strings.Lines(string(out)) {
		if all := members(t, line); all[2].key == "n" || all[2].val == "mark" {
			want = append(want, fromDump(t, line))
		}
	}
	return want
}

// reader is one of the examples in tests/embed.
type reader struct {
	name string
	argv []string
}

func readers(t *testing.T) []reader {
	t.Helper()
	dir := t.TempDir()
	lib := built(t, "libprophet.so")
	c := filepath.Join(dir, "read-c")
	if out, err := exec.Command("gcc", "-O1", "-Wall", "-Werror", filepath.Join(top, "tests/embed/read.c"), "-o", c, "-L"+filepath.Dir(lib), "-lprophet", "-Wl,-rpath,"+filepath.Dir(lib)).CombinedOutput(); err != nil {
		t.Fatalf("read.c: %v\n%s", err, out)
	}
	goread := filepath.Join(dir, "read-go")
	build := exec.Command("go", "build", "-o", goread, "./tests/embed/goread")
	build.Dir, build.Env = top, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("goread: %v\n%s", err, out)
	}
	return []reader{{"Go", []string{goread}}, {"C", []string{c}}, {"Python", []string{"python3", filepath.Join(top, "tests/embed/read.py")}}}
}

func (r reader) read(t *testing.T, path string) (lines []string, errs string, status int) {
	t.Helper()
	cmd := exec.Command(r.argv[0], append(r.argv[1:], path)...)
	cmd.Env = append(os.Environ(), "PROPHET_LIB="+built(t, "libprophet.so"))
	var out, text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &text
	cmd.Run()
	for line := range strings.Lines(out.String()) {
		lines = append(lines, fromExample(t, line))
	}
	return lines, text.String(), cmd.ProcessState.ExitCode()
}

// TestReaders: the examples read every event as `prophet dump` does, from directories and packed files.
func TestReaders(t *testing.T) {
	all := readers(t)
	marks := compile(t, filepath.Join(top, "tests", "progs", "embed.c"))
	runs := []Cmd{
		{Argv: []string{"bash", "-c", "echo hi | cat; seq 20000 | sort --parallel=4 -S 1M | tail -1; for i in 1 2 3; do (ls / | wc -l); done; exec ls /nowhere"}},
		{Argv: []string{"python3", "-c", "import threading,socket,time\na,b=socket.socketpair()\nl=threading.Lock()\ndef f():\n  for i in range(50):\n    with l: time.sleep(0)\nts=[threading.Thread(target=f) for i in range(8)]\n[x.start() for x in ts];[x.join() for x in ts]\na.send(b'x\"\\n\\\\');b.recv(9);open('q\"\\n\u00e9','w').write('z')"}},
		{Argv: []string{marks}},
		{Argv: []string{"bash", "-c", "seq 2000 | sort --parallel=2 -S 1M | (tail -1; ls /)"}, Options: "serial"},
	}
	events := 0
	for i, c := range runs {
		rec := c.Recorded(t)
		paths := []string{rec.Trace, rec.Trace + ".packed"}
		if out, err := exec.Command(built(t, "prophet"), "pack", "-o", paths[1], rec.Trace).CombinedOutput(); err != nil {
			t.Fatalf("pack: %v\n%s", err, out)
		}
		for _, path := range paths {
			want := dumped(t, path)
			for _, r := range all {
				got, errs, status := r.read(t, path)
				if status != 0 || errs != "" {
					t.Errorf("%s, run %d: status %d, %s", r.name, i, status, errs)
				}
				sameLines(t, fmt.Sprintf("%s, run %d, %s", r.name, i, filepath.Base(path)), want, got)
				events += len(got)
			}
		}
	}
	if events < 2000*len(all) {
		t.Errorf("only %d events were compared", events)
	}
}

func sameLines(t *testing.T, what string, want, got []string) {
	t.Helper()
	if len(want) != len(got) {
		t.Errorf("%s: %d events, want %d", what, len(got), len(want))
	}
	bad := 0
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			if bad++; bad <= 3 {
				t.Errorf("%s, line %d:\ngot  %s\nwant %s", what, i, got[i], want[i])
			}
		}
	}
}

// TestReadersDamage: what is not damaged is read, and the rest is said to be.
func TestReadersDamage(t *testing.T) {
	all := readers(t)
	rec := Cmd{Argv: []string{"bash", "-c", "for i in 1 2 3 4 5; do ls -l / | wc -l; done"}}.Recorded(t)
	streams, _ := filepath.Glob(filepath.Join(rec.Trace, "stream-*"))
	if len(streams) == 0 {
		t.Fatal("no streams")
	}
	hurt := []struct {
		name string
		do   func(b []byte) []byte
	}{
		{"a byte of a payload", func(b []byte) []byte { b[cabi.ChunkHeader+len(b)/9] ^= 1; return b }},
		{"a byte of a header", func(b []byte) []byte { b[17] ^= 1; return b }},
		{"a torn end", func(b []byte) []byte { return b[:len(b)-7] }},
		{"rubbish in between", func(b []byte) []byte { return append([]byte("rubbish"), b...) }},
	}
	for _, h := range hurt {
		dir := filepath.Join(t.TempDir(), "hurt.prophet")
		if err := os.CopyFS(dir, os.DirFS(rec.Trace)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.Base(streams[0]))
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, h.do(b), 0o600); err != nil {
			t.Fatal(err)
		}
		want := dumped(t, dir)
		for _, r := range all {
			got, _, _ := r.read(t, dir)
			sameLines(t, r.name+", "+h.name, want, got)
		}
	}
	for _, r := range all {
		if _, errs, status := r.read(t, "/nowhere"); status != 1 || !strings.Contains(errs, "there is no such file") {
			t.Errorf("%s, a trace that is not there: status %d, %q", r.name, status, errs)
		}
		if _, errs, status := r.read(t, t.TempDir()); status != 1 || !strings.Contains(errs, "is not a trace") {
			t.Errorf("%s, no trace: status %d, %q", r.name, status, errs)
		}
	}
}

// levels are the level records of a run.
func levels(t *testing.T, path string) (all []uint64) {
	tr, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if tr.Run == nil {
		return nil
	}
	it := tr.Iter(tr.Run)
	for {
		var r trace.Record
		if err := it.Next(&r); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if r.Tag == cabi.TagLevel {
			all = append(all, r.Nums[0])
		}
	}
}

package tests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/pprof/profile"

	"prophet/runtime/perfetto/pftest"
	"prophet/runtime/report"
	"prophet/runtime/tables"
	"prophet/tests/duckdb"
)

// view is a way to see a trace: how it is asked for, and how much there is to see, which fails when it is not well formed.
type view struct {
	name string
	args []string // %s: the trace
	much func(t *testing.T, dir, stdout string) int
}

// Files that views write, in their directory.
func madeFile(t *testing.T, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	must(t, err)
	return b
}

func lines(b []byte) int { return bytes.Count(b, []byte("\n")) }

// views are all of them.
var views = []view{
	{"report", []string{"report", "%s", "-o", "r.html"}, func(t *testing.T, dir, _ string) int { return len(madeFile(t, dir, "r.html")) / 1000 }},
	{"report --json", []string{"report", "%s", "--json"}, func(t *testing.T, _, stdout string) int {
		var r report.Report
		must(t, json.Unmarshal([]byte(stdout), &r))
		return len(r.Calls)
	}},
	{"diff", []string{"diff", "%s", "%s"}, func(t *testing.T, _, stdout string) int { return lines([]byte(stdout)) }},
	{"diff --json", []string{"diff", "%s", "%s", "--json"}, func(t *testing.T, _, stdout string) int {
		var d report.Diff
		must(t, json.Unmarshal([]byte(stdout), &d))
		return len(d.Calls)
	}},
	{"report of two", []string{"report", "%s", "%s", "-o", "d.html"}, func(t *testing.T, dir, _ string) int { return len(madeFile(t, dir, "d.html")) / 1000 }},
	{"pprof", []string{"export", "%s", "--pprof", "p.pb"}, func(t *testing.T, dir, _ string) int {
		p, err := profile.ParseData(madeFile(t, dir, "p.pb"))
		must(t, err)
		must(t, p.CheckValid())
		return len(p.Sample)
	}},
	{"folded", []string{"export", "%s", "--folded", "f"}, func(t *testing.T, dir, _ string) int { return lines(madeFile(t, dir, "f")) }},
	{"wait-for", []string{"export", "%s", "--folded", "w", "--wait-for"}, func(t *testing.T, dir, _ string) int { return lines(madeFile(t, dir, "w")) }},
	{"perfetto", []string{"export", "%s", "--perfetto", "pf"}, func(t *testing.T, dir, _ string) int {
		p, err := pftest.Read(madeFile(t, dir, "pf"))
		must(t, err)
		return len(p.Slices)
	}},
	{"csv", []string{"export", "%s", "--csv", "csv"}, func(t *testing.T, dir, _ string) int { return lines(madeFile(t, dir, "csv/events.csv")) }},
	{"parquet", []string{"export", "%s", "--parquet", "parquet"}, func(t *testing.T, dir, _ string) int {
		db, err := duckdb.Open(filepath.Join(top, "build", "duckdb"))
		must(t, err)
		defer db.Close()
		_, rows, err := db.Query("SELECT * FROM '" + filepath.Join(dir, "parquet", "events.parquet") + "'")
		must(t, err)
		return len(rows)
	}},
	{"scrub", []string{"scrub", "%s", "-o", "s.prophet"}, func(t *testing.T, dir, _ string) int {
		_, errs, _ := prophetRun(t, dir, "verify", "s.prophet")
		for line := range strings.Lines(errs) { // what was lost is said to be missing, all else is whole
			if strings.Contains(line, "damaged: ") && !strings.Contains(line, "are missing before this one") {
				t.Errorf("what scrub made is not good: %s", line)
			}
		}
		out, _, _ := prophetRun(t, dir, "dump", "s.prophet")
		return lines([]byte(out))
	}},
	{"info", []string{"info", "%s"}, func(t *testing.T, _, stdout string) int { return lines([]byte(stdout)) }},
	{"dump", []string{"dump", "%s"}, func(t *testing.T, _, stdout string) int { return lines([]byte(stdout)) }},
	{"dump --json", []string{"dump", "--json", "%s"}, func(t *testing.T, _, stdout string) int {
		for line := range strings.Lines(stdout) {
			if !json.Valid([]byte(line)) {
				t.Fatalf("no JSON: %s", line)
			}
		}
		return lines([]byte(stdout))
	}},
}

func (v *view) of(trace string) []string {
	args := slices.Clone(v.args)
	for i := range args {
		if args[i] == "%s" {
			args[i] = trace
		}
	}
	return args
}

// Of a damaged trace each view shows the rest, says on a line of its own what is damaged, and ends with 1, be it a directory or
// packed; of the whole one it says nothing and ends with 0.
func TestViewsDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	recordIn(t, dir, at("whole.prophet"), compile(t, filepath.Join(top, "tests", "order", "torture.c")), "7", "4", "2000", "1", "log")
	manyEvents(t, at("many.prophet"), 4, 500_000) // several frames, when it is packed
	if _, errs, code := prophetRun(t, dir, "pack", "many.prophet", "-o", "broken.packed"); code != 0 {
		t.Fatal(errs)
	}
	must(t, os.CopyFS(at("broken.prophet"), os.DirFS(at("whole.prophet"))))
	for name, offset := range map[string]int64{"broken.prophet/stream-00": 50_000, "broken.packed": 100_000} {
		f, err := os.OpenFile(at(name), os.O_RDWR, 0)
		must(t, err)
		_, err = f.WriteAt([]byte("this was overwritten"), offset)
		must(t, errors.Join(err, f.Close()))
	}
	tried := 0
	for _, c := range []struct {
		whole, broken, says string
		views               []string // none: all
	}{
		{"whole.prophet", "broken.prophet", "stream-00", nil},
		{"", "broken.packed", "broken.packed", []string{"report", "wait-for", "perfetto", "csv"}},
	} {
		for _, v := range views {
			if c.views != nil && !slices.Contains(c.views, v.name) {
				continue
			}
			tried++
			all := 1
			if c.whole != "" {
				out := t.TempDir()
				stdout, stderr, code := prophetRun(t, out, v.of(at(c.whole))...)
				all = v.much(t, out, stdout)
				if code != 0 || strings.Contains(stderr, "damaged") {
					t.Errorf("%s of %s: exit status %d: %s", v.name, c.whole, code, stderr)
				}
			}
			out := t.TempDir()
			stdout, stderr, code := prophetRun(t, out, v.of(at(c.broken))...)
			if code != 1 || !strings.Contains(stderr, "prophet: damaged: ") || !strings.Contains(stderr, c.says) {
				t.Errorf("%s of %s: exit status %d, want 1: %s", v.name, c.broken, code, stderr)
			}
			if n := v.much(t, out, stdout); n < 1 || n < all/20 || strings.HasPrefix(v.name, "dump") && n >= all {
				t.Errorf("%s shows %d of %s, and %d of the whole", v.name, n, c.broken, all)
			}
		}
	}
	if tried != len(views)+4 {
		t.Errorf("%d views were tried", tried)
	}
}

// Names and arguments that would do harm to a terminal, a spreadsheet, a database or a flame graph do none, in any view; nor do
// they break its form.
func TestViewsInjection(t *testing.T) {
	t.Parallel()
	const evil = "</script>\x1b[31m\xe2\x80\xae\"'; DROP TABLE events; --"
	rec := Cmd{Argv: []string{prog(t, "names"), evil}, Options: "stacks=1000"}.Recorded(t)
	out := t.TempDir()
	for _, v := range views {
		stdout, stderr, code := prophetRun(t, out, v.of(rec.Trace)...)
		if n := v.much(t, out, stdout); code != 0 || n == 0 {
			t.Errorf("%s: exit status %d, %d to see: %s", v.name, code, n, stderr)
		}
		harmless(t, v.name, stdout+stderr)
	}
	harmless(t, "folded", string(madeFile(t, out, "f")))
	harmless(t, "wait-for", string(madeFile(t, out, "w")))
	for line := range strings.Lines(string(madeFile(t, out, "f")) + string(madeFile(t, out, "w"))) { // stack, a space, a number
		i := strings.LastIndexByte(line, ' ')
		if i < 1 || strings.Trim(line[i+1:], "0123456789\n") != "" {
			t.Errorf("no line of a folded stack: %q", line)
		}
	}
	p, err := profile.ParseData(madeFile(t, out, "p.pb"))
	must(t, err)
	for _, f := range p.Function {
		harmless(t, "pprof", f.Name+f.Filename)
	}
	for _, s := range p.Sample {
		harmless(t, "pprof", fmt.Sprint(s.Label))
	}
	for _, m := range p.Mapping {
		harmless(t, "pprof", m.File)
	}
	picture, err := pftest.Read(madeFile(t, out, "pf"))
	must(t, err)
	shown := 0
	for _, s := range picture.Slices {
		text := fmt.Sprint(s.Name, s.Args, s.Stack)
		harmless(t, "perfetto", text)
		if strings.Contains(text, "onerror=pwned=1") {
			shown++
		}
	}
	if shown == 0 {
		t.Error("the names are not in the picture at all")
	}
	// Both kinds of tables are one to a database, and its own tables are there after all questions.
	db, err := duckdb.Open(filepath.Join(top, "build", "duckdb"))
	must(t, err)
	defer db.Close()
	for _, table := range tables.Schema {
		a, b := filepath.Join(out, "parquet", table.Name+".parquet"), filepath.Join(out, "csv", table.Name+".csv")
		harmless(t, table.Name+".csv", string(madeFile(t, out, "csv/"+table.Name+".csv")))
		var texts []string
		for _, c := range table.Columns {
			if c.Type == "VARCHAR" { // the ' before what a spreadsheet would take for a formula
				texts = append(texts, fmt.Sprintf("CASE WHEN %[1]s SIMILAR TO '[-=+@''].*' THEN chr(39) || %[1]s ELSE %[1]s END AS %[1]s", c.Name))
			} else {
				texts = append(texts, "CAST("+c.Name+" AS VARCHAR) AS "+c.Name)
			}
		}
		one, two := "SELECT "+strings.Join(texts, ", ")+" FROM '"+a+"'", "SELECT * FROM read_csv('"+b+"', header = true, all_varchar = true, nullstr = 'no such thing', delim = ',', quote = '\"', escape = '\"')"
		for _, q := range []string{"(" + one + ") EXCEPT ALL (" + two + ")", "(" + two + ") EXCEPT ALL (" + one + ")"} {
			if _, rows, err := db.Query(q); err != nil || len(rows) > 0 {
				t.Errorf("%s: %d rows differ between parquet and CSV, as %.300q; %v", table.Name, len(rows), rows[:min(len(rows), 1)], err)
			}
		}
	}
	names, text := queries(t)
	must(t, duckdb.In(filepath.Join(out, "parquet"), func() error {
		for _, name := range names {
			if _, _, err := db.Query(text[name]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, rows, err := db.Query("SELECT count(*) FROM events WHERE path LIKE '%onerror=pwned=1%'")
		if err != nil || rows[0][0] == "0" {
			t.Errorf("events by a name: %v %v", rows, err)
		}
		return nil
	}))
}

// harmless checks text for what terminals act upon, and for what hides how it reads.
func harmless(t *testing.T, what, text string) {
	t.Helper()
	for i, r := range text {
		if r < ' ' && r != '\n' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x200e && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == utf8.RuneError && !utf8.ValidString(text) {
			t.Errorf("%s has %U at %d: %q", what, r, i, text[max(0, i-40):min(len(text), i+40)])
			return
		}
	}
}

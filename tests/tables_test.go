package tests

import (
	"bytes"
	"encoding/csv"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"prophet/runtime/tables"
	"prophet/tests/duckdb"
)

// tabled runs prophet export to a directory of tables.
func tabled(t *testing.T, path, format string, more ...string) (dir, stderr string, status int) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "tables")
	cmd := exec.Command(built(t, "prophet"), append([]string{"export", path, "--" + format, dir}, more...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	cmd.Run()
	return dir, errs.String(), cmd.ProcessState.ExitCode()
}

// queries are the page of questions that the command prints, by name.
func queries(t *testing.T) (names []string, text map[string]string) {
	t.Helper()
	b, err := exec.Command(built(t, "prophet"), "export", "--queries").Output()
	if err != nil {
		t.Fatal(err)
	}
	text = map[string]string{}
	for i, part := range strings.Split(string(b), "-- name: ") {
		if i == 0 {
			continue
		}
		name, rest, _ := strings.Cut(part, "\n")
		names = append(names, name)
		text[name] = rest
	}
	return names, text
}

// TestQueries asks DuckDB every question of the page about a run in which there is an answer to most.
func TestQueries(t *testing.T) {
	r := Cmd{Argv: []string{prog(t, "links", "-pthread")}, Options: "stacks=99"}.Recorded(t)
	dir, stderr, status := tabled(t, r.Trace, "parquet")
	if status != 0 {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	db, err := duckdb.Open(filepath.Join(top, "build", "duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	names, text := queries(t)
	if len(names) < 15 || names[0] != "views" {
		t.Fatalf("questions: %v", names)
	}
	answers := map[string][][]string{}
	err = duckdb.In(dir, func() error {
		for _, name := range names {
			_, rows, err := db.Query(text[name])
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			answers[name] = rows
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	find := func(query, want string, column int) {
		for _, row := range answers[query] {
			if strings.Contains(row[column], want) {
				return
			}
		}
		t.Errorf("%s does not have %q in column %d: %v", query, want, column, answers[query])
	}
	find("classes", "sync", 0)
	find("calls", "usleep", 0)
	find("locks", "mutex:", 1)
	find("holders", "p0", 1)
	find("holders", "linkspthread+0x", 2)
	find("holders", "mutex:p0#", 0)
	find("blockers", "data", 2)
	find("files", "127.0.0.1:", 0)
	find("files", "unix:links.sock", 0)
	find("sites", "linkspthread+0x", 0)
	find("slowest", "usleep", 2)
	find("threads", "p0/16", 0)
	find("tree", "  p0.2+", 0)
	find("tree", "sh -c", 1)
	find("chain", "0", 0)
	if n := len(answers["timeline"]); n < 20 {
		t.Errorf("timeline: %d steps", n)
	}
	// What the tables say is what dump says.
	out, err := exec.Command(built(t, "prophet"), "dump", r.Trace).Output()
	if err != nil {
		t.Fatal(err)
	}
	events := 0
	for _, l := range strings.Split(string(out), "\n") {
		if f := strings.Fields(l); len(f) > 3 && strings.HasPrefix(f[2], "#") {
			events++
		}
	}
	_, rows, err := query(db, dir, "SELECT count(*), sum(bytes_out) FILTER (call = 'send'), count(DISTINCT thread) FROM 'events.parquet'")
	if err != nil || rows[0][0] != strconv.Itoa(events) || rows[0][1] != strconv.Itoa(12+6+3+2+3+3) {
		t.Errorf("%v events in the table, %d in dump; %v", rows, events, err)
	}
	list, _ := linksOf(t, r.Trace)
	if _, rows, err = query(db, dir, "SELECT count(*) FROM 'links.parquet'"); err != nil || rows[0][0] != strconv.Itoa(len(list)) {
		t.Errorf("%v links, of %d; %v", rows, len(list), err)
	}
	// Each link's ends are rows of events, but for the beginnings of threads.
	_, rows, err = query(db, dir, `SELECT count(*) FROM 'links.parquet' l LEFT JOIN 'events.parquet' e ON e.thread = l.to_thread AND e.event = l.to_event
		LEFT JOIN 'events.parquet' f ON f.thread = l.from_thread AND f.event = l.from_event WHERE e.thread IS NULL OR f.thread IS NULL`)
	if err != nil || rows[0][0] != "0" {
		t.Errorf("%v links to events that are not there; %v", rows, err)
	}
	for _, table := range tables.Schema {
		_, rows, err := query(db, dir, "DESCRIBE SELECT * FROM '"+table.Name+".parquet'")
		if err != nil {
			t.Errorf("%s: %v", table.Name, err)
			continue
		}
		for i, c := range table.Columns {
			if i >= len(rows) || rows[i][0] != c.Name || rows[i][1] != c.Type {
				t.Errorf("%s: column %d is %v, the schema says %s %s", table.Name, i, rows[i], c.Name, c.Type)
			}
		}
	}
}

func query(db *duckdb.DB, dir, sql string) (names []string, rows [][]string, err error) {
	e := duckdb.In(dir, func() error {
		names, rows, err = db.Query(sql)
		return nil
	})
	if err == nil {
		err = e
	}
	if err == nil && len(rows) == 0 {
		rows = [][]string{{""}}
	}
	return names, rows, err
}

// TestCSV: both formats say the same, filters hold, the files are nobody else's.
func TestCSV(t *testing.T) {
	r := Cmd{Argv: []string{prog(t, "links", "-pthread")}}.Recorded(t)
	asCSV, stderr, status := tabled(t, r.Trace, "csv", "--class", "sync,net")
	if status != 0 || !strings.Contains(stderr, "were left out, as asked") {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	asParquet, _, status := tabled(t, r.Trace, "parquet", "--class", "sync,net")
	if status != 0 {
		t.Fatalf("exit status %d", status)
	}
	db, err := duckdb.Open(filepath.Join(top, "build", "duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, table := range tables.Schema {
		path := filepath.Join(asCSV, table.Name+".csv")
		st, err := os.Stat(path)
		if err != nil || st.Mode().Perm() != 0o600 {
			t.Fatalf("%s: %v %v", path, st, err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
		if err != nil {
			t.Errorf("%s: %v", table.Name, err)
			continue
		}
		names, rows, err := db.Query("SELECT * FROM '" + filepath.Join(asParquet, table.Name+".parquet") + "'")
		if err != nil || !slices.Equal(names, lines[0]) || len(rows) != len(lines)-1 {
			t.Errorf("%s: %d rows of parquet, %d lines of CSV, columns %v; %v", table.Name, len(rows), len(lines)-1, names, err)
			continue
		}
		for i, row := range rows {
			for c := range row {
				if strings.TrimPrefix(lines[i+1][c], "'") != strings.TrimPrefix(row[c], "'") {
					t.Errorf("%s, row %d, %s: %q in CSV, %q in parquet", table.Name, i, names[c], lines[i+1][c], row[c])
				}
			}
		}
		if table.Name == "events" {
			for _, l := range lines[1:] {
				if l[5] != "sync" && l[5] != "net" {
					t.Errorf("an event of class %s", l[5])
				}
			}
			if len(lines) < 30 {
				t.Errorf("%d events", len(lines))
			}
		}
	}
	// A packed trace gives the same.
	packed := filepath.Join(t.TempDir(), "packed.prophet")
	if out, err := exec.Command(built(t, "prophet"), "pack", "-o", packed, r.Trace).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	ofPacked, _, status := tabled(t, packed, "csv", "--class", "sync,net")
	for _, table := range tables.Schema {
		a, _ := os.ReadFile(filepath.Join(asCSV, table.Name+".csv"))
		b, _ := os.ReadFile(filepath.Join(ofPacked, table.Name+".csv"))
		if len(a) == 0 || !bytes.Equal(a, b) || status != 0 {
			t.Errorf("%s differs when the trace is packed", table.Name)
		}
	}
	left, err := os.ReadDir(asCSV)
	if err != nil || len(left) != len(tables.Schema) {
		t.Errorf("%d files in the directory, %v", len(left), err)
	}
}

func TestTablesUsage(t *testing.T) {
	t.Parallel()
	r := Cmd{Argv: []string{"true"}}.Recorded(t)
	picture(t, r.Trace)
	for _, more := range [][]string{{"--csv", "-"}, {"--parquet", built(t, "prophet")}, {"--schema"}} {
		cmd := exec.Command(built(t, "prophet"), append([]string{"export", r.Trace}, more...)...)
		if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 2 {
			t.Errorf("%v: %v", more, cmd.ProcessState)
		}
	}
	out, err := exec.Command(built(t, "prophet"), "export", "--schema").Output()
	if err != nil || string(out) != tables.Page() {
		t.Errorf("--schema: %v %.100s", err, out)
	}
	damage(t, r.Trace)
	dir, stderr, status := tabled(t, r.Trace, "csv")
	if status != 1 || !strings.Contains(stderr, "damaged") {
		t.Errorf("a damaged trace: %d %s", status, stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "processes.csv")); err != nil {
		t.Error(err)
	}
}

// What scrub took out of a trace is in no export of it.
func TestExportsOfScrubbed(t *testing.T) {
	t.Parallel()
	r := Cmd{Argv: []string{"sh", "-c", "echo hush > secret.txt; cat secret.txt; mv secret.txt secret2.txt"}}.Recorded(t)
	out := t.TempDir()
	scrubbed := filepath.Join(out, "scrubbed.prophet")
	if b, err := exec.Command(built(t, "prophet"), "scrub", "-o", scrubbed, r.Trace).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, b)
	}
	find := func(of string) (found int) {
		dir := filepath.Join(out, filepath.Base(of)+".out")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if b, err := exec.Command(built(t, "prophet"), "export", of, "--perfetto", filepath.Join(dir, "p"), "--csv", dir, "--parquet", dir,
			"--folded", filepath.Join(dir, "f")).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, b)
		}
		list, err := os.ReadDir(dir)
		if err != nil || len(list) != 2*len(tables.Schema)+2 {
			t.Fatalf("%d files, %v", len(list), err)
		}
		for _, e := range list {
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(b, []byte("secret")) {
				found++
			}
		}
		return found
	}
	if n := find(r.Trace); n < 5 { // events and processes as CSV and parquet, objects, the picture
		t.Errorf("the names are in %d files of the trace itself", n)
	}
	if n := find(scrubbed); n != 0 {
		t.Errorf("the names are in %d files of the scrubbed trace", n)
	}
}

package tests

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// serially records a command under --serial and re-executes it n times: each time all is identical, its output byte for
// byte. before stands before each command: a user that it is run as.
func serially(t *testing.T, n int, dir, build string, before, argv []string) {
	t.Helper()
	if why := differsSerially(t, n, dir, build, before, argv); why != "" {
		t.Fatal(why)
	}
}

// differsSerially records a program under --serial, re-executes it n times, and says what first differed.
func differsSerially(t *testing.T, n int, dir, build string, before, argv []string) string {
	t.Helper()
	trace := filepath.Join(dir, "run.prophet")
	os.RemoveAll(trace)
	run := func(argv ...string) (string, string, error) {
		var out, errs bytes.Buffer
		argv = append(append([]string{}, before...), argv...)
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errs
		err := cmd.Run()
		return out.String(), errs.String(), err
	}
	out, errs, err := run(append([]string{filepath.Join(build, "prophet"), "record", "-q", "--serial", "--chaos", "3", "-o", trace, "--"}, argv...)...)
	if err != nil {
		t.Fatalf("the recorded run: %v: %s", err, clip(errs))
	}
	for i := range n {
		again, errs, err := run(filepath.Join(build, "replayd"), "--trace", trace)
		if err != nil || !strings.Contains(errs, "replayd: identical: ") {
			return fmt.Sprintf("re-execution %d of %d: %v: %s", i+1, n, err, clip(errs))
		}
		if again != out {
			return fmt.Sprintf("re-execution %d prints something else:\n%s\nthan the recorded run:\n%s", i+1, clip(again), clip(out))
		}
	}
	return ""
}

// placed copies what records and re-executes to a directory.
func placed(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"libprophet.so", "replayd", "prophet"} {
		copyFile(t, built(t, name), filepath.Join(dir, name), 0o755)
	}
}

// replayed is serially of a program of tests/replay.
func replayed(t *testing.T, n int, source string, args ...string) {
	t.Helper()
	bin := compile(t, filepath.Join(top, "tests", "replay", source))
	serially(t, n, t.TempDir(), filepath.Dir(built(t, "prophet")), nil, append([]string{bin}, args...))
}

// What a program shares with another, or sends it, are often addresses: they are the recorded ones.
func TestSerialAddresses(t *testing.T) {
	t.Parallel()
	lib, data := compile(t, filepath.Join(top, "tests", "replay", "largelib.c")), t.TempDir()
	for _, name := range []string{"big", "changed"} {
		if err := os.WriteFile(filepath.Join(data, name), make([]byte, 3<<20), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	replayed(t, 2, "large.c", lib, filepath.Join(data, "big"), filepath.Join(data, "changed"))
	// All of it, and ours, in the directory that it works in.
	placed(t, data)
	copyFile(t, lib, filepath.Join(data, "large.so"), 0o755)
	serially(t, 2, data, data, nil, []string{compile(t, filepath.Join(top, "tests", "replay", "large.c")), "./large.so", "big", "changed"})
	replayed(t, 2, "heap.c")
	replayed(t, 2, "arena.c")
	replayed(t, 2, "stack.c")
	replayed(t, 2, "garbage.c")
}

// Memory that a call writes to a file, or fills from one, does not change meanwhile.
func TestSerialShared(t *testing.T) {
	t.Parallel()
	replayed(t, 5, "overwritten.c")
	replayed(t, 12, "untimely.c")
	replayed(t, 5, "closed.c") // and what a descriptor was is known when it is gone
}

// A forked child has what a call of its parent's had made and not yet told.
func TestSerialForked(t *testing.T) {
	t.Parallel()
	replayed(t, 5, "forked.c")
}

// A thread that waits at a barrier has arrived there, whatever its handlers do meanwhile: they were executed before it came, which kept the others waiting
// in 9 of 10 re-executions.
func TestSerialArrived(t *testing.T) {
	t.Parallel()
	replayed(t, 3, "arrived.c")
}

// Where several write to one channel, what is in it comes in the recorded order: also what the C library writes as children end that have made
// no call before. The report said that all was identical where the order differed, in most runs; such children it called different.
func TestSerialEnds(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"threads", "children"} {
		for _, where := range []string{"inherited", "own", "file"} {
			t.Run(who+"/"+where, func(t *testing.T) {
				t.Parallel()
				replayed(t, 3, "ends.c", who, where)
			})
		}
	}
}

// The same of what is sent: 0 of 12 re-executions had it in the recorded order.
func TestSerialSent(t *testing.T) {
	t.Parallel()
	replayed(t, 3, "sent.c", "threads")
	replayed(t, 3, "sent.c", "processes")
}

// Of several threads that wait for a queue's messages each is given its own, however little room there is. Another took it before, and the one
// that should have it was waited for: 9 of 10 stood.
func TestSerialQueued(t *testing.T) {
	t.Parallel()
	replayed(t, 3, "queued.c")
	serially(t, 3, t.TempDir(), filepath.Dir(built(t, "prophet")), nil, []string{compile(t, filepath.Join(top, "tests", "replay", "queued.c")), "threads", "sysv"})
}

// What the kernel moves from one descriptor to another is as much as then, however much there is, or room for: 95 of 96 of these differed, all but
// sendfile's.
func TestReplayMoved(t *testing.T) {
	t.Parallel()
	bin := compile(t, filepath.Join(top, "tests", "replay", "pump.c"))
	for _, how := range []string{"pipe", "file", "to socket", "from socket", "tee", "vmsplice", "sendfile"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			for _, argv := range [][]string{{bin, how}, {bin, how, "processes"}} {
				cmd := Cmd{Argv: argv}
				again(t, cmd, cmd.Recorded(t), 2)
				serially(t, 2, t.TempDir(), filepath.Dir(built(t, "prophet")), nil, argv)
			}
		})
	}
}

// Signals come in storms: as threads begin and end, in calls, and in handlers, whose records are never lost.
func TestSerialVolleys(t *testing.T) {
	t.Parallel()
	replayed(t, 1, "volleys.c")
	replayed(t, 2, "cramped.c")
}

// What instructions read is recorded where it can be.
func TestSerialStamps(t *testing.T) {
	t.Parallel()
	replayed(t, 3, "stamps.c")
}

// Ranks that spin on what others send, with libraries that read the time stamp counter.
func TestSerialOpenMPI(t *testing.T) {
	t.Parallel()
	need(t, "mpicc", "mpirun")
	dir := t.TempDir()
	bin := filepath.Join(dir, "mpi")
	cc := exec.Command("mpicc", "-o", bin, filepath.Join(top, "tests", "replay", "mpi.c"))
	cc.Env = append(os.Environ(), "OMPI_CC=gcc")
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("mpicc: %v\n%s", err, out)
	}
	for _, over := range transports {
		run := filepath.Join(dir, over)
		if err := os.Mkdir(run, 0o755); err != nil {
			t.Fatal(err)
		}
		argv := []string{"mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "orte_tmpdir_base", run, "--mca", "btl", "self," + over, "-np", "4", bin}
		why := ""
		// What TCP's headers have of memory that was never set came out otherwise in one recording in some twenty, as the README
		// says; nothing else may differ, and not in two recordings in a row.
		for range 2 {
			why = differsSerially(t, 3, run, filepath.Dir(built(t, "prophet")), nil, argv)
			if !strings.Contains(why, "writev: other data of") || !strings.Contains(why, "mca_btl_tcp.so") {
				break
			}
			t.Logf("recorded once more: %s", why)
		}
		if why != "" {
			t.Fatalf("%s: %s", over, why)
		}
	}
}

var transports = []string{"tcp", "vader"}

// Writers of a database with a write-ahead log, whose index is memory that they share: under --serial all is exact; plainly
// the report says what it was.
func TestSerialWAL(t *testing.T) {
	t.Parallel()
	need(t, "sqlite3")
	dir, build := t.TempDir(), filepath.Dir(built(t, "prophet"))
	script := []string{"sh", "-c", `sqlite3 w.db "pragma journal_mode=wal; create table t(a, b)"
		for i in 1 2 3; do (for j in 1 2 3 4; do sqlite3 w.db ".timeout 60000" "insert into t values($i, $j)"; done) & done; wait
		sqlite3 w.db "select count(*), sum(a * b) from t"`}
	serially(t, 3, dir, build, nil, script)
	for range 3 {
		trace := filepath.Join(t.TempDir(), "plain.prophet")
		cmd := exec.Command(filepath.Join(build, "prophet"), append([]string{"record", "-q", "-o", trace, "--"}, script...)...)
		cmd.Dir = t.TempDir()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("the recorded run: %v: %s", err, clip(string(out)))
		}
		again := exec.Command(filepath.Join(build, "replayd"), "--trace", trace)
		out, err := again.CombinedOutput()
		if said := string(out); !strings.Contains(said, "replayd: identical: ") && (again.ProcessState.ExitCode() != 125 || !strings.Contains(said, "processes of the run share memory (mmap")) {
			t.Errorf("it ended with %v: %s", err, said)
		}
	}
}

// A server whose processes share memory and signal one another, with its clients, from its start to its end.
func TestSerialPostgres(t *testing.T) {
	t.Parallel()
	need(t, "setpriv", "/usr/lib/postgresql/15/bin/postgres", "pgbench")
	dir := publicDir(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	placed(t, dir)
	user := []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "PATH=/usr/lib/postgresql/15/bin:" + os.Getenv("PATH"),
		"LC_ALL=C", "HOME=" + dir, "PGHOST=" + dir, "PGPORT=" + freePort(t), "PGUSER=p", "PGDATABASE=postgres"}
	script := func(text string) []string { return []string{"sh", "-c", "cd " + dir + " && " + text} }
	start := `pg_ctl -D data -w -l log -o "-p $PGPORT -k $PGHOST -h ''" start > /dev/null && `
	make := script("initdb -D data -U p --no-sync > /dev/null 2>&1 && " + start + "pgbench -i -q -s 1 > /dev/null 2>&1; pg_ctl -D data -w -m fast stop > /dev/null")
	if out, err := exec.Command(user[0], append(user[1:], make...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	serially(t, 2, dir, dir, user, script(start+`pgbench -n -c 2 -t 20 2>&1 | grep -E "processed|failed"
		psql -Atc "select count(*), sum(abalance) from pgbench_accounts; select count(*) from pgbench_history"; pg_ctl -D data -w -m fast stop > /dev/null; echo $?`))
}
